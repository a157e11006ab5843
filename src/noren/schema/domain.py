"""The values that a column may take, in order. Codes are positions in this list."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from noren.schema.extents import ANYTHING, kind_of, span_labels, strip_number
from noren.schema.kinds import CALENDAR, NUMERIC, Format, Kind, as_number, is_code, number_text, parse, reader, sniff

MISSING = "(missing)"
OTHER = "(other)"

DomainSource = Literal["policy", "data", "bins", "hierarchy"]


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def has_no_order(values: Sequence[str]) -> bool:
    """Return whether numbers and other texts are mixed, so that the values have no order."""
    plain = [value for value in values if value not in (MISSING, OTHER)]
    numbers = sum(map(is_number, plain))
    return 0 < numbers < len(plain)


@dataclass(frozen=True)
class Domain:
    """An ordered list of value labels, and their kind."""

    values: tuple[str, ...]
    kind: Kind = "string"
    source: DomainSource = "data"
    merged: int = 0
    """How many rare values were merged into "(other)"."""
    edges: tuple[float, ...] | None = field(default=None)
    """Bin edges, for a domain made of bins."""
    format: Format = field(default=Format(), compare=False)
    """How the table writes the values, where that is not how a release does."""
    reads: Kind | None = field(default=None, compare=False)
    """The kind of the table's texts, where the published one is another: numbers beside "(other)" are texts."""
    top: float | None = None
    """Numbers from here up are one value, the last: "90 and above"."""
    bottom: float | None = None
    """Numbers below are one value, the first: "below 18"."""
    measure: str | None = None
    """What the edges are places on, where they are those that published cells show; None for bins of numbers."""
    integers: tuple[int, int] | None = None
    """All whole numbers from here to before there are values, whether or not somebody has them."""
    hidden: tuple[str, ...] = ()
    """Values that stand for others that are not named: what a published generalised value covers and no cell shows."""

    def __post_init__(self) -> None:
        if self.has_ends and self.edges is not None:
            raise ValueError("bins have edges, and open ends are for numbers without bins")

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def index(self) -> dict[str, int]:
        return {value: code for code, value in enumerate(self.values)}

    @property
    def has_missing(self) -> bool:
        return MISSING in self.index

    @property
    def is_ordered(self) -> bool:
        """Return whether the order of the values is meaningful."""
        if self.edges is not None or self.kind in (*NUMERIC, *CALENDAR) or self.source == "policy":
            return True
        if self.has_ends and OTHER not in self.index:
            return True
        return is_code(self.plain)

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """Return the values without the special categories."""
        return tuple(value for value in self.values if value not in (MISSING, OTHER))

    @property
    def made_of(self) -> tuple[str, ...]:
        """Return the columns of which a value is a tuple; empty for ordinary values."""
        return ()

    @property
    def value_word(self) -> str:
        """Return the word for the values in descriptions."""
        return "values"

    @property
    def views(self) -> tuple[np.ndarray, ...]:
        """Return coarser codes of the values that must also differ where different values are required, as for
        tuples."""
        return ()

    def canonical(self, texts: Sequence[str]) -> list[str]:
        """Return texts of the table in the domain's spelling; texts of another kind stay unchanged."""
        if self.hidden:
            found = self.find(texts)
            return [text if code < 0 else self.values[code] for text, code in zip(texts, found, strict=True)]
        if self.has_ends:
            return self.code_ends(texts)
        if not self.rewrites:
            return list(texts)
        read = reader(self.text_kind, self.format)
        known = self.index
        return [text if text in known else (read(text) or text) for text in texts]

    def written_as(self, other: Domain) -> Domain:
        """Return the same values, written as another domain's table writes them."""
        return replace(self, format=other.format)

    @cached_property
    def text_kind(self) -> Kind:
        """Return the kind of the table's texts; a release does not state it, so it is inferred from the values."""
        if self.kind != "string":
            return self.kind
        return self.reads or (infer_kind(self.plain) if len(self.plain) < len(self.values) else "string")

    @property
    def rewrites(self) -> bool:
        """Return whether the table may write a value in several ways."""
        if self.has_ends or self.hidden:
            return True
        return self.edges is None and self.text_kind not in ("string", "boolean")

    @property
    def has_ends(self) -> bool:
        """Return whether numbers beyond some point are one value."""
        return self.top is not None or self.bottom is not None

    def code_ends(self, texts: Sequence[str]) -> list[str]:
        """Apply top and bottom coding to numbers of the table; anything else stays unchanged."""
        read = reader("number", self.format)
        known = self.index
        return [text if text in known else with_ends(read(text) or text, self.top, self.bottom) for text in texts]

    @property
    def names_all(self) -> bool:
        """Return whether every possible value is listed, or is in a declared bin."""
        return not self.hidden and self.measure is None and self.integers is None

    def find(self, values: Sequence[str], tree: Any = None) -> list[int]:
        """Return the codes of original values in a domain that may not list them; -1 for those without a code.

        `tree` is the hierarchy of the original, for texts that are known by what is above them.
        """
        known = self.index
        if self.edges is not None and self.measure is not None:
            return [known[value] if value in known else self._slot(value) for value in values]
        if self.has_ends:
            return [known.get(with_ends(value, self.top, self.bottom), -1) for value in values]
        if not self.hidden:
            return [known.get(value, -1) for value in values]
        return [known[value] if value in known else self._stand_in(value, tree) for value in values]

    def _slot(self, value: str) -> int:
        """Return the number of the bin that contains a number or date; -1 if none does."""
        assert self.edges is not None
        assert self.measure is not None
        try:
            place = as_number(value, kind_of(self.measure))
        except ValueError:
            return -1
        slot = int(np.searchsorted(self.edges, place, side="right")) - 1
        return slot if 0 <= slot < len(self.edges) - 1 else -1

    def _stand_in(self, value: str, tree: Any) -> int:
        """Return the placeholder of an unlisted value: the lowest one above it, by a tree or by its characters."""
        above = [] if tree is None or value in (MISSING, OTHER) else tree.above(value)
        masked = sorted((label for label in map(bare, self.hidden) if masks(label, value)), key=_stars)
        for label in [*above, *masked]:
            for name in (label, OTHERS + label):
                if name in self.hidden:
                    return self.index[name]
        return -1

    @cached_property
    def widths(self) -> np.ndarray | None:
        """Return how wide the values are, if they are intervals between published edges; an open end is as wide as
        most."""
        if self.edges is None or self.measure is None:
            return None
        found = np.diff(np.asarray(self.edges))
        closed = found[np.isfinite(found)]
        found = np.where(np.isfinite(found), found, np.median(closed) if len(closed) else 1.0)
        found = np.maximum(found / found.max(), 1e-9)
        return np.append(found, np.full(len(self) - len(found), found.mean()))

    @property
    def is_range(self) -> bool:
        """Return whether the values are all whole numbers from the first to the last, whether they occur or not."""
        if self.kind != "integer" or self.values[-1:] in ((MISSING,), (OTHER,)):
            return False
        return int(self.values[-1]) - int(self.values[0]) == len(self) - 1

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """Return the values as numbers (bins as their midpoint), or None if one is not a number."""
        if self.edges is not None:
            edges = np.asarray(self.edges)
            with np.errstate(invalid="ignore"):
                middles = (edges[:-1] + edges[1:]) / 2
            return middles if len(middles) == len(self) else None
        ends = {label: end for end, label in end_labels(self.top, self.bottom)}
        kind: Kind = "number" if ends else self.kind
        try:
            return np.array([ends[value] if value in ends else as_number(value, kind) for value in self.values])
        except ValueError:
            return None

    @cached_property
    def amounts(self) -> np.ndarray | None:
        """Return the values as numbers that can be added up, NaN for a missing one; None if that is not meaningful."""
        if self.kind not in NUMERIC or self.edges is not None:
            return None
        return np.array([np.nan if value == MISSING else as_number(value, self.kind) for value in self.values])

    @cached_property
    def missing_code(self) -> int | None:
        """Return the code of a missing cell, which is separate from the values."""
        return self.index.get(MISSING)

    @property
    def is_ranked(self) -> bool:
        """Return whether a class may publish an interval of the column, because the order of its values is
        meaningful."""
        last = self.missing_code in (None, len(self) - 1)
        return self.is_ordered and OTHER not in self.index and last and len(self.plain) > 0

    def line(self, by_rank: bool = False) -> np.ndarray:
        """Return the positions of a ranked domain's values between 0 and 1, by size or rank; NaN for a missing one."""
        plain = replace(self, values=self.plain)
        numbers = None if by_rank else plain.numbers
        if numbers is None or not np.isfinite(numbers).all() or (np.diff(numbers) < 0).any():
            numbers = np.arange(len(plain), dtype=np.float64)
        spread = float(numbers[-1] - numbers[0]) if len(numbers) else 0.0
        out = np.full(len(self), np.nan)
        out[[self.index[value] for value in plain.values]] = (numbers - numbers[0]) / spread if spread > 0 else 0.0
        return out

    def typed_values(self) -> list[Any]:
        """Return the values in the published type; the missing category of a typed domain is None."""
        return [None if self.kind != "string" and v == MISSING else parse(v, self.kind) for v in self.values]


def end_labels(top: float | None, bottom: float | None) -> list[tuple[float, str]]:
    """Return the open ends of top and bottom coding, each with the number at which it begins or ends."""
    out = [] if bottom is None else [(bottom, f"below {number_text(bottom)}")]
    return out if top is None else [*out, (top, f"{number_text(top)} and above")]


def with_ends(text: str, top: float | None, bottom: float | None) -> str:
    """Return a number as top and bottom coding publishes it; anything else stays unchanged."""
    if not is_number(text):
        return text
    if top is not None and float(text) >= top:
        return end_labels(top, None)[0][1]
    return end_labels(None, bottom)[0][1] if bottom is not None and float(text) < bottom else text


def fits_kind(labels: Sequence[str], kind: Kind) -> bool:
    """Return whether every label is a value of the kind."""
    plain = [label for label in labels if label != MISSING]
    if kind == "integer":
        return all(map(_is_integer, plain))
    if kind == "number":
        return all(_is_integer(label) or _is_number(label) for label in plain)
    if kind in CALENDAR:
        read = reader(kind, Format())
        return all(read(label) == label for label in plain)
    return kind == "string" or set(plain) <= {"true", "false"}


def infer_kind(labels: Sequence[str]) -> Kind:
    """Return the narrowest kind whose texts round-trip, so that "01234" stays a string and never becomes 1234."""
    plain = [label for label in labels if label not in (MISSING, OTHER)]
    if OTHER in labels or not plain:
        return "string"
    if all(_is_integer(label) for label in plain):
        return "integer"
    if all(_is_number(label) for label in plain):
        return "number"
    if set(plain) <= {"true", "false"}:
        return "boolean"
    found = sniff(plain)
    return found.kind if found.kind in CALENDAR and fits_kind(plain, found.kind) else "string"


def _is_integer(label: str) -> bool:
    try:
        return str(int(label)) == label and abs(int(label)) < 2**63
    except ValueError:
        return False


def _is_number(label: str) -> bool:
    try:
        number = float(label)
    except ValueError:
        return False
    return bool(np.isfinite(number)) and number_text(number) == label


def sort_labels(labels: Sequence[str], kind: Kind) -> list[str]:
    """Sort numbers by size, everything else by code point, the special categories last."""
    special = [label for label in (OTHER, MISSING) if label in labels]
    plain = [label for label in labels if label not in (OTHER, MISSING)]
    if kind in (*NUMERIC, *CALENDAR):
        return sorted(plain, key=lambda label: (as_number(label, kind), label)) + special
    return sorted(plain) + special


OTHERS = "other "
"""Before the name of a generalised value: what lies under it besides the values and generalised values that are
shown."""


def bare(label: str) -> str:
    """Return the generalised value after which a placeholder is named."""
    return label.removeprefix(OTHERS)


def _stars(label: str) -> int:
    label = strip_number(label)
    return len(label) - len(label.rstrip("*")) if label not in ANYTHING else 1 << 30


def masks(label: str, value: str) -> bool:
    """Return whether a masked text covers a value: 130** covers 13021, * covers everything."""
    label = strip_number(label)
    kept = label.rstrip("*")
    return label in ANYTHING or (kept != label and len(label) == len(value) and value.startswith(kept))


PLAIN = Format()


def whole_domain(low: int, high: int, bottom: bool, top: bool, missing: bool, written: Format = PLAIN) -> Domain:
    """Return all whole numbers from low to before high, with open ends and a missing cell."""
    ends = float(high) if top else None, float(low) if bottom else None
    labels = [label for _, label in end_labels(None, ends[1])]
    values = [*labels, *map(str, range(low, high)), *(label for _, label in end_labels(ends[0], None))]
    kind: Kind = "string" if bottom or top or not range(low, high) else "integer"
    return Domain(
        (*values, *([MISSING] if missing else [])),
        kind,
        format=written,
        top=ends[0],
        bottom=ends[1],
        integers=(low, high),
    )


def bin_labels(edges: Sequence[float], measure: str | None = None) -> tuple[str, ...]:
    """Return labels of half-open intervals, the last one closed: [0, 18), [18, 30), ... [75, 120]. Ends may be open:
    "90 and above"."""
    if measure is not None:
        return span_labels(tuple(edges), measure)
    texts = [number_text(edge) for edge in edges]
    out = []
    for i, (low, high) in enumerate(itertools.pairwise(texts)):
        if edges[i] == -np.inf and edges[i + 1] == np.inf:
            out.append("any")
        elif edges[i] == -np.inf:
            out.append(f"below {high}")
        elif edges[i + 1] == np.inf:
            out.append(f"{low} and above")
        else:
            out.append(f"[{low}, {high}{']' if i == len(texts) - 2 else ')'}")
    return tuple(out)
