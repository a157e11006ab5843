"""Blind classes: made from quasi-identifiers alone, for a class size that grows until every class holds.

The secrets decide one number, the size, which is published. Sizes that are tried stand on a fixed scale, and every try
puts the records in the same random order: otherwise the secrets would choose among orders too.
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

if TYPE_CHECKING:
    from noren.methods.requirements import Compiled

CLASS_SIZE = "class_size"
"""What the release calls the size that the search came to."""
STEP = 1.25
"""How many times as large the next class size is: a coarse scale tells little of where on it the secrets lie."""
WHY = "classes are made from quasi-identifiers alone; the secrets decide one number, the class size that is published"

Classes = tuple[NDArray[np.int64], int]


def class_sizes(least: int, n: int) -> Iterator[int]:
    """The sizes that are tried, up to the whole table."""
    size = least
    while size < n:
        yield size
        size = max(size + 1, ceil(size * STEP))
    yield n


def blind_classes(
    table: Records, requirements: Sequence[Model], order: RandomOrder, made: Callable[[int, RandomOrder], Classes]
) -> tuple[NDArray[np.int64], int, dict[str, int | str]]:
    """The classes (-1: dropped) of the smallest size for which all hold, how many there are, and the size as a fact."""
    from noren.methods.mondrian.classes import smallest_class
    from noren.methods.requirements import compiled

    needed = compiled(table, requirements)
    orders: dict[int, NDArray[np.int64]] = {}

    def same(n: int) -> NDArray[np.int64]:
        if n not in orders:
            orders[n] = order(n)
        return orders[n]

    least = max([smallest_class(needed)[0], *(model.least_class_size for model in requirements)])
    for size in class_sizes(min(least, table.n), table.n):
        classes, count = made(size, same)
        if all_hold(table, needed, classes, count):
            return classes, count, {CLASS_SIZE: size}
    message = "not even all records together meet the requirements."
    raise RequirementNotMet(message, hint="Loosen them.")


def all_hold(table: Records, needed: Compiled, classes: NDArray[np.int64], count: int) -> bool:
    """Whether every class meets everything that is asked of it."""
    kept = classes >= 0
    width = needed.rules.reference.shape[1]
    hists = np.zeros((count, max(1, len(needed.sensitive)), width))
    for j, name in enumerate(needed.sensitive):
        flat = np.bincount(classes[kept] * width + table.codes[name][kept], minlength=count * width)
        hists[:, j] = flat.reshape(count, width)
    sizes = np.bincount(classes[kept], minlength=count)
    return all(needed.holds(hists[one], int(sizes[one])) for one in np.flatnonzero(sizes).tolist())


def blind_problems(method: str, requirements: Sequence[Model]) -> list[Problem]:
    """Requirements that blind classes are not tried against."""
    terms = [model for model in requirements if model.about == "terms"]
    message = f"blind classes of {method!r} look at no terms and cannot meet {terms[0].model}." if terms else ""
    return [Problem("method.blind", message, "Leave blind out.")] if terms else []
