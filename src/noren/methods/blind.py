"""Blind classes, formed from quasi-identifiers only, with increasing size until every class meets the requirements.

The secrets decide one number, the size, which is published. Sizes that are tried stand on a fixed scale, and every try
puts the records in the same random order: otherwise the secrets would choose among orders too. A size that holds is
taken or passed by the toss of a coin, so that no size proves that a smaller one failed.

Then the records of every class are dealt to groups at random, and quasi-identifiers take no part in it: whoever swaps
the secrets of two members of a group finds the same groups with the same probability. So nobody who knows the method
learns more about a member of a group than how common every secret is in the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import RandomOrder, Records
from noren.errors import Problem, RequirementNotMet
from noren.models.base import Model
from noren.ragged import offsets_of, ranges

if TYPE_CHECKING:
    from noren.methods.requirements import Compiled

CLASS_SIZE = "class_size"
"""What the release calls the size that the search came to."""
STEP = 1.25
"""How many times as large the next class size is: a coarse scale tells little of where on it the secrets lie."""
FEWER = 0.75
"""How many times as many groups a class is dealt to next, where some of its groups fell short."""
WHY = (
    "classes are formed from quasi-identifiers only, and their records are dealt to groups at random; secrets "
    "influence one number only, the published class size"
)

Classes = tuple[NDArray[np.int64], int]


def class_sizes(least: int, n: int) -> Iterator[int]:
    """Yield the sizes to try, up to the whole table."""
    size = least
    while size < n:
        yield size
        size = max(size + 1, ceil(size * STEP))
    yield n


def blind_classes(
    table: Records, requirements: Sequence[Model], order: RandomOrder, made: Callable[[int, RandomOrder], Classes]
) -> tuple[NDArray[np.int64], int, dict[str, int | str]]:
    """Return the groups (-1: dropped) of a size for which all classes hold, their number, and the published size."""
    from noren.methods.mondrian.classes import smallest_class
    from noren.methods.requirements import compiled

    needed = compiled(table, requirements)
    guarded = any(column >= 0 for _, column, _, _ in needed)
    orders: dict[int, NDArray[np.int64]] = {}

    def same(n: int) -> NDArray[np.int64]:
        if n not in orders:
            orders[n] = order(n)
        return orders[n]

    least = min(max([smallest_class(needed)[0], *(model.least_class_size for model in requirements)]), table.n)
    for size in class_sizes(least, table.n):
        classes, count = made(size, same)
        if needed.failing(table.codes, classes, count).any():
            continue
        if size == table.n or not guarded or order(2)[0]:
            classes, count = dealt_groups(table, needed, classes, count, least, order(table.n))
            return classes, count, {CLASS_SIZE: size}
    message = "not even all records together meet the requirements."
    raise RequirementNotMet(message, hint="Loosen them.")


def dealt_groups(
    table: Records, needed: Compiled, classes: NDArray[np.int64], count: int, least: int, ranks: NDArray[np.int64]
) -> Classes:
    """Assign the records of classes to as many groups as hold: the group of every record, and their number.

    Records of a class lie secret by secret, each in a random order, and are dealt in turn. A class stays whole where
    several secrets have requirements, or people several records. least: records of a group.
    """
    guarded = {column for _, column, _, _ in needed if column >= 0}
    rows = np.flatnonzero(classes >= 0)
    sizes = np.bincount(classes[rows], minlength=count)
    groups = np.maximum(1, sizes // max(1, least))
    if len(guarded) != 1 or table.people is not None or (groups == 1).all():
        return classes, count
    values = table.codes[needed.sensitive[guarded.pop()]]
    rows = rows[np.lexsort([ranks[rows], values[rows], classes[rows]])]
    mine = classes[rows]
    turn = ranges(np.zeros_like(sizes), sizes)
    out = np.full(len(classes), -1, np.int64)
    while True:
        begins = offsets_of(groups)
        out[rows] = begins[mine] + turn % groups[mine]
        short = np.add.reduceat(needed.failing(table.codes, out, int(begins[-1])), begins[:-1]) > 0
        short &= groups > 1
        if not short.any():
            return out, int(begins[-1])
        groups = np.where(short, np.maximum(1, (groups * FEWER).astype(np.int64)), groups)


def blind_problems(method: str, requirements: Sequence[Model]) -> list[Problem]:
    """Return the requirements that blind classes do not consider."""
    terms = [model for model in requirements if model.about == "terms"]
    message = f"blind classes of {method!r} ignore terms and cannot meet {terms[0].model}." if terms else ""
    return [Problem("method.blind", message, "Leave blind out.")] if terms else []
