"""How kernels are compiled and kept: one decorator, and a cache that any number of processes and clones can share.

A compiled kernel lies in one file, named by the digest of what it was made from: the text of its own file and of every
kernel file that it imports, its types, the processor, the versions of Python and Numba. So an edit is noticed by
callers in other files and by nobody else, two processes that compile at once write the same thing, and nothing has to
be numbered. Where no place can be written, kernels are compiled in memory, which costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl
from numba.core.caching import _Cache as NumbaCache
from numba.core.serialize import dumps

from noren.kernels import compiling

F = TypeVar("F", bound=Callable[..., Any])

UNUSED = 60 * 86_400
"""Seconds after which a compiled kernel that nothing loaded is removed."""
IMPORTED = re.compile(r"^\s*(?:from|import)\s+noren\.kernels\.([\w.]+)", re.MULTILINE)


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function with Numba on first use, without the interpreter's lock, and keep the result."""

    def made(function: F) -> F:
        dispatcher = numba.njit(nogil=True, **options)(function)
        dispatcher._cache = KernelCache(function)
        return dispatcher

    return made


class KernelCache(NumbaCache):
    """Where the compiled forms of one kernel lie."""

    made = 0

    def __init__(self, function: Callable[..., Any]) -> None:
        KernelCache.made += 1
        self.function = function
        self.enabled = True
        self.form = CompileResultCacheImpl.__new__(CompileResultCacheImpl)  # how Numba takes a result apart

    @property
    def cache_path(self) -> str | None:
        place = folder()
        return None if place is None else str(place)

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def flush(self) -> None:
        """Forget every compiled form of this kernel."""
        place = folder()
        for file in () if place is None else place.glob(f"{self._name}-*.nbc"):
            file.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        kept = self._load(self._key(sig, target_context.codegen()))
        if kept is None:
            for told in compiling:
                told(self._name, KernelCache.made)
            return None
        return self.form.rebuild(target_context, kept)

    def save_overload(self, sig: Any, data: Any) -> None:
        place = folder() if self.enabled else None
        if place is None or not self.form.check_cachable(data):
            return
        key = self._key(sig, data.codegen)
        content = dumps((key, self.form.reduce(data)))
        try:
            handle, aside = tempfile.mkstemp(prefix=".", dir=place)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(aside, place / self._file(key))
            _forget_unused(place)
        except OSError:
            return  # a full disk, say: it stays in memory

    def _load(self, key: str) -> Any:
        place = folder() if self.enabled else None
        if place is None:
            return None
        file = place / self._file(key)
        try:
            found, kept = pickle.loads(file.read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            return None
        with contextlib.suppress(OSError):
            os.utime(file)
        return kept if found == key else None

    def _key(self, sig: Any, codegen: Any) -> str:
        made_from = made_from_files(self.function.__module__)
        return repr((self._name, self.function.__code__.co_firstlineno, str(sig), codegen.magic_tuple(), made_from))

    @property
    def _name(self) -> str:
        return f"{self.function.__module__.removeprefix('noren.kernels.')}.{self.function.__qualname__}"

    def _file(self, key: str) -> str:
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc"


@functools.cache
def folder() -> Path | None:
    """Where compiled kernels are kept, or None: then they are compiled in every process.

    `NOREN_CACHE_DIR` or `NUMBA_CACHE_DIR` name it, else it is the user's cache.
    """
    for above in _candidates():
        place = above / "kernels"
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _own(place):
                continue
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError:
            continue
        return place
    return None


@functools.cache
def made_from_files(module: str) -> str:
    """A digest of the text of a module of kernels, of the kernels it imports, and of what compiles them."""
    here = Path(__file__).parent
    digest = hashlib.sha256(f"{sys.version} {numba.__version__}".encode())
    waiting, seen = [module.removeprefix("noren.kernels.")], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        file = here.joinpath(*name.split(".")).with_suffix(".py")
        waiting += IMPORTED.findall(file.read_text(encoding="utf-8")) if file.exists() else []
    for name in sorted(seen):
        file = here.joinpath(*name.split(".")).with_suffix(".py")
        digest.update(name.encode() + b"\0" + (file.read_bytes() if file.exists() else b""))
    return digest.hexdigest()[:16]


def _candidates() -> list[Path]:
    named = os.environ.get("NOREN_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return [Path(named)]
    users = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return [Path(users) / "noren" if users else Path.home() / ".cache" / "noren"]
    except RuntimeError:  # no home directory
        return []


def _own(place: Path) -> bool:
    """Whether nobody else can write there. Code is loaded from these files."""
    if os.name == "nt":
        return True
    about = place.stat()
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def _forget_unused(place: Path) -> None:
    """Remove what no process has loaded for long; once in a process that compiles."""
    before = time.time() - UNUSED
    for file in place.iterdir():
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < before:
                file.unlink()
