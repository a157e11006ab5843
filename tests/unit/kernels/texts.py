"""Texts that kernels are made of in tests, with what each is given: every way of writing that kernels use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from noren.kernels.compiled import kernel

# mypy: disable-error-code="no-untyped-def"


class Pair(NamedTuple):
    """Two arrays and a number, as kernels are given them."""

    left: Any
    right: Any
    by: Any


def last_and_first(a):
    return a[-1], a[0], a[len(a) - 1], a[-len(a)]


def downwards(a):
    total = 0.0
    for i in range(len(a) - 1, -1, -1):
        total = total * 0.5 + a[i]
    for i in range(-1, -len(a), -1):
        total = total * 0.5 + a[i]
    return total


def from_below(a, start):
    total = 0.0
    for i in range(start, 2):
        total += (i + 3) * a[i]
    return total


def grid(a, i, j):
    a[i, j] += 1
    a[-1, j] = a[i, -2]
    return a[i, j], a[-1, -1], a.shape, a.size


def filled(n):
    out = np.empty((n, 3))
    out[:] = 1
    out[1:] = 2
    out[-2:-1] = 3
    out[5:2] = 4
    out[: n - 2] = 5
    flags = np.empty(n, np.bool_)
    flags[:] = True
    flags[2:100] = False
    return out, flags


def replaced(pair, swap):
    left = pair.left
    if swap:
        left = np.zeros(3)
    left[0] += 10
    return left, pair


def kept_in_tuples(pair):
    a, b, by = pair
    c = (a, b)
    d = c[0]
    for turn in range(3):
        if turn == 1:
            d = c[1]
    return d, by, (d, a)


def undecided(a, n):
    for i in range(n):
        value = a[i] * 2
        if value > 3:
            break
    return value, i


def by_unsigned(a, at):
    total = 0
    for i in range(len(at)):
        total += a[at[i]] + a[np.uint8(1)]
    return total


def divided(a, by):
    return a[0] / by, a[1] // by, a[1] % by


@kernel()
def falling(n):
    return 1 if n < 2 else n * falling(n - 1)


def halves(a):
    return a[::2], a[1:3], a.T[0]


@kernel()
def _shares(pair, flag, shape):
    """Arrays, a named tuple, a truth and a tuple of unlike kinds of whole numbers go in; most of them come out."""
    if pair.by == 0:
        raise ValueError("nothing to share by")
    made = np.zeros(shape)
    other = made if flag else pair.left.copy().reshape(1, -1)
    return made, other, not flag, (pair, pair.left / pair.by)


def handed_on(pair, flag):
    made, other, opposite, (again, shares) = _shares(pair, flag, (2, len(pair.left)))
    made[1, 0] += 1
    for _ in range(3):
        last = _shares(again, opposite, (1, 2))
        other = last[1]
    return made, other, opposite, again, shares, last


@kernel()
def _first_even(a, least):
    """Nothing, or a number."""
    for i in range(len(a)):
        if a[i] >= least and a[i] % 2 == 0:
            return a[i]
    return None


def perhaps(a, least):
    found = _first_even(a, least)
    return -1.0 if found is None else found + 1


def caught(pair):
    try:
        _shares(pair, True, (1, 1))
    except Exception:
        return "caught"
    return "went well"


@kernel()
def added_up(a, pair, i):
    """Recursion with arguments that are composite."""
    if i == len(a):
        return 0.0
    return a[i] * pair.by + added_up(a, pair, i + 1)


def closed_over(a):
    def twice(x):
        return 2 * x

    return [twice(x) + 1 for x in a]


def expressions(a):
    b = 2 * a + a**2
    b -= a
    return b, np.sqrt(b) - np.floor(b), -b, a[b > 6]


def made_anew(n):
    floats, whole, flags = np.empty(n), np.empty((n, 2), np.int32), np.zeros((2, n), np.bool_)
    floats[:] = 0.5
    whole[:] = 7
    return floats, whole, flags, np.zeros(n), np.zeros((n, 1, 2), np.uint8), np.zeros(n, whole.dtype)


def made_full(n, value):
    whole = np.full((n, 2), -1), np.full(n, -1, np.int64), np.full(n, 300, np.int8), np.full((n, 1), value, np.int32)
    return whole, np.full(n, value), np.full(n, np.inf), np.full(n, True), np.full(n, 1, np.float32)


def smaller_and_larger(a, b, c):
    same = min(a[0], a[1]), max(a[0], 3), min(b[0], b[1]), max(b[0], b[1]), min(c[0], c[1]), max(c[0], c[1])
    return same, min(a[0], b[0]), max(b[1], a[1]), max(1.5, a[0]), min(a[0], a[1], 2)


@kernel()
def twice(number, by):
    """Called with a number that stands in the text, and with one that does not."""
    return 2 * number + by


def literals(a):
    last = 0
    for _ in range(len(a)):
        last = twice(last, 1)
    return twice(1, 2) + twice(-3, a[0]) + last


def counted(a, start, stop):
    seen = [0]
    last = -1
    for i in range(start, stop):
        last = i
        seen.append(i)
    for j in range(stop):
        for k in range(j, stop):
            if k == 3:
                break
            seen.append(a[j] + k)
        else:
            seen.append(-j)
    rest = range(start, stop)
    for turn in range(2):
        for i in rest:
            seen.append(i + turn)
    for i in range(stop, start, -2):
        seen.append(i)
    return seen, last, len(range(start, stop))


def overtaken(a, small):
    """Types that are settled late, and one after the other."""
    first = second = third = 0
    for i in range(small[0]):
        third = second
        second = first
        first = first + a[i] if i < 2 else first
        if small[1] > i:
            third, second = second, third
    return first, second, third


def renamed(n):
    """Variables set in branches, in loops, and not on every way."""
    a, b = 1, 2
    while n > 0:
        if n % 3 == 0:
            a, b = b, a
        elif n % 3 == 1:
            c = a + b
            a = c
        else:
            b = -b
        n -= 1
    if a > b:
        c = a
    else:
        c = b
    return a, b, c


NUMBERS = np.arange(6.0) + 1
WHOLE = np.arange(12).reshape(3, 4)
CASES: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
    (last_and_first, lambda: (NUMBERS.copy(),)),
    (last_and_first, lambda: (NUMBERS[::-2],)),
    (downwards, lambda: (NUMBERS.copy(),)),
    (from_below, lambda: (NUMBERS.copy(), -3)),
    (grid, lambda: (WHOLE.copy(), 1, -2)),
    (grid, lambda: (np.asfortranarray(WHOLE), 0, 1)),
    (grid, lambda: (WHOLE.astype(np.float32)[:, ::2], 2, 0)),
    (filled, lambda: (6,)),
    (replaced, lambda: (Pair(NUMBERS.copy(), WHOLE.copy(), 3), True)),
    (replaced, lambda: (Pair(NUMBERS.copy(), WHOLE.copy(), 3), False)),
    (kept_in_tuples, lambda: (Pair(NUMBERS.copy(), NUMBERS + 1, 2.5),)),
    (undecided, lambda: (NUMBERS.copy(), 4)),
    (by_unsigned, lambda: (WHOLE[0].copy(), np.array([3, 0, 1], np.uint8))),
    (by_unsigned, lambda: (WHOLE[0].copy(), np.array([3, -1, 1], np.int8))),
    (divided, lambda: (np.array([7.0, -7.0]), 2.0)),
    (halves, lambda: (WHOLE.copy(),)),
    (handed_on, lambda: (Pair(NUMBERS.copy(), WHOLE.copy(), 3), True)),
    (handed_on, lambda: (Pair(NUMBERS.copy(), WHOLE.copy(), 3), False)),
    (perhaps, lambda: (NUMBERS.copy(), 3)),
    (perhaps, lambda: (NUMBERS.copy(), 9)),
    (caught, lambda: (Pair(NUMBERS.copy(), WHOLE.copy(), 0),)),
    (caught, lambda: (Pair(NUMBERS.copy(), WHOLE.copy(), 1),)),
    (closed_over, lambda: (NUMBERS.copy(),)),
    (expressions, lambda: (NUMBERS.copy(),)),
    (made_anew, lambda: (3,)),
    (made_anew, lambda: (0,)),
    (made_full, lambda: (3, 2.5)),
    (made_full, lambda: (0, 7)),
    (smaller_and_larger, lambda: (WHOLE[0] - 2, WHOLE[1].astype(np.int8) - 5, np.array([1, 2**64 - 1], np.uint64))),
    (literals, lambda: (WHOLE[2].copy(),)),
    (counted, lambda: (WHOLE[2].copy(), 1, 4)),
    (counted, lambda: (WHOLE[2].copy(), 4, -3)),
    (counted, lambda: (WHOLE[2].copy(), -(2**63), -(2**63) + 3)),
    (counted, lambda: (WHOLE[2].astype(np.int8), np.int32(-2), np.int32(3))),
    (overtaken, lambda: (NUMBERS.copy(), WHOLE[1].astype(np.int16))),
    (renamed, lambda: (11,)),
    (renamed, lambda: (0,)),
]
