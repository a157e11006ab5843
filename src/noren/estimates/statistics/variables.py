"""What a column's values are to a computation: numbers, groups, or the indicator of one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.schema.domain import MISSING, OTHER, Domain, end_labels
from noren.schema.extents import kind_of
from noren.schema.hierarchy import value_text
from noren.schema.kinds import NUMERIC, as_number


@dataclass(frozen=True, eq=False)
class Variable:
    """A column asked for: along which axis it stands, and the label of every base value of that axis.

    `numbers` are what the labels stand for, NaN where a label is no number (missing, other); None for a column of
    names. `edges` are given where labels are bins, in order.
    """

    name: str
    axis: int
    labels: tuple[str, ...]
    groups: NDArray[np.int64]
    numbers: NDArray[np.float64] | None = None
    edges: NDArray[np.float64] | None = None
    note: str = ""

    @property
    def known(self) -> NDArray[np.float64]:
        """1 for base values that have a number (or, of names, that are not missing)."""
        if self.numbers is not None:
            return np.isfinite(self.numbers)[self.groups].astype(np.float64)
        there = np.array([label != MISSING for label in self.labels])
        return there[self.groups].astype(np.float64)

    @property
    def amounts(self) -> NDArray[np.float64]:
        """The number of every base value, 0 where there is none. Raises where the column holds names."""
        if self.numbers is None:
            raise QueryError(
                f"{self.name!r} holds no numbers.",
                hint=f"Ask for a share: {self.name + '=' + self.labels[0]!r}; or give numbers: "
                f"values={{{self.name!r}: {{{self.labels[0]!r}: 0, ...}}}}.",
            )
        return np.nan_to_num(self.numbers, nan=0.0)[self.groups]

    def indicator(self, label: int) -> NDArray[np.float64]:
        return (self.groups == label).astype(np.float64)


def numbers_of(
    name: str, domain: Domain, declared: Mapping[object, float] | None = None
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None, str]:
    """The numbers that a domain's values stand for, the edges of its bins, and what that rests on, in words."""
    if declared is not None:
        return _declared(name, domain, declared), None, f"values of {name!r} stand for the numbers given"
    if domain.measure is not None and kind_of(domain.measure) not in NUMERIC:
        return None, None, ""  # the edges are days, seconds or codes: a mean of them is no number of the column
    if domain.edges is not None:
        edges = np.asarray(domain.edges, np.float64)
        out = np.full(len(domain), np.nan)
        with np.errstate(invalid="ignore"):
            out[: len(edges) - 1] = (edges[:-1] + edges[1:]) / 2
        if not np.isfinite(edges).all():
            raise QueryError(
                f"{name!r} has an open interval, which has no middle.",
                hint=f"Say what its intervals stand for: values={{{name!r}: {{{domain.values[0]!r}: 9.5, ...}}}}.",
            )
        return out, edges, f"an interval of {name!r} stands for its middle"
    if domain.has_ends:
        ends = {label: end for end, label in end_labels(domain.top, domain.bottom)}
        return _read(domain, ends), None, f"an open end of {name!r} stands for where it begins"
    if domain.kind == "boolean":
        return np.array([1.0 if v == "true" else 0.0 if v == "false" else np.nan for v in domain.values]), None, ""
    if domain.kind in NUMERIC or domain.text_kind in NUMERIC:
        return _read(domain, {}), None, ""
    return None, None, ""


def _read(domain: Domain, ends: Mapping[str, float]) -> NDArray[np.float64]:
    special = (MISSING, OTHER)
    return np.array(
        [np.nan if v in special else ends[v] if v in ends else as_number(v, "number") for v in domain.values]
    )


def _declared(name: str, domain: Domain, declared: Mapping[object, float]) -> NDArray[np.float64]:
    given = {value_text(value): float(number) for value, number in declared.items()}
    if unknown := [value for value in given if value not in domain.index]:
        raise QueryError(f"{name!r} has no value {unknown[0]!r}.", hint=f"It has {', '.join(domain.values[:12])}.")
    if lacking := [value for value in domain.plain if value not in given]:
        raise QueryError(f"{lacking[0]!r} of {name!r} has no number.", hint="Give one for every value.")
    return np.array([given.get(value, np.nan) for value in domain.values])
