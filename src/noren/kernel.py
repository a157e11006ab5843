"""Loops over records, run as Python for little work and compiled by Numba for much work.

A kernel is a Python function on arrays, numbers and named tuples of these. It calls NumPy, and other kernels. Numba is
imported by the first kernel with much to do; what it compiles, it keeps in its own cache. Both ways give the same
results: integers are of 64 bits in both, however narrow the arrays are, and wrap around alike.
"""

from __future__ import annotations

import dis
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

MUCH = 100_000
"""Steps of a kernel in one process from which on compiling it costs less than running it as Python."""
SOME = 50_000
"""Steps from which on a kernel that is already compiled is worth importing Numba."""
A_SECOND = 50_000
"""Steps that Python takes in a second. What took longer than its steps say counts as more of them."""
compiling: list[Callable[[str], None]] = []
"""Called with the name of every kernel that is about to be compiled."""
CONSTANTS = (bool, int, float, str, bytes, tuple, np.generic)


class Kernel(Generic[P, R]):
    """A function that runs as Python for little work and compiled for much."""

    __name__: str

    def __init__(self, function: Callable[P, R], work: Callable[P, float] | None, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function: Any = function
        self.options = options
        self.work: Callable[..., float] = work or _elements
        self.done = 0.0
        self._ready: dict[Any, Callable[..., R]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, compiled or as Python."""
        if kwargs:
            raise TypeError("a kernel takes its arguments by position")
        return self.run_compiled(*args) if self._ready or self._pays(args) else self.run_python(*args)

    def __reduce__(self) -> str:
        """Pickle the kernel by name, so that another process imports it from its module."""
        name: str = self.function.__qualname__
        return name

    def run_python(self, *args: Any) -> R:
        """Run without Numba. Narrow arrays are widened, and changes are written back."""
        widened: list[tuple[Any, Any]] = []
        given = [_widened(one, widened) for one in args]
        begin = thread_time()
        with np.errstate(over="ignore"):
            result: R = self.python(*given)
        self.done += max(0.0, (thread_time() - begin) * A_SECOND - self.work(*args))
        for narrow, wide in widened:
            if narrow.flags.writeable:
                narrow[...] = wide
        return result

    def run_compiled(self, *args: Any) -> R:
        """Run the compiled function, from Numba's cache or compiled anew; anew if the cache is damaged."""
        import numba

        kinds = tuple(map(_kind, args))  # as Numba tells types apart, at a tenth of the time
        if kinds not in self._ready:
            types = tuple(numba.typeof(one) for one in args)
            for announce in () if self._is_kept() else tuple(compiling):
                announce(self.function.__qualname__)
            for one in self._reached:
                one._link(one.part)
            try:
                self._link(self.whole).compile(types)
            except Exception:
                self.whole = self._link(self._dispatcher(""))
                self.whole.compile(types)
            self._ready[kinds] = self.whole
        return self._ready[kinds](*args)

    @functools.cached_property
    def python(self) -> Callable[..., R]:
        """Return the function that calls other kernels as Python."""
        copies = {one: one._copy() for one in self._reached}
        for one, copy in copies.items():
            copy.__globals__.update({name: copies[other] for name, other in one._calls.items()})
        return copies[self]

    @functools.cached_property
    def part(self) -> Any:
        """Return the function as other compiled kernels call it."""
        return self._dispatcher("_part", no_cpython_wrapper=True)

    @functools.cached_property
    def whole(self) -> Any:
        """Return the function as Python calls it, with Numba's cache."""
        try:
            return self._dispatcher("", cache=True)
        except RuntimeError:  # nowhere to keep it
            return self._dispatcher("")

    def _pays(self, args: tuple[Any, ...]) -> bool:
        self.done += self.work(*args)
        return self.done > MUCH or (self.done > SOME and self._is_kept())

    def _is_kept(self) -> bool:
        """Return whether Numba has compiled it in an earlier process."""
        place = self.whole.stats.cache_path
        return place is not None and any(Path(place).glob(f"*{self.whole.py_func.__qualname__}-*.nbi"))

    def _dispatcher(self, suffix: str, **options: Any) -> Any:
        import numba

        njit: Any = numba.njit
        function = self._copy()
        function.__qualname__ = f"{self.function.__qualname__}_{self._digest}{suffix}"
        return njit(nogil=True, no_cfunc_wrapper=True, **options, **self.options)(function)

    def _link(self, compiled: Any) -> Any:
        """Link a compiled version of the function with the compiled parts of other kernels."""
        compiled.py_func.__globals__.update({name: other.part for name, other in self._calls.items()})
        return compiled

    def _copy(self) -> FunctionType:
        """Copy the function with its own global names, so that it can call another version of other kernels."""
        copy = FunctionType(self.function.__code__, dict(self.function.__globals__), self.function.__name__)
        copy.__module__, copy.__defaults__ = self.function.__module__, self.function.__defaults__
        return copy

    @functools.cached_property
    def _names(self) -> dict[str, Any]:
        """Return the names of its module that the function uses."""
        known = self.function.__globals__
        names = {one.argval for one in dis.get_instructions(self.function) if one.opname == "LOAD_GLOBAL"}
        return {name: known[name] for name in names if name in known}

    @property
    def _calls(self) -> dict[str, Kernel[..., Any]]:
        """Return the kernels that the function calls."""
        return {name: one for name, one in self._names.items() if isinstance(one, Kernel)}

    @functools.cached_property
    def _reached(self) -> list[Kernel[..., Any]]:
        """Return the kernel and all kernels that it calls, directly or indirectly."""
        found: list[Kernel[..., Any]] = [self]
        for one in found:
            found += [other for other in dict.fromkeys(one._calls.values()) if other not in found]
        return found

    @functools.cached_property
    def _digest(self) -> str:
        """Return a digest of the files and constants behind the function and the kernels that it calls. Numba checks
        only the function's own file, so the digest is part of the name in Numba's cache."""
        files = {one.function.__code__.co_filename for one in self._reached}
        constants = {
            f"{one.function.__module__}.{name}": repr(value)
            for one in self._reached
            for name, value in one._names.items()
            if isinstance(value, CONSTANTS)
        }
        texts = [Path(file).read_bytes() for file in sorted(files) if Path(file).exists()]
        return hashlib.sha256(b"\0".join([*texts, repr(sorted(constants.items())).encode()])).hexdigest()[:12]


def _kind(one: Any) -> Any:
    """Return what the type of an argument depends on."""
    if isinstance(one, np.ndarray):
        return one.dtype, one.ndim, one.flags.num
    return (type(one), *map(_kind, one)) if isinstance(one, tuple) else type(one)


def _elements(*args: Any) -> int:
    """Return the number of elements in the largest array among arguments."""
    most = 0
    for one in args:
        if isinstance(one, np.ndarray):
            most = max(most, one.size)
        elif isinstance(one, tuple):
            most = max(most, _elements(*one))
    return most


def _widened(one: Any, widened: list[tuple[Any, Any]]) -> Any:
    """Return an argument with 64-bit integers; (narrow, wide) arrays are added to the list."""
    if isinstance(one, tuple):
        parts = [_widened(part, widened) for part in one]
        return type(one)(*parts) if hasattr(one, "_fields") else tuple(parts)
    if isinstance(one, np.ndarray) and one.dtype.kind in "iu" and one.dtype.itemsize < 8:
        wide = one.astype(np.int64)
        widened.append((one, wide))
        return wide
    return one


@overload
def kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def kernel(*, work: Callable[..., float] | None = None, **options: Any) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(function: Any = None, /, *, work: Any = None, **options: Any) -> Any:
    """Make a kernel of a function. `work` computes the number of steps from the arguments, by default the size of the
    largest array; `options` are Numba's."""
    if function is None:
        return lambda made: Kernel(made, work, options)
    return Kernel(function, work, options)
