"""Whether a general value says what it covers: its name is read again, by nobody who gave it.

A release that publishes "34" and declares it a node over all ages would look as if it hid something. So a name must be
that of the one value it covers, a list of its values, an interval with these ends, a masked text, or say that it leaves
everything open; or an auditor's hierarchy must have it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import MISSING, OTHER, OTHERS, Domain, bare, masks
from noren.schema.extents import ANYTHING, bounds_on, ends_of, kind_of, unnumbered
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import CALENDAR, NUMERIC, Kind, as_number
from noren.schema.nodes import Nodes, runs_of, tree_of

OR_MISSING = f" or {MISSING}"
Runs = tuple[tuple[int, int], ...]
"""Codes as rising runs that do not touch: from the first of each to before the last."""


def misnamed(domain: Domain, nodes: Nodes) -> list[str]:
    """The names of nodes that are not those of what they cover; nodes that cover the same as another one too."""
    out, reader = [], _Reader(domain)
    seen: set[Runs] = set()
    for label, runs in zip(nodes.labels, map(tuple, nodes.runs), strict=True):
        twice = runs in seen and unnumbered(label) not in ANYTHING  # where there is one value, it is everything
        if twice or not reader.names(label, runs):
            out.append(label)
        seen.add(runs)
    return out


def unlike(nodes: Nodes, hierarchy: Hierarchy) -> list[str]:
    """The names of nodes that are none of a hierarchy over the same values, or cover something else there."""
    known = tree_of(hierarchy).nodes
    expected = dict(zip(known.labels, known.runs, strict=True))
    return [label for label, runs in zip(nodes.labels, nodes.runs, strict=True) if expected.get(label) != runs]


class _Reader:
    """Reads what labels say of the values of one domain, of which there may be many thousands: as runs of codes."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def names(self, label: str, runs: Runs) -> bool:
        """Whether a label names exactly these codes."""
        domain, gone = self.domain, self.domain.missing_code
        if label == MISSING:
            return gone is not None and runs == ((gone, gone + 1),)
        if label in domain.index:
            code = domain.index[label]
            return runs == ((code, code + 1),)
        if label.endswith(OR_MISSING) and gone is not None:
            others = _without(runs, gone)
            return others != runs and self.names(label.removesuffix(OR_MISSING), others)
        inner = unnumbered(label)
        if inner[:1] == "{" and inner == "{" + ", ".join(domain.values[code] for code in _codes(runs)) + "}":
            return True
        if inner.rstrip() in ANYTHING:
            whole = ((0, len(domain)),)
            return runs == whole or (gone is not None and runs == _without(whole, gone))
        if domain.hidden:
            return _stands(domain, label, set(_codes(runs)))
        return runs == self._covered(label)

    def _covered(self, label: str) -> Runs | None:
        """The base values between the ends that a label says; None if it says none."""
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
        """The bins that lie between two ends whole."""
        edges = self._edges
        if not self._rising:
            return tuple(runs_of(np.flatnonzero((edges[:-1] >= low) & (edges[1:] <= high)).tolist()))
        listed = self.domain.edges or ()
        first, stop = bisect_left(listed, low), bisect_right(listed, high) - 1
        return ((first, stop),) if first < stop else ()

    @cached_property
    def _kind(self) -> Kind | None:
        """What ends are read as; None where values have no place on a line."""
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
        """From where to where every value reaches; values without a place reach nowhere."""
        kind: Kind = self._kind or "number"
        nowhere = (nan, nan)
        found = [nowhere if v in (MISSING, OTHER) else _place(self.domain, v, kind) for v in self.domain.values]
        return np.array([one[0] for one in found]), np.array([one[1] for one in found])


def _codes(runs: Runs) -> Iterator[int]:
    return (code for start, stop in runs for code in range(start, stop))


def _without(runs: Runs, code: int) -> Runs:
    """The runs without one of their codes."""
    out = []
    for start, stop in runs:
        parts = ((start, code), (code + 1, stop)) if start <= code < stop else ((start, stop),)
        out += [part for part in parts if part[0] < part[1]]
    return tuple(out)


def _stands(domain: Domain, label: str, members: set[int]) -> bool:
    """Whether a general value covers its stand-in, and no value that its characters exclude."""
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
    """From one value of an ordered domain to another: "[low, high]"."""
    inner = unnumbered(label)
    if inner[:1] != "[" or inner[-1:] != "]":
        return None
    for cut in range(len(inner)):
        low, high = inner[1:cut], inner[cut + 2 : -1]
        if inner[cut : cut + 2] == ", " and low in domain.index and high in domain.index:
            first, last = domain.index[low], domain.index[high]
            return ((first, last + 1),) if first <= last else ()
    return None
