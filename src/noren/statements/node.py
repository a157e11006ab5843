"""Cells that are generalised values, which cover the true value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import Annotated, Any, ClassVar, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, OTHERS, Domain, bare, masks
from noren.schema.extents import ANYTHING, bounds_on, ends_of, kind_of, strip_number
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import CALENDAR, NUMERIC, Kind, as_number
from noren.schema.nodes import Nodes, Tight, runs_of, tree_of
from noren.statements.batch import Cells, CodeCells
from noren.statements.exact import NumberedStatement
from noren.statements.statement import Judge, Likelihood, ReadDesign, Statement
from noren.statements.texts import labels_in

Code = Annotated[int, Field(ge=-(2**31), le=2**31)]
_LISTED = TypeAdapter(tuple[tuple[str, tuple[tuple[Code, Code], ...]], ...])


@dataclass(frozen=True, eq=False)
class NodeStatement(NumberedStatement):
    """Each cell is a generalised value that covers the true one. Codes number the nodes; `listed` are those without a
    published hierarchy."""

    listed: Nodes | None = None
    tight: Tight | None = None

    form: ClassVar[str] = "node"
    words: ClassVar[str] = "published as general values"
    numbers_of: ClassVar[str] = "nodes"
    is_key: ClassVar[bool] = True
    hides: ClassVar[bool] = True

    @cached_property
    def catalogue(self) -> Nodes:
        """Return all nodes that a cell may be."""
        if self.listed is not None:
            return self.listed
        assert self.column.tree is not None
        return tree_of(self.column.tree).nodes

    def over(self, column: Column) -> NodeStatement:
        """Return the same nodes, whatever hierarchy the other column has."""
        return replace(self, column=column, listed=self.catalogue)

    @property
    def description(self) -> str:
        return "as general values"

    @property
    def nodes(self) -> Nodes:
        return self.catalogue

    @property
    def tightness(self) -> Tight | None:
        return self.tight

    @cached_property
    def kinds(self) -> int:
        return len(self.catalogue)

    def likelihood(self, cells: Cells) -> Likelihood:
        codes = self.check_cells(cells)
        members, bounds = self.catalogue.flat_members(codes)
        return Likelihood(bounds, members, np.ones(len(members)))

    def count_possible(self, cells: Cells) -> NDArray[np.int64]:
        return self.catalogue.sizes[self.check_cells(cells)]

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return self.catalogue.covers(self.check_cells(cells), truth)

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_classes(self, evidence)

    def check_cells(self, cells: Any) -> NDArray[np.int64]:
        if self.catalogue.d != self.d:
            raise self.disagrees(f"has no list of its general values over {self.d} values.")
        return super().check_cells(cells)

    def label(self, code: Any) -> str:
        return str(self.catalogue.labels[code])

    def find_misnamed(self, hierarchy: Hierarchy | None = None) -> list[str]:
        if hierarchy is not None:
            return unlike(self.catalogue, hierarchy)
        if self.listed is None:  # a hierarchy names its nodes by itself
            return []
        return find_misnamed(self.domain, self.listed)

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        return pa.array(self.catalogue.labels, pa.string()).take(pa.array(np.asarray(cells.data)))

    def from_arrow(self, column: Any) -> Cells:
        return CodeCells(self.kinds, labels_in(self.name, self.catalogue.labels, column))

    @property
    def texts_path(self) -> str | None:
        return self.name

    def field(self) -> dict[str, Any]:
        text = "A general value; the manifest tells which values lie under it."
        return {"name": self.name, "type": "string", "description": text}

    def manifest_fields(self) -> dict[str, Any]:
        said = {} if self.tight is None else {"tight": self.tight}
        if self.listed is None:
            return said
        runs = zip(self.listed.labels, self.listed.runs, strict=True)
        return {"nodes": [[label, [list(run) for run in covered]] for label, covered in runs], **said}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        if ("nodes" in fields) == (column.tree is not None) and not ("nodes" in fields and column.domain.hidden):
            raise ValueError("a generalised column takes its nodes from a hierarchy or from a list")
        cls.demand(fields, *(name for name in ("nodes", "tight") if name in fields))
        tight = fields.get("tight")
        if tight is not None and tight not in get_args(Tight):
            raise ValueError("what occurs in every class is the ends, the members or two subtrees")
        listed = None
        if "nodes" in fields:
            given = _LISTED.validate_python(fields["nodes"])
            listed = Nodes.from_runs(column.d, [label for label, _ in given], [runs for _, runs in given])
        made = cls(column, listed, cast("Tight | None", tight))
        if len(set(made.catalogue.labels)) != made.kinds:
            raise ValueError("two general values have one label")
        return made


# ------------------------------------------------------------------ whether a name says what it covers

OR_MISSING = f" or {MISSING}"
Runs = tuple[tuple[int, int], ...]
"""Codes as rising runs that do not touch: from the first of each to before the last."""


def find_misnamed(domain: Domain, nodes: Nodes) -> list[str]:
    """Return names of nodes that do not match what they cover, or that cover the same as another node."""
    out, reader = [], _Reader(domain)
    seen: set[Runs] = set()
    for label, runs in zip(nodes.labels, map(tuple, nodes.runs), strict=True):
        twice = runs in seen and strip_number(label) not in ANYTHING  # where there is one value, it is everything
        if twice or not reader.names(label, runs):
            out.append(label)
        seen.add(runs)
    return out


def unlike(nodes: Nodes, hierarchy: Hierarchy) -> list[str]:
    """Return names of nodes that a hierarchy does not have, or that cover other values there."""
    known = tree_of(hierarchy).nodes
    expected = dict(zip(known.labels, known.runs, strict=True))
    return [label for label, runs in zip(nodes.labels, nodes.runs, strict=True) if expected.get(label) != runs]


class _Reader:
    """Reads which values of a domain labels cover, as runs of codes.

    A release that publishes "34" and declares it a node over all ages would look as if it hid something. So a name must
    be that of the one value it covers, a list of its values, an interval with these ends, a masked text, or say that it
    leaves everything open; or an auditor's hierarchy must have it. It is read by code that gave no name.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def names(self, label: str, runs: Runs) -> bool:
        """Return whether a label covers exactly these codes."""
        domain, gone = self.domain, self.domain.missing_code
        if label == MISSING:
            return gone is not None and runs == ((gone, gone + 1),)
        if label in domain.index:
            code = domain.index[label]
            return runs == ((code, code + 1),)
        if label.endswith(OR_MISSING) and gone is not None:
            others = _without(runs, gone)
            return others != runs and self.names(label.removesuffix(OR_MISSING), others)
        inner = strip_number(label)
        if inner[:1] == "{" and inner == "{" + ", ".join(domain.values[code] for code in _codes(runs)) + "}":
            return True
        if inner.rstrip() in ANYTHING:
            whole = ((0, len(domain)),)
            return runs == whole or (gone is not None and runs == _without(whole, gone))
        if domain.hidden:
            return _stands(domain, label, set(_codes(runs)))
        return runs == self._read_runs(label)

    def _read_runs(self, label: str) -> Runs | None:
        """Return the base values between the ends in a label; None if it has none."""
        domain, kind = self.domain, self._kind
        ends = None if kind is None else ends_of(label, kind)
        if ends is None:
            return _between(domain, label)
        if domain.edges is not None:
            low, high = (ends.low, ends.high) if domain.measure is None else bounds_on(ends, domain.measure)
            return self._bins(low, high)
        low, high = bounds_on(ends, "integer") if domain.integers is not None else (ends.low, ends.high)
        closed = ends.closed and domain.integers is None
        first, last = self._places
        below = (last < high) | ((last == high) & (closed or high == inf))
        return tuple(runs_of(np.flatnonzero((first >= low) & below).tolist()))

    def _bins(self, low: float, high: float) -> Runs:
        """Return the bins that are completely between two ends."""
        edges = self._edges
        if not self._rising:
            return tuple(runs_of(np.flatnonzero((edges[:-1] >= low) & (edges[1:] <= high)).tolist()))
        listed = self.domain.edges or ()
        first, stop = bisect_left(listed, low), bisect_right(listed, high) - 1
        return ((first, stop),) if first < stop else ()

    @cached_property
    def _kind(self) -> Kind | None:
        """Return the kind in which ends are read; None if values have no position on a line."""
        domain = self.domain
        if domain.measure is not None:
            return kind_of(domain.measure)
        if domain.edges is not None or domain.has_ends:
            return "number"
        if domain.integers is not None:
            return "integer"
        return domain.kind if domain.kind in (*NUMERIC, *CALENDAR) else None

    @cached_property
    def _edges(self) -> NDArray[np.float64]:
        return np.asarray(self.domain.edges)

    @cached_property
    def _rising(self) -> bool:
        return bool((np.diff(self._edges) > 0).all())

    @cached_property
    def _places(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the range of every value; values without a position have an empty range."""
        kind: Kind = self._kind or "number"
        nowhere = (nan, nan)
        found = [nowhere if v in (MISSING, OTHER) else _place(self.domain, v, kind) for v in self.domain.values]
        return np.array([one[0] for one in found]), np.array([one[1] for one in found])


def _codes(runs: Runs) -> Iterator[int]:
    return (code for start, stop in runs for code in range(start, stop))


def _without(runs: Runs, code: int) -> Runs:
    """Return the runs without one of their codes."""
    out = []
    for start, stop in runs:
        parts = ((start, code), (code + 1, stop)) if start <= code < stop else ((start, stop),)
        out += [part for part in parts if part[0] < part[1]]
    return tuple(out)


def _stands(domain: Domain, label: str, members: set[int]) -> bool:
    """Return whether a generalised value covers its placeholder, and no value that its characters exclude."""
    own = {domain.index[name] for name in (label, OTHERS + label) if name in domain.hidden}
    shown = [domain.values[code] for code in members]
    plain = [value for value in shown if value not in domain.hidden and value not in (MISSING, OTHER)]
    starred = label.rstrip("*") != label
    fits = all(masks(label, value) for value in plain) and all(masks(label, bare(one)) for one in shown)
    return bool(own & members) and (fits or not starred)


def _place(domain: Domain, value: str, kind: Kind) -> tuple[float, float]:
    if domain.bottom is not None and value.startswith("below "):
        return -inf, float(np.nextafter(domain.bottom, -inf))
    if domain.top is not None and value.endswith(" and above"):
        return domain.top, inf
    at = as_number(value, kind)
    return at, at


def _between(domain: Domain, label: str) -> Runs | None:
    """Return the label from one value of an ordered domain to another: "[low, high]"."""
    inner = strip_number(label)
    if inner[:1] != "[" or inner[-1:] != "]":
        return None
    for cut in range(len(inner)):
        low, high = inner[1:cut], inner[cut + 2 : -1]
        if inner[cut : cut + 2] == ", " and low in domain.index and high in domain.index:
            first, last = domain.index[low], domain.index[high]
            return ((first, last + 1),) if first <= last else ()
    return None
