"""Loops over records: Python where there is little to do, compiled by Numba where there is much.

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
    """A function that runs as Python on little work and compiled on much."""

    __name__: str

    def __init__(self, function: Callable[P, R], work: Callable[P, float] | None, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function: Any = function
        self.options = options
        self.work: Callable[..., float] = work or _elements
        self.done = 0.0
        self._ready: dict[Any, Callable[..., R]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the function returns."""
        if kwargs:
            raise TypeError("a kernel takes its arguments by position")
        return self.run_compiled(*args) if self._ready or self._pays(args) else self.run_python(*args)

    def __reduce__(self) -> str:
        """Its name: another process imports it from its module."""
        name: str = self.function.__qualname__
        return name

    def run_python(self, *args: Any) -> R:
        """The result without Numba. Narrow arrays are widened, and what was written to them is written back."""
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
        """The result of the compiled function."""
        import numba

        kinds = tuple(numba.typeof(one) for one in args)
        if kinds not in self._ready:
            self._ready[kinds] = self._compile(kinds)
        return self._ready[kinds](*args)

    @functools.cached_property
    def python(self) -> Callable[..., R]:
        """The function, calling other kernels as Python."""
        return self._calling(lambda other: other.python)

    @functools.cached_property
    def part(self) -> Any:
        """The function as other compiled kernels call it."""
        return self._dispatcher("_part", no_cpython_wrapper=True)

    @functools.cached_property
    def whole(self) -> Any:
        """The function as Python calls it, kept in Numba's cache."""
        try:
            return self._dispatcher("", cache=True)
        except RuntimeError:  # nowhere to keep it
            return self._dispatcher("")

    def _pays(self, args: tuple[Any, ...]) -> bool:
        self.done += self.work(*args)
        return self.done > MUCH or (self.done > SOME and self._is_kept())

    def _is_kept(self) -> bool:
        """Whether Numba has compiled it in an earlier process."""
        place = self.whole.stats.cache_path
        return place is not None and any(Path(place).glob(f"*{self.whole.py_func.__qualname__}-*.nbi"))

    def _compile(self, kinds: tuple[Any, ...]) -> Callable[..., R]:
        """The function for arguments of these types, from Numba's cache or new; new where the cache is damaged."""
        for announce in () if self._is_kept() else tuple(compiling):
            announce(self.function.__qualname__)
        try:
            self.whole.compile(kinds)
        except Exception:
            self.whole = self._dispatcher("")
            self.whole.compile(kinds)
        compiled: Callable[..., R] = self.whole
        return compiled

    def _dispatcher(self, suffix: str, **options: Any) -> Any:
        import numba

        njit: Any = numba.njit
        function = self._calling(lambda other: other.part)
        function.__qualname__ = f"{self.function.__qualname__}_{self._digest}{suffix}"
        return njit(nogil=True, no_cfunc_wrapper=True, **options, **self.options)(function)

    def _calling(self, version: Callable[[Kernel[..., Any]], Any]) -> FunctionType:
        """A copy of the function that calls one version of other kernels."""
        names = {name: version(one) for name, one in self._globals.items() if isinstance(one, Kernel)}
        copy = FunctionType(self.function.__code__, {**self.function.__globals__, **names}, self.function.__name__)
        copy.__module__, copy.__defaults__ = self.function.__module__, self.function.__defaults__
        return copy

    @functools.cached_property
    def _globals(self) -> dict[str, Any]:
        """What the function uses of its module."""
        known = self.function.__globals__
        names = {one.argval for one in dis.get_instructions(self.function) if one.opname == "LOAD_GLOBAL"}
        return {name: known[name] for name in names if name in known}

    @functools.cached_property
    def _digest(self) -> str:
        """A digest of the files and constants that the function and the kernels it calls are made from. Numba looks at
        the function's own file only, so it stands in the name under which Numba keeps it."""
        files, constants = set[str](), dict[str, str]()
        waiting: list[Kernel[..., Any]] = [self]
        seen: set[int] = set()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            files.add(one.function.__code__.co_filename)
            for name, value in one._globals.items():
                if isinstance(value, Kernel):
                    waiting.append(value)
                elif isinstance(value, CONSTANTS):
                    constants[f"{one.function.__module__}.{name}"] = repr(value)
        texts = [Path(file).read_bytes() for file in sorted(files) if Path(file).exists()]
        return hashlib.sha256(b"\0".join([*texts, repr(sorted(constants.items())).encode()])).hexdigest()[:12]


def _elements(*args: Any) -> int:
    """The number of elements in the largest array among arguments."""
    most = 0
    for one in args:
        if isinstance(one, np.ndarray):
            most = max(most, one.size)
        elif isinstance(one, tuple):
            most = max(most, _elements(*one))
    return most


def _widened(one: Any, widened: list[tuple[Any, Any]]) -> Any:
    """An argument with integers of 64 bits; (narrow, wide) arrays are added to the list."""
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
    """Make a kernel of a function. `work` gives the number of steps from the arguments, else the largest array does;
    `options` are Numba's."""
    if function is None:
        return lambda made: Kernel(made, work, options)
    return Kernel(function, work, options)
