"""The values a column may take, in their order. Codes elsewhere are positions in this list."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

MISSING = "(missing)"
OTHER = "(other)"

Kind = Literal["string", "integer", "number", "boolean"]
DomainSource = Literal["policy", "data", "bins", "hierarchy"]


def is_number(text: str) -> bool:
    """Whether a text reads as a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def has_no_order(values: Sequence[str]) -> bool:
    """Whether numbers and other texts are mixed, so that neither size nor alphabet puts them in order."""
    plain = [value for value in values if value not in (MISSING, OTHER)]
    numbers = sum(map(is_number, plain))
    return 0 < numbers < len(plain)


@dataclass(frozen=True)
class Domain:
    """An ordered list of value labels and what kind of value they write down."""

    values: tuple[str, ...]
    kind: Kind = "string"
    source: DomainSource = "data"
    merged: int = 0
    """How many rare values were merged into "(other)"."""
    edges: tuple[float, ...] | None = field(default=None)
    """Bin edges, for a domain made of bins."""

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
        """Whether the order of the values means something."""
        return self.edges is not None or self.kind in ("integer", "number") or self.source == "policy"

    @property
    def is_range(self) -> bool:
        """Whether the values are all whole numbers from the first to the last, whichever of them occur."""
        if self.kind != "integer" or self.values[-1:] in ((MISSING,), (OTHER,)):
            return False
        return int(self.values[-1]) - int(self.values[0]) == len(self) - 1

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """The values as numbers (bins by their middle), or None where one is not a number."""
        if self.edges is not None:
            edges = np.asarray(self.edges)
            middles = (edges[:-1] + edges[1:]) / 2
            return middles if len(middles) == len(self) else None
        try:
            return np.array([float(value) for value in self.values])
        except ValueError:
            return None

    def typed(self) -> list[Any]:
        """The values as the published type has them; the missing category of a typed domain is None."""
        return [None if self.kind != "string" and v == MISSING else parse(v, self.kind) for v in self.values]


def parse(label: str, kind: Kind) -> Any:
    if kind == "integer":
        return int(label)
    if kind == "number":
        return float(label)
    if kind == "boolean":
        return label == "true"
    return label


def fits_kind(labels: Sequence[str], kind: Kind) -> bool:
    """Whether every label writes down a value of the kind."""
    plain = [label for label in labels if label != MISSING]
    if kind == "integer":
        return all(map(_is_integer, plain))
    if kind == "number":
        return all(_is_integer(label) or _is_number(label) for label in plain)
    return kind == "string" or set(plain) <= {"true", "false"}


def infer_kind(labels: Sequence[str]) -> Kind:
    """The narrowest kind whose texts round-trip, so that "01234" stays a string and never becomes 1234."""
    plain = [label for label in labels if label not in (MISSING, OTHER)]
    if OTHER in labels or not plain:
        return "string"
    if all(_is_integer(label) for label in plain):
        return "integer"
    if all(_is_number(label) for label in plain):
        return "number"
    if set(plain) <= {"true", "false"}:
        return "boolean"
    return "string"


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
    """Numbers by size, everything else by code point, the special categories last."""
    special = [label for label in (OTHER, MISSING) if label in labels]
    plain = [label for label in labels if label not in (OTHER, MISSING)]
    if kind in ("integer", "number"):
        return sorted(plain, key=lambda label: (float(label), label)) + special
    return sorted(plain) + special


def bin_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """Half-open intervals, the last one closed: [0, 18), [18, 30), ... [75, 120]."""
    texts = [number_text(edge) for edge in edges]
    pairs = list(itertools.pairwise(texts))
    return tuple(f"[{low}, {high}{']' if i == len(pairs) - 1 else ')'}" for i, (low, high) in enumerate(pairs))


def number_text(value: float) -> str:
    """A number as a person writes it: 18 rather than 18.0."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
