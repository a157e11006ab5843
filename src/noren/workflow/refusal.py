"""What a holder is told when columns tell each other: a line a decision, the worst first, the ways out once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from noren.errors import MOST_LISTED, PolicyError, Problem
from noren.policy.policy import Policy
from noren.policy.toml import value

DEVIATIONS = 2.0
"""Standard errors that are counted against the holder."""
LINES = MOST_LISTED - 1
"""Columns with a line of their own: a last line with the remedies still fits into what an error lists."""
NAMED = 6
"""Names in one list, before the rest is counted."""


@dataclass(frozen=True)
class Told:
    """What one published column tells about another."""

    protected: str
    by: str
    more: float
    """People whose true value is believed with certainty, and not by their own cell: expected over the design."""
    alone: float
    """People whose own cell makes it certain."""
    asked: int
    """Imagined people whose secrets were asked for."""
    people: int
    """People of the release, each of whom is drawn for once."""

    @property
    def share(self) -> float:
        """People who are certain from both."""
        return min(1.0, self.more + self.alone)

    @property
    def at_most(self) -> float:
        """What the other column tells if the draw is not kind, by two standard errors."""
        more = min(1.0, max(0.0, self.more))
        return more + DEVIATIONS * float(
            np.sqrt(more * (1 - more) * (1 / max(1, self.people) + 1 / max(1, self.asked)))
        )

    @property
    def both(self) -> frozenset[str]:
        return frozenset((self.protected, self.by))


def least_refused(most: float, people: int, asked: int) -> float:
    """The least expected share that is refused with this limit, when so many people are asked: the smaller root of
    (most - x)^2 = 4 c x (1 - x)."""
    c = DEVIATIONS**2 * (1 / max(1, people) + 1 / max(1, asked))
    half = most + c / 2
    return float((half - np.sqrt(max(0.0, half**2 - (1 + c) * most**2))) / (1 + c))


def cover(found: Sequence[Told], order: Callable[[str], int]) -> dict[str, list[Told]]:
    """Few columns without which no pair is left, each with its pairs: those in most pairs first, of equals what tells
    more, then what stands later in the table."""
    left, out = list(found), {}
    while left:
        pairs: dict[str, set[frozenset[str]]] = {}
        weight: dict[str, float] = {}
        for one in left:
            for name in one.both:
                pairs.setdefault(name, set()).add(one.both)
                weight[name] = weight.get(name, 0.0) + one.more
        best = max(pairs, key=lambda name: (len(pairs[name]), round(weight[name], 9), order(name)))
        out[best] = sorted((one for one in left if best in one.both), key=lambda one: -one.more)
        left = [one for one in left if best not in one.both]
    return out


def refused(found: Sequence[Told], hidden: Collection[str], order: Sequence[str], policy: Policy) -> PolicyError:
    """The refusal of a draft whose columns tell each other: `hidden` are those that are published hidden."""
    groups = cover(found, order.index)
    lines = sorted(groups, key=lambda name: -groups[name][0].more)
    problems = [Problem(f"attributes.{name}", _line(name, groups[name])) for name in lines[:LINES]]
    rest = [one for name in lines[LINES:] for one in groups[name]]
    if rest:
        columns = {name for one in rest for name in one.both}
        problems.append(Problem("attributes", f"and {len(rest)} more pairs, among {len(columns)} columns."))
    problems[-1] = Problem(
        problems[-1].where, problems[-1].message, _ways_out(found, list(groups), hidden, order, policy)
    )
    return PolicyError(problems, source=policy.source)


def _line(name: str, pairs: Sequence[Told]) -> str:
    """The worst of a column's pairs, and which others there are."""
    worst = pairs[0]
    text = (
        f"{worst.by!r} tells {worst.protected!r}: {worst.share:.0%} of the people are certain from both, "
        f"{worst.alone:.0%} from {worst.protected!r} alone."
    )
    tellers = [one.by for one in pairs[1:] if one.protected == name]
    told = [one.protected for one in pairs[1:] if one.by == name]
    if tellers:
        text += f" {name!r} is told by {_listed(tellers)} too."
    if told:
        text += f" {name!r} tells {_listed(told)} too."
    return text


def _ways_out(
    found: Sequence[Told], few: Sequence[str], hidden: Collection[str], order: Sequence[str], policy: Policy
) -> str:
    leave = [member for name in few for member in policy.composites.get(name, (name,))]
    open_ = sorted({one.by for one in found if one.by not in hidden}, key=order.index)
    most = max(one.at_most for one in found)
    return (
        f"Leave {_listed(leave, len(leave))} out (role 'drop'); "
        + (f"protect {_listed(open_)} too; " if open_ else "")
        + f"or hide them together, by the line {_together(found, order, policy)} above [attributes]. "
        f"[dependence] most = {min(1.0, most + 0.01):.2f} accepts it."
    )


def _together(found: Sequence[Told], order: Sequence[str], policy: Policy) -> str:
    """The line of a policy that hides columns together; what is a composite already gives its members."""
    group: dict[str, set[str]] = {}
    for one in found:
        both = group.get(one.by, {one.by}) | group.get(one.protected, {one.protected})
        group |= dict.fromkeys(both, both)
    different = sorted(
        {tuple(sorted(names, key=order.index)) for names in group.values()}, key=lambda n: order.index(n[0])
    )
    lists = [[member for name in names for member in policy.composites.get(name, (name,))] for names in different]
    return f"together = {value(lists[0] if len(lists) == 1 else lists)}"


def _listed(names: Sequence[str], most: int = NAMED) -> str:
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        return ", ".join(shown) + f" and {len(names) - most} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
