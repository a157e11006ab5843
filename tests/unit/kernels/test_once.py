"""Kernels that are optimised once do what Numba makes of the same text by itself."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys  # type: ignore[attr-defined]

from noren.kernels import compiled
from noren.kernels.compiled import kernel
from tests.unit.kernels.texts import (
    CASES,
    NUMBERS,
    WHOLE,
    Pair,
    added_up,
    divided,
    falling,
    halves,
    handed_on,
    kept_in_tuples,
    made_anew,
    replaced,
)

# mypy: disable-error-code="no-untyped-def"

pytestmark = pytest.mark.skipif(compiled.plain(), reason="kernels are compiled by Numba alone here")


def once(function: Callable[..., Any]) -> Any:
    made: Any = kernel()(function)
    made._cache.disable()  # the key of a kernel covers kernels, not tests
    return made


def as_lists(value: Any) -> Any:
    if isinstance(value, tuple):
        return [as_lists(one) for one in value]
    return (value.dtype.str, value.tolist()) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("number", range(len(CASES)))
def test_as_numba_by_itself(number: int) -> None:
    function, given = CASES[number]
    mine, theirs = given(), given()
    assert as_lists(once(function)(*mine)) == as_lists(numba.njit(function)(*theirs))
    assert as_lists(mine) == as_lists(theirs)


def test_a_number_in_the_text_is_no_type_of_its_own() -> None:
    mine = once(lambda number, by: 3 * number + by)

    def called(a):
        last = 0
        for _ in range(len(a)):
            last = mine(last, 1)
        return mine(1, 2) + mine(-3, a[0]) + last

    assert once(called)(np.array([5, 6])) == 5 - 4 + 4
    assert len(mine.part.overloads) == 1


def test_no_array_of_a_negative_size() -> None:
    with pytest.raises(ValueError, match="negative dimensions"):
        once(made_anew)(-1)


def test_recursion_and_faults() -> None:
    falling._cache.disable()  # type: ignore[attr-defined]
    assert falling(5) == 120
    added_up._cache.disable()  # type: ignore[attr-defined]
    assert added_up(NUMBERS, Pair(NUMBERS, WHOLE, 2), 0) == 2 * NUMBERS.sum()
    compiled_once = once(divided)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        compiled_once(NUMBERS, 0.0)
    assert compiled_once(NUMBERS, 2.0) == (0.5, 1.0, 0.0)


def test_a_fault_comes_through_calls() -> None:
    given = Pair(NUMBERS.copy(), WHOLE.copy(), 0)
    for compiled_by in (once, numba.njit):  # the second calls what was made for the first
        with pytest.raises(ValueError, match="nothing to share by"):
            compiled_by(handed_on)(given, True)


def test_no_reference_is_lost_or_kept() -> None:
    _nrt_python.memsys_enable_stats()
    swaps, tuples, hands = once(replaced), once(kept_in_tuples), once(handed_on)
    pair = Pair(NUMBERS.copy(), NUMBERS + 1, 2)
    swaps(pair, True), tuples(pair), hands(pair, True)
    gc.collect()
    references = sys.getrefcount(pair.left), sys.getrefcount(pair.right)
    before = rtsys.get_allocation_stats()
    for turn in range(50):
        swaps(pair, turn % 2 == 0)
        tuples(pair)
        hands(pair, turn % 3 == 0)
    gc.collect()
    after = rtsys.get_allocation_stats()
    assert (sys.getrefcount(pair.left), sys.getrefcount(pair.right)) == references
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


def all_kinds(pair, nothing, flag, single, inner):
    return pair.left[0] + inner[1][0].sum() + single, nothing is None, not flag, inner[0]


def test_every_kind_of_argument_comes_in_and_is_given_back() -> None:
    pair, small = Pair(NUMBERS.copy(), WHOLE.copy(), 2), np.array([1, 2], np.int8)
    made = once(all_kinds)
    given = pair, None, np.bool_(True), np.float32(0.5), (7, (small, None))
    assert made(*given) == (4.5, True, False, 7)
    assert made(pair, 3, False, 1, (7, (small, 2.0))) == (5.0, False, True, 7)
    read = made.overloads[made.signatures[0]].entry_point
    held = sys.getrefcount(pair.left), sys.getrefcount(small)
    for wrong in ([1, 2], "text", 3):
        with pytest.raises(TypeError, match="an argument of a kernel could not be read"):
            read(pair, None, np.bool_(True), 0.5, (7, (wrong, None)))
    with pytest.raises(TypeError, match="bad argument type"):
        read(pair, None, np.bool_(True), "text", (7, (small, None)))
    with pytest.raises(TypeError):
        read(pair, None)
    assert (sys.getrefcount(pair.left), sys.getrefcount(small)) == held


def test_the_collector_is_as_it_was() -> None:
    gc.freeze()
    try:
        once(halves)(WHOLE.copy())
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    gc.disable()
    try:
        once(halves)(WHOLE.copy())
        assert not gc.isenabled()
    finally:
        gc.enable()
    once(halves)(WHOLE.copy())
    assert gc.get_freeze_count() == 0
    assert gc.isenabled()


ASKED = """
from noren.kernels import compiled
from noren.kernels.sorting import stable_order
import numpy as np
print(compiled.plain(), type(stable_order).__name__, stable_order(np.array([3, 1, 2, 1])).tolist())
"""


@pytest.mark.parametrize(
    ("setting", "plain"), [({"NOREN_PLAIN_KERNELS": "1"}, True), ({"NUMBA_BOUNDSCHECK": "1"}, True), ({}, False)]
)
def test_plain_kernels_can_be_asked_for(setting: dict[str, str], plain: bool, tmp_path: Any) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "NOREN_PLAIN_KERNELS"}
    environment = {**kept, "NOREN_CACHE_DIR": str(tmp_path), **setting}
    for _ in range(2):  # compiled, and loaded
        done = subprocess.run(
            [sys.executable, "-c", ASKED], env=environment, capture_output=True, text=True, check=True
        )
        named = "CPUDispatcher" if plain else "WholeDispatcher"
        assert done.stdout.split(maxsplit=2) == [str(plain), named, "[1, 3, 2, 0]\n"]


def test_versions_that_were_not_tried_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "__version__", "0.99.0")
    compiled.plain.cache_clear()
    assert compiled.plain()
    monkeypatch.undo()
    compiled.plain.cache_clear()
    assert not compiled.plain()


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 31, 33, 100, 1000])
def test_the_order_of_keys_is_the_stable_one(n: int) -> None:
    from noren.kernels.sorting import stable_order

    keys = np.random.default_rng(n).integers(0, max(1, n // 3), n)
    assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()
    assert stable_order(keys / 3).tolist() == np.argsort(keys / 3, kind="stable").tolist()
