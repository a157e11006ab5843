"""Compiled kernels: kept once for all processes, never stale, and not needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import noren
from noren.kernels import compiled

CALLEE = """
from noren.kernels.compiled import kernel
@kernel()
def inner(x):
    return x + 1
"""
CALLER = """
from noren.kernels.compiled import kernel
from noren.kernels.callee import inner
@kernel()
def outer(x):
    return inner(x) * 10
"""
NOT_KEPT = ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")
RUN = """
from noren.kernels import compiling
told = []
compiling.append(lambda name, loaded: told.append(name))
from noren.kernels.caller import outer
print(outer(1), len(told))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package with two kernels, of which one calls the other."""
    home = tmp_path / "src" / "noren"
    shutil.copytree(Path(noren.__file__).parent, home, ignore=shutil.ignore_patterns("__pycache__"))
    (home / "kernels" / "callee.py").write_text(CALLEE)
    (home / "kernels" / "caller.py").write_text(CALLER)
    return home


def start(home: Path, cache: str, code: str = RUN, **more: str) -> subprocess.Popen[str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME")
    }
    # bytecode does not notice an edit of the same length within a second
    more = {"PYTHONDONTWRITEBYTECODE": "1", **more}
    environment = {**kept, "PYTHONPATH": str(home.parent), "NOREN_CACHE_DIR": cache, **more}
    words = [sys.executable, "-c", code]
    return subprocess.Popen(words, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(home: Path, cache: str, code: str = RUN, **more: str) -> str:
    process = start(home, cache, code, **more)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_a_kernel_is_compiled_once_and_an_edit_of_what_it_calls_is_noticed(copy: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert run(copy, cache) == "20 2"
    assert run(copy, cache) == "20 0"
    (copy / "kernels" / "callee.py").write_text(CALLEE.replace("x + 1", "x + 2"))
    assert run(copy, cache) == "30 2"
    (copy / "kernels" / "callee.py").write_text(CALLEE)
    assert run(copy, cache) == "20 0"
    for file in (tmp_path / "cache").rglob("*.nbc"):
        file.write_bytes(file.read_bytes()[:100])  # a torn file is compiled again
    assert run(copy, cache) == "20 2"


@pytest.mark.slow
def test_processes_that_compile_at_once_agree(copy: Path, tmp_path: Path) -> None:
    both = RUN + "print(outer(1.5))"
    processes = [start(copy, str(tmp_path / "cache"), code) for code in (RUN, both, RUN)]
    answers = [process.communicate(timeout=300)[0].split() for process in processes]
    assert [answer[0] for answer in answers] == ["20", "20", "20"]
    assert run(copy, str(tmp_path / "cache"), both) == "20 0\n25.0"


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["/dev/null/nowhere", ""], ids=["no place", "no home"])
def test_without_a_place_kernels_are_compiled_in_memory(cache: str, copy: Path) -> None:
    more = {} if cache else {"HOME": "/dev/null/home"}
    assert run(copy, cache, **more) == "20 2"
    assert run(copy, cache, **more) == "20 2"


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_code_is_not_loaded_from_where_others_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOREN_CACHE_DIR", str(tmp_path))
    compiled.folder.cache_clear()
    place = compiled.folder()
    assert place is not None
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o777)
    compiled.folder.cache_clear()
    assert compiled.folder() is None
    compiled.folder.cache_clear()


def test_an_edit_elsewhere_compiles_nothing_and_what_nobody_uses_goes(copy: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(copy, str(cache)) == "20 2"
    (copy / "kernels" / "draw.py").write_text("")
    assert run(copy, str(cache)) == "20 0"
    old = cache / "kernels" / "long-ago.nbc"
    old.write_bytes(b"")
    os.utime(old, (1, 1))
    used = next((cache / "kernels").glob("caller*"))
    os.utime(used, (1, 1))
    assert run(copy, str(cache)) == "20 0"
    assert used.stat().st_mtime > 1
    assert run(copy, str(cache), RUN + "outer(1.5)").startswith("20 0")
    assert used.exists()
    assert not old.exists()


def test_what_wraps_an_array_for_python_is_kept_with_its_kernel() -> None:
    """Within another kernel nothing is wrapped, and Numba takes the environment of one name that was there first."""
    import pickle

    import numpy as np
    from numba.core import registry

    from noren.kernels.once import Form, once

    def large(x):  # type: ignore[no-untyped-def]
        return x > 1

    made = once(large)
    assert made(np.arange(3)).tolist() == [False, False, True]
    (result,) = made.overloads.values()
    wrapping = list(result.environment.consts)
    assert wrapping
    kept = pickle.dumps(Form().reduce(result))
    result.environment.consts.clear()  # as a part that another kernel brought along has it
    again = Form().rebuild(registry.cpu_target.target_context, pickle.loads(kept))
    assert list(again.environment.consts) == wrapping
