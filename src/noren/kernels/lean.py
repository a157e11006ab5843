"""Numba's compiler, without work that it repeats: the same types and the same code, sooner.

While kernels are compiled, some things are done otherwise, and those of `analysed.py`. New arrays are written down in
place. Which implementation a call has is asked once for every combination of types, instead of at every place and in
every round of type inference (a `+` tries dozens of templates). Sets of flags are compared by what was set. Messages of
attempts that failed are not coloured. The collector of cycles waits until the kernel is there, and then looks at what
is new. All of it happens under the compiler's lock and is undone after.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from numba.core import errors, ir, types
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.typed_passes import NativeLowering
from numba.core.types.functions import BaseFunction

from noren.kernels.analysed import CHANGES as ANALYSES
from noren.kernels.arrays import direct, kernel_for
from noren.kernels.calls import CHANGES
from noren.kernels.lowered import ShortLower

_ask: Any = BaseFunction.get_call_type
_same = TargetConfig.__eq__
_list_variables = ir.Inst._rec_list_vars
WORDS = {str, int, float, bool, type(None)}
_DEFAULTS: dict[Any, dict[str, Any]] = {}
_ANSWERS: dict[int, tuple[Any, dict[Any, Any]]] = {}


def _remembered(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """What this function makes of these types, asked once for every set of flags."""
    _, answers = _ANSWERS.setdefault(id(self), (self, {}))  # not in the type itself: types are pickled
    key = (context, tuple(args), tuple(kws.items()), ConfigStack.top_or_none())
    known = answers.get(key)
    if known is not None:
        signature, implementation = known
        self._impl_keys[signature.args] = implementation
        return signature
    instead = None if kws else direct(self.typing_key, args)
    asked = self if instead is None else context.resolve_value_type(instead)
    signature = _ask(asked, context, args, kws)
    answers[key] = signature, asked._impl_keys[signature.args]
    self._impl_keys[signature.args] = asked._impl_keys[signature.args]
    return signature


def _equal(self: Any, other: Any) -> Any:
    if self is other:
        return True
    if type(self) is type(other) and self._values == other._values:
        return True
    return _same(self, other)


def _hashed(self: Any) -> int:
    """Of what differs from the defaults, so that flags that are equal have one."""
    defaults = _defaults(type(self))
    return hash(frozenset(name for name, value in self._values.items() if value != defaults[name]))


def _defaults(of: Any) -> dict[str, Any]:
    if of not in _DEFAULTS:
        _DEFAULTS[of] = {name: option.default for name, option in of.options.items()}
    return _DEFAULTS[of]


def _values(self: Any) -> dict[str, Any]:
    return {**_defaults(type(self)), **self._values}


def _variables(self: Any, value: Any) -> list[Any]:
    """The variables within a part of an instruction: the same list, without a call for every word in it."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return _list_variables(self, value)
    found = []
    for one in value:
        kind = type(one)
        if kind is ir.Var:
            found.append(one)
        elif kind not in WORDS:
            found += _variables(self, one)
    return found


@contextlib.contextmanager
def _collected_after() -> Iterator[None]:
    """Cycles are looked for once, at the end, and among what was made since: most of what lives was there before."""
    aside = not gc.get_freeze_count()  # else somebody has put objects aside for good
    gc.disable()
    if aside:
        gc.freeze()
    try:
        yield
        gc.collect(0)
    finally:
        if aside:
            gc.unfreeze()
        gc.enable()


@contextlib.contextmanager
def lean() -> Iterator[None]:
    """Until it ends, kernels are compiled sooner. Only with the compiler's lock."""
    collected = gc.isenabled()
    changes: tuple[Any, ...] = (
        patch.object(BaseFunction, "get_call_type", _remembered),
        patch.object(types.Dispatcher, "get_call_type", kernel_for),
        patch.object(TargetConfig, "__eq__", _equal),
        patch.object(TargetConfig, "__hash__", _hashed),
        patch.object(TargetConfig, "values", _values),
        patch.object(NativeLowering, "lowering_class", ShortLower),
        patch.object(type(errors.termcolor()), "errmsg", lambda self, message: message),
        patch.object(ir.Inst, "_rec_list_vars", _variables),
        *(patch.object(*change) for change in (*CHANGES, *ANALYSES)),
    )
    with contextlib.ExitStack() as stack:
        if collected:
            stack.enter_context(_collected_after())
        for change in changes:
            stack.enter_context(change)
        yield
