"""A kernel runs as Python where there is little to do, compiled where there is much, and gives the same both ways."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from noren import kernel as rooms
from noren.kernel import Kernel, kernel

OFFSET = 3


class Pair(NamedTuple):
    left: Any
    right: Any


@kernel
def add_one(x):  # type: ignore[no-untyped-def]
    return x + OFFSET - 2


@kernel
def total(pair, out):  # type: ignore[no-untyped-def]
    place = 0
    for i in range(len(pair.left)):
        place = place * 300 + pair.left[i] - pair.right[i]
        out[i] = add_one(pair.left[i])
    return place


@kernel
def mixed(x):  # type: ignore[no-untyped-def]
    for _ in range(3):
        x = x * np.int64(6364136223846793005) + np.int64(1442695040888963407)
    return x // np.int64(-7), x % np.int64(-7)


def test_narrow_integers_are_wide_in_a_kernel() -> None:
    given = [Pair(np.array([200, 3, 4], np.uint8), np.array([250, 9, 1], np.uint8)) for _ in range(2)]
    outs = [np.zeros(3, np.uint8), np.zeros(3, np.uint8)]
    results = [run(one, out) for run, one, out in zip((total.run_python, total.run_compiled), given, outs, strict=True)]
    assert results[0] == results[1] == (-50 * 300 - 6) * 300 + 3
    assert outs[0].tolist() == outs[1].tolist() == [201, 4, 5]


def test_whole_numbers_wrap_around_and_divide_alike() -> None:
    for value in (0, 1, -1, 2**62, -(2**63), 2**63 - 1):
        assert mixed.run_python(np.int64(value)) == mixed.run_compiled(np.int64(value))


def test_a_kernel_compiles_after_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "MUCH", 25)
    monkeypatch.setattr(rooms, "SOME", 25)
    monkeypatch.setattr(rooms, "A_SECOND", 0)
    one: Kernel[..., Any] = kernel(add_one.function)
    announced: list[str] = []
    monkeypatch.setattr(rooms, "compiling", [announced.append])
    values = np.arange(10)
    for _ in range(2):
        assert one(values).tolist() == list(range(1, 11))
    assert not one._ready
    assert one(values).tolist() == list(range(1, 11))
    assert one._ready
    assert len(one(1.5 * values)) == 10, "other types are compiled, too"


def test_another_process_imports_a_kernel_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(total)) is total


def test_little_work_does_not_import_numba() -> None:
    code = "import sys; from tests.unit.test_kernel import add_one; assert add_one(1) == 2"
    code += "; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


KEPT = """
import sys
from noren import kernel as rooms
rooms.MUCH = rooms.SOME = 0
sys.path.insert(0, sys.argv[1])
from caller import outer
print(outer(1), sum(outer.whole.stats.cache_hits.values()))
"""
CALLEE = "from noren.kernel import kernel\n@kernel\ndef inner(x):\n    return x + 1\n"
CALLER = (
    "from noren.kernel import kernel\nfrom callee import inner\n@kernel(work=lambda x: 1)\n"
    "def outer(x):\n    return inner(x) * 10\n"
)


def test_what_is_compiled_is_kept_unless_something_it_calls_changed_or_the_cache_is_damaged(tmp_path: Path) -> None:
    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-B", "-c", KEPT, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    (tmp_path / "callee.py").write_text(CALLEE)
    (tmp_path / "caller.py").write_text(CALLER)
    assert run() == "20 0"
    assert run() == "20 1"
    (tmp_path / "callee.py").write_text(CALLEE.replace("x + 1", "x + 2"))
    assert run() == "30 0"
    assert run() == "30 1"
    for pattern in ("*.nbc", "*.nbi"):
        for damage in (b"", b"\x80\x05random", bytes(range(256))):
            for file in tmp_path.rglob(pattern):
                file.write_bytes(damage)
            assert run() == "30 0"
