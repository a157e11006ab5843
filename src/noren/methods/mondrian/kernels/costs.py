"""The loss of a class of records in a column, from a summary of its codes.

A column is ranked (a class publishes an interval), a tree (its lowest common node) or a set (the values it covers).
Codes of a tree are numbered depth first, so that the lowest and the highest code decide the common node. The summary
of a set is a word with bit `code % 64`: exact up to 64 values, an estimate by linear counting beyond.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel

RANKED = 0
TREE = 1
SET = 2

NOTHING = np.int32(2**31 - 1)
"""The lowest code of no records."""


class Costs(NamedTuple):
    """The possible losses of a class in the quasi-identifiers, with weights included."""

    kinds: Any
    widths: Any
    """Per column: its kind, and the size of its domain."""
    order: Any
    """The columns as they are looked at: sets last."""
    at: Any
    """(columns, heights, codes): the node above every code of a tree at every height."""
    prices: Any
    """(columns, heights, codes): what that node costs. At height 0 a ranked column has where its codes stand, and a
    set what so many bits cost."""


class Cover(NamedTuple):
    """What some records cover in every column: the lowest and the highest code, and the word of a set.

    One line for a part of the table, several for slots or classes.
    """

    low: Any
    high: Any
    word: Any


@kernel(forceinline=True)
def bit_count(word):
    """Return how many bits of a 64-bit word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel(forceinline=True)
def bit_of(code):
    """Return the word of one code of a set."""
    return np.uint64(1) << np.uint64(code & 63)


@kernel(forceinline=True)
def cell_cost(kinds, at, prices, b, low, high, word):
    """Return the loss of one record of a class in column b.

    It takes the fields of `Costs` one by one: taking them out of the tuple costs more than all the rest.
    """
    if kinds[b] == SET:
        return prices[b, 0, bit_count(word)]
    if kinds[b] == RANKED:
        return prices[b, 0, high] - prices[b, 0, low]
    h = 0
    while at[b, h, low] != at[b, h, high]:
        h += 1
    return prices[b, h, low]
