"""The first search of a group under closeness: a proof alone, with few nodes. Most groups need no other.

So most tables never compile the search that makes good first choices and exchanges. That one is for groups where this
one has not ended after `FEW` nodes; and since compiling costs as much as looking at some more nodes, the groups of a
table that are left may look at `MORE` together before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.methods.suppress.choices import overlap_order
from noren.methods.suppress.clock import Clock

FEW = 1 << 12
"""Nodes of a group: no more than a good first choice and its bounds cost."""
MORE = 1 << 20
"""Nodes of all groups that are left together: less than what compiling the other search costs."""
SHARE = 0.25
"""Of the time and the nodes that a group has."""


def patience(groups: int, nodes: int | None, pool: int = MORE) -> int:
    """Nodes for each of so many groups that `FEW` were not enough for, of all that it has; 0 if those are no more.
    pool: what the groups have left together."""
    each = max(0, pool) // max(1, groups)
    if nodes is not None:
        each = min(each, int(SHARE * nodes))
    return each if each > FEW else 0


def proven(group: Any, rule: Any, clock: Clock, most: int) -> tuple[NDArray[np.int64] | None, float, int] | None:
    """The cheapest option of every record (None: no choice meets the requirement), its cost, and how many options were
    looked at; or None if that is not known after so many."""
    from noren.methods.suppress.kernels import plain
    from noren.methods.suppress.kernels.judge import CL, EMD

    if rule.kind == CL or not group.complete.all() or most <= 0:
        return None
    if rule.kind == EMD:
        group = group._replace(flat=np.zeros_like(group.flat))
        wanted = rule.bound - rule.tolerance
    else:
        wanted = rule.alpha_square * rule.records**2 - rule.bound - rule.tolerance
    end, limit = clock.share(SHARE, 0)
    limit = min(limit, most)
    order = overlap_order(group)
    front = plain.no_nodes(limit + int(np.diff(group.first).max()) + 1)
    choice = np.empty(order.size, np.int64)
    done = False

    def step(budget: int) -> None:
        nonlocal done
        done = bool(plain.prove(group, rule, order, wanted, front, choice, budget))

    clock.run(step, front.counters, plain.LOOKED, end, limit)
    if not done:
        return None
    cost, looked = float(front.numbers[plain.BEST]), int(front.counters[plain.LOOKED])
    if not np.isfinite(cost):
        return None, cost, looked
    by_record = np.empty_like(choice)
    by_record[order] = choice
    return by_record, cost, looked
