"""Long lists on a page: the worst lines are shown, the rest are counted. The JSON holds everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST = 10
"""Lines of one kind."""
MANY_COLUMNS = 20
"""Published columns from which those of one kind share a line."""


def worst(found: Sequence[Any], badness: Callable[[Any], float], most: int = MOST) -> list[Any]:
    """The worst of them in the order they came."""
    if len(found) <= most:
        return list(found)
    ranked = sorted(range(len(found)), key=lambda at: -badness(found[at]))[:most]
    return [found[at] for at in sorted(ranked)]


def counted(found: Sequence[Any], most: int = MOST) -> str:
    """A sentence for what is not shown; empty where all is."""
    more = len(found) - most
    return "" if more <= 0 else f"{more} more, all of them less, stand in the JSON of this report."


def verdicts(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Verdicts that fail or are undecided first, then those nearest to their limit."""

    def badness(one: Mapping[str, Any]) -> float:
        near = 1 - abs((one["achieved"] or 0.0) - one["required"]) / max(abs(one["required"]), 1e-9)
        return (2.0 if one["holds"] is False else 1.5 if one["holds"] is None else 0.0) + min(max(near, 0.0), 1.0)

    return worst(found, badness)


def columns(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Published columns; where there are many, those of one role, form and requirement share a line."""
    if len(found) <= MANY_COLUMNS:
        return [dict(one) for one in found]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for one in found:
        groups.setdefault((one["role"], one["form"], tuple(one["requirements"])), []).append(one)
    out = []
    for (role, form, asked), some in groups.items():
        sizes = [one["values"] for one in some if one["values"]]
        said = {one["published"] for one in some}
        out.append(
            {
                "name": f"{len(some)}: {', '.join(one['name'] for one in some)}" if len(some) > 1 else some[0]["name"],
                "role": role,
                "published": said.pop() if len(said) == 1 else f"as {form}s",
                "values": max(sizes) if sizes else None,
                "domain_from": ", ".join(dict.fromkeys(one["domain_from"].split(";")[0] for one in some)),
                "requirements": list(asked),
            }
        )
    return out
