"""Delimited text to numbers: every different text of a column has one, in the order in which they first occur.

A block of bytes is read once, record by record. What is not plain is not guessed at: a record with too few or too many
cells, or a quote that ends in the middle of a cell, stops the kernel before that record.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

QUOTE = 34
LF = 10
CR = 13
EXHAUSTED = 0
"""The rest of the block is no whole record."""
FILLED = 1
"""There is no room for another record."""
CROWDED = 2
"""A column has half as many texts as its table has places: give it more and begin again."""
UNDECIDED = 3
"""The record is not plain."""
WORD = 7
"""Texts up to this long are their own keys."""
EIGHT = np.uint64(8)
TOP = np.uint64(56)
LONG = np.uint64(0xFF << 56)
BASIS = np.uint64(0xCBF29CE484222325)
PRIME = np.uint64(0x100000001B3)
SPREAD = np.uint64(0x9E3779B97F4A7C15)


@kernel
def number_cells(data, start, stop, last, separator, wanted, shifts, places, keys, numbers, begins, ends, found, out):
    """Number the cells of the records in data[start:stop]: why it ended, where the next one begins, how many they are.

    data[stop] is room for one byte, and data[stop + 1:] room for texts with doubled quotes, as many bytes as the block
    has. `last`: nothing follows the block. wanted[c]: which column of `out` a column of the text is, or -1. The table
    of the texts of a column w has 2 ** (64 - shifts[w]) places from places[w] on, all of them 0 at first, for the key
    of a text and its number plus one; the text begins and ends at begins[places[w] // 2 + number] and ends[...].
    """
    columns = wanted.size
    rows = out.shape[1]
    data[stop] = LF
    spare = stop + 1
    crowded = False
    row = 0
    at = start
    while row < rows and not crowded:
        start = at
        if start >= stop:
            return EXHAUSTED, start, row
        if columns > 1 and (data[at] == LF or data[at] == CR):
            at += 1
            continue
        column = 0
        while True:
            key = np.uint64(0)
            begin = at
            if data[at] == QUOTE and at < stop:
                at += 1
                begin = at
                doubled = False
                while True:
                    while at < stop and data[at] != QUOTE:
                        at += 1
                    if at + 1 >= stop and not (last and at < stop):
                        return UNDECIDED if last else EXHAUSTED, start, row
                    if data[at + 1] != QUOTE or at + 1 == stop:
                        break
                    doubled = True
                    at += 2
                end = at
                at += 1
                if data[at] != separator and data[at] != LF and data[at] != CR:
                    return UNDECIDED, start, row
                if doubled:
                    i = begin
                    begin = spare
                    while i < end:
                        data[spare] = data[i]
                        spare += 1
                        i += 2 if data[i] == QUOTE else 1
                    end = spare
                if end - begin <= WORD:
                    for i in range(begin, end):
                        key = (key << EIGHT) | np.uint64(data[i])
            else:
                byte = data[at]
                while byte != separator and byte != LF and byte != CR:  # noqa: PLR1714 (a tuple is slower)
                    key = (key << EIGHT) | np.uint64(byte)
                    at += 1
                    byte = data[at]
                end = at
            if (at == stop and not last) or column == columns:
                return EXHAUSTED if column < columns else UNDECIDED, start, row
            w = wanted[column]
            if w >= 0:
                long = end - begin > WORD
                if long:
                    key = BASIS
                    for i in range(begin, end):
                        key = (key ^ np.uint64(data[i])) * PRIME
                    key |= LONG
                else:
                    key |= np.uint64(end - begin) << TOP
                base = places[w]
                half = base >> 1
                mask = (np.uint64(1) << np.uint64(64 - shifts[w])) - np.uint64(1)
                place = (key * SPREAD) >> np.uint64(shifts[w])
                while True:
                    slot = base + np.int64(place)
                    number = np.int64(numbers[slot]) - 1
                    if number < 0:
                        number = found[w]
                        found[w] = number + 1
                        keys[slot] = key
                        numbers[slot] = number + 1
                        begins[half + number] = begin
                        ends[half + number] = end
                        crowded |= np.uint64(2 * (number + 1)) > mask
                        break
                    if keys[slot] == key:
                        if not long:
                            break
                        other = begins[half + number]
                        same = ends[half + number] - other == end - begin
                        i = 0
                        while same and i < end - begin:
                            same = data[other + i] == data[begin + i]
                            i += 1
                        if same:
                            break
                    place = (place + np.uint64(1)) & mask
                out[w, row] = number
            column += 1
            if data[at] == separator and at < stop:
                at += 1
                continue
            break
        if column < columns:
            return UNDECIDED, start, row
        if at < stop:
            if data[at] == CR:
                if at + 1 == stop and not last:
                    return EXHAUSTED, start, row
                if data[at + 1] == LF and at + 1 < stop:
                    at += 1
            at += 1
        row += 1
    return CROWDED if crowded else FILLED, at, row


@kernel
def gather_texts(data, begins, ends, out):
    """out = the texts data[begins[i]:ends[i]], one after the other."""
    at = 0
    for i in range(begins.size):
        for j in range(begins[i], ends[i]):
            out[at] = data[j]
            at += 1
