"""How kernels are compiled and kept: one decorator, and a cache that any number of processes and clones can share.

A compiled kernel lies in one file, named by the digest of what it was made from: the text of its own file and of every
kernel file that it imports, its types, the processor, the versions of Python and Numba. So an edit is noticed by
callers in other files and by nobody else, two processes that compile at once write the same thing, and nothing has to
be numbered. Where no place can be written, kernels are compiled in memory, which costs time and nothing else.

How they are compiled is said in `once.py`, for versions of Numba that it was tried with. With any other, or with
`NOREN_PLAIN_KERNELS`, Numba compiles them as it would anything, which takes longer and comes to the same.
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
from typing import TYPE_CHECKING, Any, TypeVar, cast
from unittest.mock import patch

import numba
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.caching import _Cache as NumbaCache
from numba.core.serialize import dumps

from noren.kernels import compiling

if TYPE_CHECKING:
    from noren.kernels.once import WholeDispatcher

F = TypeVar("F", bound=Callable[..., Any])

UNUSED = 60 * 86_400
"""Seconds after which a compiled kernel that nothing loaded is removed."""
IMPORTED = re.compile(r"^\s*(?:from|import)\s+noren\.kernels\.([\w.]+)", re.MULTILINE)


TRIED = ("0.68.1",)
"""Versions of Numba whose compiler `once.py` knows."""


def kernel(*, vectors: bool = False, level: int = 2, **options: Any) -> Callable[[F], F]:
    """Compile a function with Numba on first use, without the interpreter's lock, and keep the result.

    `vectors`: statements that do the same to neighbouring numbers become one, which takes longer to compile. `level`:
    how hard LLVM tries with what Python calls. Searches, which branch all the time, run at level 1 as fast as at 2.
    """

    def made(function: F) -> F:
        dispatcher: Any = numba.njit(nogil=True, **options)(function) if plain() else _once(function, level, options)
        if hasattr(dispatcher, "_cache"):  # not without a compiler
            dispatcher._cache = KernelCache(function)
            if vectors:
                _by_vectors(dispatcher._compiler)
        return cast(F, dispatcher)

    return made


@functools.cache
def plain() -> bool:
    """Whether Numba compiles kernels by itself: asked for, or a version or a setting that was not tried."""
    asked = os.environ.get("NOREN_PLAIN_KERNELS", "") not in ("", "0")
    config: Any = numba.config
    settings = config.DISABLE_JIT or config.BOUNDSCHECK or config.DEBUGINFO_DEFAULT
    return bool(asked or settings or numba.__version__ not in TRIED)


def _by_vectors(compiler: Any) -> None:
    """Let what this compiler makes be optimised with vectors of statements. Numba has one switch for all of it."""
    compile_core = compiler._compile_core

    def compiled(args: Any, return_type: Any) -> Any:
        with patch.object(numba.config, "SLP_VECTORIZE", 1):
            return compile_core(args, return_type)

    compiler._compile_core = compiled


def _once(function: F, level: int, options: dict[str, Any]) -> WholeDispatcher:
    from noren.kernels.once import once

    whole = once(function, level, **options)
    whole.part._cache = Telling(function)
    return whole


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__.removeprefix('noren.kernels.')}.{function.__qualname__}"


class Telling(NullCache):
    """Keeps nothing of a part, since the wholes that it goes into are kept, and tells that it is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = _name_of(function)

    def load_overload(self, sig: Any, target_context: Any) -> None:
        for told in tuple(compiling):  # whoever has heard enough stops listening
            told(self._name, KernelCache.made)


class KernelCache(NumbaCache):
    """Where the compiled forms of one kernel lie."""

    made = 0

    def __init__(self, function: Callable[..., Any]) -> None:
        KernelCache.made += 1
        self.function = function
        self.enabled = True
        self._name = _name_of(function)

    @functools.cached_property
    def _form(self) -> Any:
        """How a result is taken apart and put together."""
        if plain():
            return CompileResultCacheImpl.__new__(CompileResultCacheImpl)
        from noren.kernels.once import Form

        return Form()

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
            for told in tuple(compiling) if plain() else ():
                told(self._name, KernelCache.made)
            return None
        return self._form.rebuild(target_context, kept)

    def save_overload(self, sig: Any, data: Any) -> None:
        place = folder() if self.enabled else None
        if place is None or not self._form.check_cachable(data):
            return
        key = self._key(sig, data.codegen)
        content = dumps((key, self._form.reduce(data)))
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
    digest = hashlib.sha256(f"{sys.version} {numba.__version__} {plain()}".encode())
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
