"""Whether a general value says what it covers: its name is read again, by nobody who gave it.

A release that publishes "34" and declares it a node over all ages would look as if it hid something. So a name must be
that of the one value it covers, a list of its values, an interval with these ends, a masked text, or say that it leaves
everything open; or an auditor's hierarchy must have it.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import MISSING, OTHER, OTHERS, Domain, bare, masks
from noren.schema.extents import ANYTHING, bounds_on, ends_of, kind_of, unnumbered
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import CALENDAR, NUMERIC, Kind, as_number
from noren.schema.nodes import Nodes, tree_of

OR_MISSING = f" or {MISSING}"


def misnamed(domain: Domain, nodes: Nodes) -> list[str]:
    """The names of nodes that are not those of what they cover; nodes that cover the same as another one too."""
    out = []
    seen: set[tuple[tuple[int, int], ...]] = set()
    for node, (label, runs) in enumerate(zip(nodes.labels, nodes.runs, strict=True)):
        key = tuple(runs)
        twice = key in seen and unnumbered(label) not in ANYTHING  # where there is one value, it is everything
        if twice or not _names(domain, label, set(nodes.members(node).tolist())):
            out.append(label)
        seen.add(key)
    return out


def unlike(nodes: Nodes, hierarchy: Hierarchy) -> list[str]:
    """The names of nodes that are none of a hierarchy over the same values, or cover something else there."""
    known = tree_of(hierarchy).nodes
    expected = dict(zip(known.labels, known.runs, strict=True))
    return [label for label, runs in zip(nodes.labels, nodes.runs, strict=True) if expected.get(label) != runs]


def _names(domain: Domain, label: str, members: set[int]) -> bool:
    gone = domain.missing_code
    if label == MISSING:
        return members == {gone}
    if label in domain.index:
        return members == {domain.index[label]}
    if label.endswith(OR_MISSING) and gone is not None:
        return gone in members and _names(domain, label.removesuffix(OR_MISSING), members - {gone})
    inner = unnumbered(label)
    if inner[:1] == "{" and inner == "{" + ", ".join(domain.values[code] for code in sorted(members)) + "}":
        return True
    if inner.rstrip() in ANYTHING:
        return members | ({gone} - {None}) == set(range(len(domain)))
    if domain.hidden:
        return _stands(domain, label, members)
    return members == _covered(domain, label)


def _stands(domain: Domain, label: str, members: set[int]) -> bool:
    """Whether a general value covers its stand-in, and no value that its characters exclude."""
    own = {domain.index[name] for name in (label, OTHERS + label) if name in domain.hidden}
    shown = [domain.values[code] for code in members]
    plain = [value for value in shown if value not in domain.hidden and value not in (MISSING, OTHER)]
    starred = label.rstrip("*") != label
    fits = all(masks(label, value) for value in plain) and all(masks(label, bare(one)) for one in shown)
    return bool(own & members) and (fits or not starred)


def _covered(domain: Domain, label: str) -> set[int] | None:
    """The base values between the ends that a label says; None if it says none."""
    kind: Kind = domain.kind
    if domain.measure is not None:
        kind = kind_of(domain.measure)
    elif domain.edges is not None or domain.has_ends:
        kind = "number"
    elif domain.integers is not None:
        kind = "integer"
    elif kind not in (*NUMERIC, *CALENDAR):
        return _between(domain, label)
    ends = ends_of(label, kind)
    if ends is None:
        return _between(domain, label)
    if domain.edges is not None:
        edges = _edges(tuple(domain.edges))
        low, high = (ends.low, ends.high) if domain.measure is None else bounds_on(ends, domain.measure)
        return set(np.flatnonzero((edges[:-1] >= low) & (edges[1:] <= high)).tolist())
    low, high = bounds_on(ends, "integer") if domain.integers is not None else (ends.low, ends.high)
    closed = ends.closed and domain.integers is None
    out = set()
    for code, value in enumerate(domain.values):
        if value in (MISSING, OTHER):
            continue
        first, last = _place(domain, value, kind)
        if first >= low and (last < high or (closed and last == high) or (last == inf == high)):
            out.add(code)
    return out


@lru_cache(maxsize=4)
def _edges(edges: tuple[float, ...]) -> NDArray[np.float64]:
    """The same edges for thousands of labels."""
    return np.asarray(edges)


def _place(domain: Domain, value: str, kind: Kind) -> tuple[float, float]:
    if domain.bottom is not None and value.startswith("below "):
        return -inf, float(np.nextafter(domain.bottom, -inf))
    if domain.top is not None and value.endswith(" and above"):
        return domain.top, inf
    at = as_number(value, kind)
    return at, at


def _between(domain: Domain, label: str) -> set[int] | None:
    """From one value of an ordered domain to another: "[low, high]"."""
    inner = unnumbered(label)
    if inner[:1] != "[" or inner[-1:] != "]":
        return None
    for cut in range(len(inner)):
        low, high = inner[1:cut], inner[cut + 2 : -1]
        if inner[cut : cut + 2] == ", " and low in domain.index and high in domain.index:
            return set(range(domain.index[low], domain.index[high] + 1))
    return None
