"""Single records are dropped where that helps the others of their class more than it costs."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.mondrian.kernels.moves import LEAST_GAIN, lists, look, new_desk, saving, spares, unlink


def drop(records, begins, of, losses, costs, required, price, budget):
    """Drop at most `budget` records, so that their class is -1: each only if the others of its class gain more than
    `price`, those first that help most. Returns how many. The rest as in `move_records`."""
    return _drop(records, lists(begins, of), losses, costs, required, new_desk(records, required), price, budget)


@kernel
def _drop(records, members, losses, costs, required, desk, price, budget):
    """`drop` in room that was made for it."""
    rows, secrets, least = records.rows, records.secrets, required.least
    n, count = len(rows), len(members.head)
    of, head, links, size = members
    edges, hists, loss = desk.edges, desk.hists, losses.loss
    gains = np.zeros(n)
    dropped = 0
    made = 1
    while made and dropped < budget:
        made = 0
        gains[:] = 0
        for c in range(count):
            if size[c] > least and loss[c] > 0:
                look(rows, c, members, costs, losses, edges)
                r = head[c]
                while r >= 0:
                    gains[r] = saving(rows, r, c, size[c], losses, costs, edges)
                    r = links[r, 0]
        for r in stable_order(-gains):
            if gains[r] <= price + LEAST_GAIN or dropped == budget:
                break
            c = of[r]
            if size[c] <= least:
                continue
            look(rows, c, members, costs, losses, edges)
            gain = saving(rows, r, c, size[c], losses, costs, edges)
            if gain <= price + LEAST_GAIN:
                continue
            if not spares(secrets, c, r, members, required, hists):
                continue
            unlink(r, c, members)
            look(rows, c, members, costs, losses, edges)
            of[r] = -1
            dropped += 1
            made += 1
    return dropped
