"""The classes of `mondrian`: cut, refine, cut again, drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.kernels import requirements as kinds
from noren.kernels.mondrian import cut
from noren.kernels.mondrian_refine import drop, refine
from noren.methods.base import CodedTable, RandomOrder
from noren.methods.mondrian_space import space_of
from noren.methods.requirements import Compiled, compiled
from noren.models.base import Model

if TYPE_CHECKING:
    from noren.methods.mondrian import Mondrian


def classes_of(
    table: CodedTable, requirements: Sequence[Model], order: RandomOrder, method: Mondrian
) -> tuple[NDArray[np.int64], int]:
    """The class of every record (-1: dropped) and the number of classes. All records together meet the requirements.

    Records that look alike are told apart by a random order alone, so that their classes tell nothing of the input.
    """
    rules = compiled(table, requirements)
    space = space_of(table, method.weights)
    least, guarded = smallest_class(rules)
    secrets = np.zeros((table.n, max(1, len(rules.sensitive))), np.int32)
    for j, name in enumerate(rules.sensitive):
        secrets[:, j] = table.codes[name]
    who = np.asarray(order(table.n), np.int64)
    rows, secrets = space.rows[who], secrets[who]

    def divide(begins: NDArray[np.int64]) -> NDArray[np.int64]:
        ends = cut(  # type: ignore[call-arg]
            rows, secrets, who, begins, *space.costs, rules.arguments, space.widths, least, guarded, not method.strict
        )
        return np.concatenate([[0], np.flatnonzero(ends)])

    begins = divide(np.array([0, table.n]))
    awake = np.ones(table.n, bool)
    for _ in range(method.refinement):
        of, count = _numbered(begins)
        touched = refine(  # type: ignore[call-arg]
            rows, secrets, of, awake[begins[:-1]], *space.costs, rules.arguments, space.widths, least, guarded
        )
        if not touched.any():
            break
        together = np.argsort(of, kind="stable")
        rows, secrets, who, awake = rows[together], secrets[together], who[together], touched[of[together]]
        sizes = np.bincount(of, minlength=count)
        begins = divide(np.concatenate([[0], np.cumsum(sizes[sizes > 0])]))
    of, count = _numbered(begins)
    budget = int(method.suppression * table.n + 1e-9)
    if budget:
        drop(  # type: ignore[call-arg]
            rows, secrets, of, count, *space.costs, rules.arguments, least, guarded, space.total, budget
        )
    classes = np.empty(table.n, np.int64)
    classes[who] = of
    return classes, count


def _numbered(begins: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    count = len(begins) - 1
    return np.repeat(np.arange(count), np.diff(begins)), count


def smallest_class(rules: Compiled) -> tuple[int, bool]:
    """The smallest class that any requirement permits, and whether one asks for more than a size."""
    sizes = [1.0]
    for kind, first, second in zip(rules.kinds.tolist(), rules.first.tolist(), rules.second.tolist(), strict=True):
        if kind == kinds.K_ANONYMITY:
            sizes.append(first)
        elif kind in (kinds.ALPHA_K, kinds.P_SENSITIVE):
            sizes.append(second)
        elif kind in (kinds.DISTINCT, kinds.FREQUENCY, kinds.SUBTREES):
            sizes.append(first)
    guarded = bool((rules.kinds != kinds.K_ANONYMITY).any())
    return int(np.ceil(max(sizes) - 1e-9)), guarded
