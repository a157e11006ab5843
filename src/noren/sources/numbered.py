"""Delimited text in UTF-8 as columns of numbered texts, in a quarter of the time of a reader for any text.

Only what is plain is read; anything else ends in `NotPlain` before a record of its block was given out, and is left to
the other reader, which also knows how to explain what is wrong.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from noren.ragged import offsets_of

MOST_ROWS = 1 << 16
"""Of a batch, so that two bytes number its texts."""
FIRST_BITS = 6
"""Tables of texts have 2 to this many places at first."""
MORE_BITS = 2


class NotPlain(Exception):
    """Not for this reader."""


def numbered_batches(
    stream: Any,
    header: Sequence[str],
    columns: Sequence[str],
    *,
    separator: str,
    missing: Sequence[str],
    block: int,
    has_header: bool = True,
) -> Iterator[Any]:
    """RecordBatches of these columns of a binary stream, which begins with a header line or a record.

    Cells are texts, numbered in each batch in the order in which they first occur; those in `missing` are null. All
    batches have one schema, that of the other reader.
    """
    import pyarrow as pa

    nothing = pa.array(missing, pa.string())
    with stream:
        reading = _Reading(stream, len(header), separator, block)
        if has_header:
            reading.skip_header()
        reading.want([columns.index(name) if name in columns else -1 for name in header], len(columns))
        while (rows := reading.number()) is not None:
            if rows:
                arrays = [reading.column(w, rows, nothing) for w in range(len(columns))]
                yield pa.RecordBatch.from_arrays(arrays, list(columns))


class _Reading:
    """The bytes between two positions of a stream, and the tables of the texts in them."""

    def __init__(self, stream: Any, width: int, separator: str, block: int) -> None:
        self._stream = stream
        self._width = width
        self._separator = ord(separator)
        self._block = block
        self._data = np.empty(2 * block + 2, np.uint8)
        self._at = self._stop = 0
        self._last = False
        self._used_up = True

    def _fill(self) -> None:
        """What is left of the block goes to its beginning, and what follows in the stream behind it."""
        left = self._stop - self._at
        self._data[:left] = self._data[self._at : self._stop].copy()
        room = memoryview(self._data.data)[: self._block]
        self._at, self._stop = 0, left
        while self._stop < self._block and not self._last:
            got = self._stream.readinto(room[self._stop :])
            self._stop += got
            self._last = got == 0

    def skip_header(self) -> None:
        """Past a byte order mark, empty lines and the line of names."""
        self._fill()
        if self._data[:3].tobytes() == codecs.BOM_UTF8:
            self._at = min(3, self._stop)
        while self._at < self._stop and self._data[self._at] in b"\r\n":
            self._at += 1
        self.want([-1] * self._width, 0, most=1)
        if self.number() != 1:
            raise NotPlain

    def want(self, wanted: Sequence[int], columns: int, most: int = MOST_ROWS) -> None:
        """Which columns of the text are which of the result."""
        self._wanted = np.array(wanted, np.int64)
        self._bits = np.full(columns, FIRST_BITS, np.int64)
        self._out = np.empty((columns, min(most, self._block // self._width + 1)), np.uint16)

    def number(self) -> int | None:
        """Number the records of the next batch: how many they are, and None where there are no more."""
        from noren.sources.kernels import CROWDED, EXHAUSTED, UNDECIDED, number_cells

        if self._used_up and not self._last:
            self._fill()
        while True:
            places = offsets_of(1 << self._bits)
            size = int(places[-1])
            self._places = places[:-1]
            keys, numbers = np.empty(size, np.uint64), np.zeros(size, np.int32)
            self._begins, self._ends = np.empty(size // 2, np.int64), np.empty(size // 2, np.int64)
            self._found = np.zeros(len(self._bits), np.int64)
            why, at, rows = number_cells(
                self._data,
                self._at,
                self._stop,
                self._last,
                self._separator,
                self._wanted,
                64 - self._bits,
                self._places,
                keys,
                numbers,
                self._begins,
                self._ends,
                self._found,
                self._out,
            )
            if why != CROWDED:
                break
            self._bits[2 * self._found >= 1 << self._bits] += MORE_BITS
        stuck = why == EXHAUSTED and at == 0 and self._stop == self._block and not self._last
        if why == UNDECIDED or stuck:  # or longer than a block
            raise NotPlain
        self._at, self._used_up = at, why == EXHAUSTED
        return None if rows == 0 and self._last else int(rows)

    def column(self, w: int, rows: int, nothing: Any) -> Any:
        """A column of the batch that was numbered last."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from noren.sources.kernels import gather_texts

        numbers = self._out[w, :rows]
        first = self._places[w] // 2
        known = slice(first, first + int(numbers.max()) + 1)  # a record that the block cuts off may have brought more
        begins, ends = self._begins[known], self._ends[known]
        offsets = offsets_of(ends - begins).astype(np.int32)
        gathered = np.empty(offsets[-1], np.uint8)
        gather_texts(self._data, begins, ends, gathered)
        texts = pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(gathered))
        try:
            texts.validate(full=True)  # each text once, not once for every cell
        except pa.ArrowInvalid:
            raise NotPlain from None
        lost = pc.is_in(texts, value_set=nothing)
        if not pc.any(lost).as_py():
            return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), texts)
        kept = ~lost.to_numpy(zero_copy_only=False)
        places = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)[numbers]
        return pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), texts.filter(pa.array(kept)))
