"""Draw decoy sets so that nobody without the secret can distinguish the decoys from the true value.

A word r picks the index (r n) >> 32 out of n; it must be drawn again when the low half of r n lies below 2^32 mod n
(Lemire), so that every index has equally many words.

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

from noren.errors import DataError, SecretError
from noren.secret import Keystream, KeystreamLane, RecordLane, RecordStream
from noren.secret.streams import CODE_LIMIT, Scratch
from noren.statements.batch import CodeCells
from noren.statements.design import Design
from noren.statements.set_cells import MASK_LIMIT, SetCells, code_dtype, mask_dtype, masks_of

TABLE_LIMIT = 1 << 20  # masks; measured: up to here a table is never slower than Floyd, mostly far faster
ROWS_AT_ONCE = 1 << 16  # measured: fewer rows lose more to Python between kernels than they win in cache
WORDS_AT_ONCE = 1 << 18
CELLS_PER_THREAD = 1 << 18  # below this, starting threads costs more than drawing
_TWO_32 = 1 << 32

_Lane = KeystreamLane | RecordLane
HALF = np.uint64(32)


def draw_columns(
    designs: Mapping[str, Design],
    columns: Mapping[str, NDArray],
    randomness: Keystream | RecordStream,
    *,
    digests: NDArray | None = None,
    threads: int | None = None,
) -> dict[str, SetCells | CodeCells]:
    """Draw sets (or changed values) for every column, in cached blocks of rows that threads share."""
    columns = {name: _integers(name, codes) for name, codes in columns.items()}
    n = len(next(iter(columns.values()))) if columns else 0
    if any(len(codes) != n for codes in columns.values()):
        raise ValueError("columns differ in length")
    if isinstance(randomness, RecordStream):
        digests = _checked_digests(digests, n, max((designs[name].d for name in columns), default=0))
    plans = {name: designs[name].plan for name in columns}
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
    return {name: plans[name].cells(data) for name, data in cells.items()}


class _Lanes(threading.local):
    """The ciphers and scratch memory of one thread."""

    def __init__(self, randomness: Keystream | RecordStream) -> None:
        self._randomness = randomness
        self._scratch = Scratch()
        self._lanes: dict[str, _Lane] = {}

    def lane(self, name: str) -> _Lane:
        if name not in self._lanes:
            self._lanes[name] = self._randomness.lane(name, self._scratch)
        return self._lanes[name]


@dataclass(frozen=True)
class DrawingPlan:
    """The way in which sets of one design are drawn from words: by a table of masks if it is small, otherwise by
    Floyd's algorithm.

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

    def cells(self, data: NDArray) -> SetCells | CodeCells:
        """Return the drawn sets as published cells."""
        return SetCells(self.d, data)

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
        """Fill in the two designs without randomness: the whole domain, and the true value."""
        if out.ndim == 2:
            out[:] = np.arange(self.d, dtype=out.dtype) if self.eta == self.d else codes[:, None]
        elif self.eta == self.d:
            out[:] = (1 << self.d) - 1
        else:
            np.left_shift(out.dtype.type(1), codes, out=out, casting="unsafe")

    def _attempt(self, words: NDArray[np.uint32], codes: NDArray, out: NDArray) -> NDArray[np.int64]:
        """Draw every cell once, and return the cells to draw again because a word would favour some sets. With a coin,
        both of its branches reject the same words, because otherwise redrawing would bias the coin."""
        if self.table is None:
            return self._draw_by_floyd(words, codes, out)
        word, bits = words[:, self.need - 1].astype(np.uint64), self.table.dtype
        products = [word * np.uint64(size) for size in self.sizes]
        place = (products[0] >> HALF).view(np.int64)
        if self.heads == 0:
            out[:] = self.table.take(place)
        else:
            truth, inside = codes.astype(bits), np.ones(1, bits)
            if self.heads < _TWO_32:
                inside = (words[:, 0] < self.heads).astype(bits)
                place = np.where(inside, place, self.sizes[0] + (products[1] >> HALF).view(np.int64))
            others = self.table.take(place)
            # Make room at the truth's bit: the bits from there upwards move by one, that is, they are added once more.
            out[:] = others + ((others >> truth) << truth) + (inside << truth)
        parts = zip(products, self.sizes, strict=True)
        return np.flatnonzero(np.logical_or.reduce([unfair(product, size) for product, size in parts]))

    def _draw_by_floyd(self, words: NDArray[np.uint32], codes: NDArray, out: NDArray) -> NDArray[np.int64]:
        """Draw eta values of the pool (eta - 1 and the true value, if the coin says so).

        Floyd's algorithm: for j = pool-eta .. pool-1 take a uniform t <= j, or j itself if t is taken. Drawing eta - 1
        is the same without the first step, so both outcomes of the coin use the same words and are redrawn together.
        The pool is the values other than the truth, or all if the set ignores it.
        """
        around, truth = self.heads > 0, codes.astype(np.int64)
        inside = words[:, 0].astype(np.int64) < self.heads
        values = np.empty((len(codes), self.eta), np.int64)
        again = np.zeros(len(codes), bool)
        for step in range(self.eta):
            last = self.d - around - self.eta + step
            product = words[:, 1 + step].astype(np.uint64) * np.uint64(last + 1)
            again |= unfair(product, last + 1)
            value, instead = (product >> HALF).astype(np.int64), np.full(len(codes), last)
            if around:
                value += value >= truth
                instead += instead >= truth
            taken = (values[:, :step] == value[:, None]).any(axis=1)
            values[:, step] = np.where(taken, instead, value)
            if step == 0:
                values[inside, 0] = truth[inside]
        out[:] = np.sort(values, axis=1) if out.ndim == 2 else masks_of(values, self.d)
        return np.flatnonzero(again)


@lru_cache(maxsize=256)
def plan_decoys(d: int, eta: int, p: float) -> DrawingPlan:
    if eta == d or (eta == 1 and p == 1):
        return DrawingPlan(d, eta, need=0, heads=_TWO_32)
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
        return DrawingPlan(d, eta, need=1 + eta, heads=heads)
    table = np.concatenate([list_masks(k, d - (heads > 0), mask_dtype(d)) for k in parts])
    return DrawingPlan(d, eta, need=len(parts), heads=heads, table=table, sizes=tuple(parts.values()))


def list_masks(k: int, bits: int, dtype: np.dtype) -> NDArray:
    """List all masks with k of so many bits, in ascending order."""
    if 2 * k > bits:
        whole = np.uint64((1 << bits) - 1)
        return (whole - list_masks(bits - k, bits, np.dtype(np.uint64))[::-1]).astype(dtype)
    known = [np.zeros(1, np.uint64), *[np.empty(0, np.uint64)] * k]  # those with 0, 1, ..., k bits among the first ones
    for bit in range(bits):
        more = [masks | np.uint64(1 << bit) for masks in known[:-1]]
        known = [known[0], *map(np.concatenate, zip(known[1:], more, strict=True))]
    return known[k].astype(dtype)


def unfair(product: NDArray[np.uint64], n: int | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which words times n are in the part of the range that would favour some indices (Lemire)."""
    return np.asarray(product.astype(np.uint32) < np.uint64(_TWO_32) % np.asarray(n, np.uint64))


def _integers(name: str, codes: NDArray) -> NDArray:
    codes = np.asarray(codes)
    if codes.ndim != 1 or codes.dtype.kind not in "ui":
        raise ValueError(f"the codes of {name!r} must be a one-dimensional array of integers")
    return codes


def _inside_domain(name: str, d: int, codes: NDArray) -> NDArray:
    """Return the codes in the smallest type for d values; raise if one is outside the domain."""
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
            hint="Set a record key in the policy, and pass RecordStream.digests of that column.",
        )
    if d > CODE_LIMIT:
        raise SecretError(
            f"Memoised decoys can number at most {CODE_LIMIT} values of an attribute; a domain has {d}.",
            hint="Bin or generalise the attribute.",
        )
    return digests
