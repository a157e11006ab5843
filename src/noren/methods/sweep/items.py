"""Records to items and entries, which SWEEP counts, and back: an item is one combination of quasi-identifier values, an
entry one sensitive combination of an item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.ragged import first_of, in_order, offsets_of, ranges, row_numbers, runs

if TYPE_CHECKING:
    from noren.methods.sweep.kernels import Closings, Combinations, OpenEntries, Queue, Room, Sensitive


def number_items(codes: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """The number of every record's combination codes[:, i], in order of appearance, and how many there are.

    sizes: the codes of a column are below this.
    """
    number = row_numbers(list(codes), sizes, codes.shape[1])
    first = first_of(number)
    place = np.empty(len(first), np.int64)
    place[in_order(first)] = np.arange(len(first))
    return place[number], len(first)


def list_entries(
    rows: NDArray[np.int64], item: NDArray, code: NDArray[np.int64], items: int, codes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], OpenEntries]:
    """The rows by item and code, equal ones as they came; where each entry begins among them; and the entries."""
    from noren.methods.sweep.kernels import OpenEntries

    key = item[rows].astype(np.int64) * codes + code[rows]
    order = in_order(key)
    rows, begin = rows[order], runs(key[order])
    one = rows[begin[:-1]]
    start = offsets_of(np.bincount(item[one], minlength=items))
    return rows, begin, OpenEntries(start, code[one].astype(np.int32), np.diff(begin))


def room_for(
    entries: OpenEntries, combined: Combinations, sensitive: Sensitive, limit: int
) -> tuple[Room | None, Queue | None]:
    """Room to work in for what SWEEP seldom meets: generalised secrets or a limit, and several sensitive columns."""
    from noren.methods.sweep.kernels import Queue, Room

    values, joint = int(sensitive.first[-1]), combined.nodes.shape[1] > 1
    if not joint and limit < 0 and entries.code.max(initial=-1) < values:
        return None, None
    most = max(len(combined.nodes), values)
    nodes = np.zeros(len(sensitive.member_start) - 1, np.int64)
    room = Room(np.zeros(values), np.empty(most, np.int64), np.empty(values), nodes)
    heads, follower = np.empty((3, len(combined.nodes)), np.int64), np.empty(len(entries.code), np.int64)
    return room, Queue(heads, follower) if joint else None


def classes_of_rows(rows: NDArray[np.int64], begin: NDArray[np.int64], closed: Closings, n: int) -> NDArray[np.int32]:
    """The class of every record, -1 for those that are still open: the first rows of every entry."""
    order = in_order(closed.entry)
    entry, count = closed.entry[order], closed.count[order].astype(np.int64)
    ahead = offsets_of(count)[:-1]
    same = runs(entry)
    ahead -= np.repeat(ahead[same[:-1]], np.diff(same))
    stops = begin[entry + 1] - ahead
    out = np.full(n, -1, np.int32)
    out[rows[ranges(stops - count, stops)]] = np.repeat(closed.number[order], count)
    return out
