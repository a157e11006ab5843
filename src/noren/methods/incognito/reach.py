"""What the most general release reaches: the whole table as one class."""

from __future__ import annotations

from math import floor

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.methods import kernels as kinds
from noren.methods.requirements import Compiled


def shortfalls(table: Records, compiled: Compiled) -> str:
    """Which requirements fail even for the whole table as one class, and what could be asked instead."""
    told = []
    rules = compiled.rules
    for kind, j, first, second in compiled:
        counts, groups = np.zeros(1, np.int64), np.zeros(1, np.int64)
        name = ""
        if j >= 0:
            name = compiled.sensitive[j]
            counts = np.sort(table.counts(name))[::-1]
            if kind == kinds.SUBTREES:
                level = rules.levels[j, rules.heights[j] - int(second), : rules.values[j]]
                groups = np.bincount(level, table.counts(name))
        text = _shortfall(kind, name, first, second, counts, groups, table.records)
        if text:
            told.append(text)
    return "; ".join(dict.fromkeys(told)) + "." if told else "the whole table as one class would meet them."


def _shortfall(kind: int, name: str, a: float, b: float, counts: NDArray, groups: NDArray, n: int) -> str:
    """One requirement: nothing if the whole table meets it."""
    values, top = int((counts > 0).sum()), int(counts[0])
    if kind in (kinds.ALPHA_K, kinds.P_SENSITIVE, kinds.K_ANONYMITY) and n < (
        k := a if kind == kinds.K_ANONYMITY else b
    ):
        return f"k = {k:g} is more than the {n:,} records"
    if kind in (kinds.DISTINCT, kinds.P_SENSITIVE) and values < a:
        return f"{name!r} holds {values} values, fewer than {a:g}"
    if kind == kinds.FREQUENCY and top * a > n * (1 + kinds.TOLERANCE):
        return f"the commonest value of {name!r} allows l = {_down(n / top)} at most, not {a:g}"
    if kind == kinds.ALPHA_K and top > a * n * (1 + kinds.TOLERANCE):
        return f"the commonest value of {name!r} has a share of {top / n:.4f}, more than alpha = {a:g}"
    if kind == kinds.SUBTREES and groups.max() * a > n * (1 + kinds.TOLERANCE):
        return f"the commonest group of {name!r} allows l = {_down(n / groups.max())} at most, not {a:g}"
    if kind == kinds.ENTROPY:
        shares = counts[counts > 0] / max(1, n)
        reached = float(np.exp(-(shares * np.log(shares)).sum()))
        if reached < a * (1 - kinds.TOLERANCE):
            return f"the entropy of {name!r} allows l = {_down(reached)} at most, not {a:g}"
    if kind in (kinds.RECURSIVE, kinds.TAU_L) and values < b:
        return f"{name!r} holds {values} values, fewer than l = {b:g}"
    if kind == kinds.RECURSIVE and top >= a * (rest := int(counts[int(b) - 1 :].sum())):
        return f"{name!r} at l = {b:g} needs c above {top / rest:.4f}, not {a:g}"
    if kind == kinds.TAU_L:
        bound = (np.arange(1, int(b)) - 1) / (b - 1)
        least = float(((np.cumsum(counts)[: int(b) - 1] / n - bound) / (1 - bound)).max())
        if least > a + kinds.TOLERANCE:
            return f"{name!r} at l = {b:g} needs tau of at least {least:.4f}, not {a:g}"
    return ""


def _down(value: float) -> str:
    """A bound that may be asked for: rounded down."""
    return f"{floor(value * 100 + 1e-9) / 100:g}"
