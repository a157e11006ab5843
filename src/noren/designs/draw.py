"""Draw decoy sets so that nobody without the secret can tell the decoys from the truth.

Every set has exactly the probability its design states, but for one rounding: with 0 < p < 1 the true value is inside
with probability Pt rounded down to a multiple of 2^-32, never up, so the release is never less private than its
design says (were that less than the blind chance eta/d, the set is drawn blindly).

In memoised mode a set is a pure function of secret, attribute name, record key, true value and design. The constants,
the order of the mask tables and the use of the words below are therefore part of what earlier releases rely on:
changing them changes the decoys of everybody.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from noren.designs.decoys import DecoyDesign
from noren.errors import DataError, SecretError
from noren.secret import Keystream, KeystreamLane, RecordLane, RecordStream
from noren.secret.streams import CODE_LIMIT, Scratch
from noren.statements.set_cells import MASK_LIMIT, SetCells, code_dtype, mask_dtype

TABLE_LIMIT = 1 << 20  # masks; measured: up to here a table is never slower than Floyd, mostly far faster
ROWS_AT_ONCE = 1 << 16  # measured: fewer rows lose more to Python between kernels than they win in cache
WORDS_AT_ONCE = 1 << 18
CELLS_PER_THREAD = 1 << 18  # below this, starting threads costs more than drawing
_TWO_32 = 1 << 32

_Lane = KeystreamLane | RecordLane
_NONE = np.empty(0, np.int64)


def draw_sets(
    design: DecoyDesign,
    codes: NDArray,
    randomness: Keystream | RecordStream,
    *,
    attribute: str,
    digests: NDArray | None = None,
) -> SetCells:
    """One set for each true code, drawn by the design. Memoised randomness also needs the records' digests."""
    return draw_table({attribute: design}, {attribute: codes}, randomness, digests=digests, threads=1)[attribute]


def draw_table(
    designs: Mapping[str, DecoyDesign],
    columns: Mapping[str, NDArray],
    randomness: Keystream | RecordStream,
    *,
    digests: NDArray | None = None,
    threads: int | None = None,
) -> dict[str, SetCells]:
    """Sets for every column, in blocks of rows that stay in cache, shared out to threads."""
    columns = {name: _integers(name, codes) for name, codes in columns.items()}
    n = len(next(iter(columns.values()))) if columns else 0
    if any(len(codes) != n for codes in columns.values()):
        raise ValueError("columns differ in length")
    if isinstance(randomness, RecordStream):
        digests = _checked_digests(digests, n, max((designs[name].d for name in columns), default=0))
    plans = {name: _plan(design.d, design.eta, design.p) for name, design in designs.items() if name in columns}
    cells = {name: plan.empty(n) for name, plan in plans.items()}
    own = _Lanes(randomness)

    def draw_part(start: int, names: list[str]) -> None:
        rows = slice(start, min(start + ROWS_AT_ONCE, n))
        keys = None if digests is None else digests[rows]
        for name in names:
            plan = plans[name]
            codes = _inside_domain(name, plan.d, columns[name][rows])
            plan.draw(own.lane(name) if plan.need else None, codes, keys, cells[name][rows])

    # All columns of a block of rows in one go, so that its digests stay in cache; few rows are split by columns.
    starts = range(0, n, ROWS_AT_ONCE)
    workers = 1 if n * len(columns) < CELLS_PER_THREAD else threads or os.cpu_count() or 1
    groups = -(-workers // len(starts)) if len(starts) else 1
    parts = [(start, list(columns)[group::groups]) for start in starts for group in range(groups)]
    if workers == 1:
        for part in parts:
            draw_part(*part)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(lambda part: draw_part(*part), parts):
                pass
    return {name: SetCells(designs[name].d, data) for name, data in cells.items()}


class _Lanes(threading.local):
    """A cipher serves one thread: each opens its own, once per attribute, over scratch memory of its own."""

    def __init__(self, randomness: Keystream | RecordStream) -> None:
        self._randomness = randomness
        self._scratch = Scratch()
        self._lanes: dict[str, _Lane] = {}

    def lane(self, name: str) -> _Lane:
        if name not in self._lanes:
            self._lanes[name] = self._randomness.lane(name, self._scratch)
        return self._lanes[name]


@dataclass(frozen=True)
class _Plan:
    """How the sets of one design come from words: by a table of masks where it is small enough, else by Floyd.

    Words of a cell: table and p = 1, or a blind draw: [index]. Table and 0 < p < 1: [coin, index]. Floyd: [coin, then
    one per step]. A cell with a word that must be redrawn takes all its words anew, one attempt later.
    """

    d: int
    eta: int
    need: int
    heads: int  # coins below this put the truth inside; 2^32: always, 0: the set ignores the truth
    table: NDArray | None = None  # masks with the truth, then (0 < p < 1) masks without it; None: Floyd
    sizes: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype:
        return mask_dtype(self.d) if self.d <= MASK_LIMIT else code_dtype(self.d)

    def empty(self, n: int) -> NDArray:
        return np.empty(n if self.d <= MASK_LIMIT else (n, self.eta), self.dtype)

    def draw(self, lane: _Lane | None, codes: NDArray, digests: NDArray | None, out: NDArray) -> None:
        """Fill `out` with the sets of these records."""
        if lane is None:
            self._fill(codes, out)
            return
        step = max(1, WORDS_AT_ONCE // self.need)
        for start in range(0, len(codes), step):
            rows = slice(start, start + step)
            self._draw(lane, codes[rows], None if digests is None else digests[rows], out[rows])

    def _draw(self, lane: _Lane, codes: NDArray, digests: NDArray | None, out: NDArray) -> None:
        rejected = self._attempt(lane.cell_words(digests, codes, self.need, 0), codes, out)
        attempt = 0
        while rejected.size:
            attempt += 1
            codes_left = codes[rejected]
            digests_left = None if digests is None else digests[rejected]
            sets = self.empty(rejected.size)
            again = self._attempt(lane.cell_words(digests_left, codes_left, self.need, attempt), codes_left, sets)
            out[rejected] = sets
            rejected = rejected[again]

    def _fill(self, codes: NDArray, out: NDArray) -> None:
        """The two designs without chance: the whole domain, and the true value alone."""
        if out.ndim == 2:
            out[:] = np.arange(self.d, dtype=out.dtype) if self.eta == self.d else codes[:, None]
        elif self.eta == self.d:
            out[:] = (1 << self.d) - 1
        else:
            np.left_shift(out.dtype.type(1), codes, out=out, casting="unsafe")

    def _attempt(self, words: NDArray[np.uint32], codes: NDArray, out: NDArray) -> NDArray[np.int64]:
        """Draw every cell once; the cells that must be drawn again."""
        from noren.designs import kernels as kernel

        if self.table is None:
            return self._floyd(words, codes, out)
        if self.heads == 0:
            again = kernel.pick(words[:, 0], self.table, out)
        elif self.heads == _TWO_32:
            again = kernel.pick_around(words[:, 0], codes, self.table, out)
        else:
            n_in, heads = np.uint64(self.sizes[0]), np.uint64(self.heads)
            again = kernel.pick_by_coin(words[:, 0], words[:, 1], codes, self.table, n_in, heads, out)
        if not again:
            return _NONE
        index = words[:, self.need - 1].astype(np.uint64)
        return np.flatnonzero(np.logical_or.reduce([_unfair(index * np.uint64(size), size) for size in self.sizes]))

    def _floyd(self, words: NDArray[np.uint32], codes: NDArray, out: NDArray) -> NDArray[np.int64]:
        from noren.designs import kernels as kernel

        around = self.heads > 0
        rejected = np.empty(len(codes), np.int64)
        arguments = (words, codes, self.d - around, self.eta, np.uint64(self.heads), around)
        if out.ndim == 2:
            count = kernel.floyd_rows(*arguments, out, rejected)
        else:
            masks = np.empty(len(codes), np.uint64)
            count = kernel.floyd_masks(*arguments, masks, rejected)
            out[:] = masks
        return rejected[:count]


@lru_cache(maxsize=256)
def _plan(d: int, eta: int, p: float) -> _Plan:
    if eta == d or (eta == 1 and p == 1):
        return _Plan(d, eta, need=0, heads=_TWO_32)
    share = Fraction(p)
    heads = int((share + (1 - share) * Fraction(eta, d)) * _TWO_32)
    if heads * d < eta * _TWO_32 or p == 0:
        heads = 0
    if heads == 0:
        parts = {eta: comb(d, eta)}
    elif heads == _TWO_32:
        parts = {eta - 1: comb(d - 1, eta - 1)}
    else:
        parts = {eta - 1: comb(d - 1, eta - 1), eta: comb(d - 1, eta)}
    if d > MASK_LIMIT or max(parts.values()) > TABLE_LIMIT:
        return _Plan(d, eta, need=1 + eta, heads=heads)
    table = np.concatenate([_masks(k, count, mask_dtype(d)) for k, count in parts.items()])
    return _Plan(d, eta, need=len(parts), heads=heads, table=table, sizes=tuple(parts.values()))


def _masks(k: int, count: int, dtype: np.dtype) -> NDArray:
    """The first `count` masks of k bits in ascending order, which are all masks over the values they reach."""
    from noren.designs.kernels import subsets

    table = np.empty(count, dtype)
    subsets(k, table)
    return table


def _unfair(product: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """Which words times n fall into the part of the range that would favour some indices (Lemire)."""
    return (product & np.uint64(_TWO_32 - 1)) < np.uint64(_TWO_32 % n)


def _integers(name: str, codes: NDArray) -> NDArray:
    codes = np.asarray(codes)
    if codes.ndim != 1 or codes.dtype.kind not in "ui":
        raise ValueError(f"the codes of {name!r} must be a one-dimensional array of integers")
    return codes


def _inside_domain(name: str, d: int, codes: NDArray) -> NDArray:
    """The codes, as the smallest type for d values. One outside the domain would draw a set of something else."""
    if codes.size and (codes.max() >= d or (codes.dtype.kind == "i" and codes.min() < 0)):
        raise DataError(
            f"Column {name!r} holds a code outside its domain of {d} values.",
            hint="Encode the column with the domain its design was made for.",
        )
    return np.ascontiguousarray(codes, code_dtype(d))


def _checked_digests(digests: NDArray | None, n: int, d: int) -> NDArray:
    if digests is None or digests.shape != (n, 2):
        raise SecretError(
            f"Memoised decoys need one digest for each of the {n} records.",
            hint="Name a record key column in the policy and pass RecordStream.digests of it.",
        )
    if d > CODE_LIMIT:
        raise SecretError(
            f"Memoised decoys can number at most {CODE_LIMIT} values of an attribute; a domain has {d}.",
            hint="Bin or generalise the attribute.",
        )
    return digests
