"""Calls between kernels, written down in few instructions.

Numba takes every composite argument apart at a call and puts it together again in the function that is called: seven
numbers for an array, hundreds for a tuple of arrays, each an instruction on both sides that LLVM removes again. Here

- a function whose name is in `NAMES` takes each argument as one value, whoever calls it. Every other function is called
  as Numba calls it, so these changes stay for the life of the process, and any caller may call any function;
- a function whose name is in `PLAIN` (it tries nothing) hands its own place for faults on to what it calls, and returns
  the code of a fault as it came;
- what is returned and kept has the form that it is computed in, where both are the same.
"""

# mypy: disable-error-code="attr-defined,method-assign,assignment,no-untyped-call,import-untyped"

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.base import BaseContext
from numba.core.callconv import RETCODE_NONE, RETCODE_OK, BaseCallConv, CPUCallConv
from numba.core.cpu import CPUContext
from numba.core.datamodel.models import StructModel, UniTupleModel
from numba.core.datamodel.packer import ArgPacker
from numba.core.runtime.context import NRTContext

NAMES: set[str] = set()
"""Functions that take each argument as one value, by the names that the linker knows."""
PLAIN: set[str] = set()
"""Functions without `try`, likewise."""
_state: dict[str, Any] = {"gathers": False}


class Gathered(ArgPacker):
    """Knows where each argument stands if composite ones are one value each."""

    def __init__(self, models: Any, kinds: Any) -> None:
        self._models = [models.lookup(kind) for kind in kinds]
        self._whole = [isinstance(model, StructModel | UniTupleModel) for model in self._models]

    @property
    def argument_types(self) -> tuple[Any, ...]:
        both = zip(self._models, self._whole, strict=True)
        kinds = [model.get_value_type() if whole else model.get_argument_type() for model, whole in both]
        return tuple(kind for kind in kinds if kind != ())

    def as_arguments(self, builder: Any, values: Any) -> tuple[Any, ...]:
        given = [
            _of_kind(builder, value, model.get_value_type()) if whole else model.as_argument(builder, value)
            for model, whole, value in zip(self._models, self._whole, values, strict=True)
        ]
        return tuple(value for value in given if not isinstance(value, tuple))

    def from_arguments(self, builder: Any, args: Any) -> list[Any]:
        rest = iter(args)
        values = []
        for model, whole in zip(self._models, self._whole, strict=True):
            given = next(rest) if whole or model.get_argument_type() != () else ()
            values.append(given if whole else model.from_argument(builder, given))
        return values

    def assign_names(self, args: Any, names: Any) -> None:
        """None: names are for readers."""


class Outcome:
    """How a call ended, of which only what is asked is written down."""

    def __init__(self, builder: Any, code: Any, kind: Any) -> None:
        self._builder, self.code = builder, code
        self._may_be_none = isinstance(kind, types.Optional)

    def _is(self, code: Any) -> Any:
        return self._builder.icmp_signed("==", self.code, code)

    @functools.cached_property
    def is_none(self) -> Any:
        return self._is(RETCODE_NONE)

    @functools.cached_property
    def is_ok(self) -> Any:
        ok = self._is(RETCODE_OK)
        return self._builder.or_(ok, self.is_none) if self._may_be_none else ok

    @functools.cached_property
    def is_error(self) -> Any:
        if self._may_be_none:
            return self._builder.not_(self.is_ok)
        return self._builder.icmp_signed("!=", self.code, RETCODE_OK)


def _of_kind(builder: Any, value: Any, kind: Any) -> Any:
    """The value: a tuple of like things may come as one of unlike things, which is the same in other words."""
    if value.type == kind:
        return value
    made = ir.Constant(kind, ir.Undefined)
    for place, part in enumerate(kind.elements if hasattr(kind, "elements") else [kind.element] * kind.count):
        made = builder.insert_value(made, _of_kind(builder, builder.extract_value(value, place), part), place)
    return made


def install() -> None:
    """Make Numba's code generation look at `NAMES` and `PLAIN`; once is enough."""
    if getattr(BaseContext.get_arg_packer, "gathers", False):
        return
    as_before, unresolved = BaseContext.get_arg_packer, BaseContext.call_unresolved
    call, propagate = CPUCallConv.call_function, CPUCallConv.return_status_propagate

    def packer(self: Any, kinds: Any) -> Any:
        return Gathered(self.data_model_manager, kinds) if _state["gathers"] else as_before(self, kinds)

    def called(self: Any, builder: Any, callee: Any, kind: Any, kinds: Any, args: Any, attrs: Any = None) -> Any:
        with _as_for(_state.pop("unresolved", None) or getattr(callee, "name", None)):
            if builder.function.name not in PLAIN or attrs is not None or isinstance(kind, types.Generator):
                return call(self, builder, callee, kind, kinds, args, attrs)
            return _called(self, builder, callee, kind, self._get_arg_packer(kinds).as_arguments(builder, args))

    def recursive(self: Any, builder: Any, name: str, signature: Any, args: Any) -> Any:
        _state["unresolved"] = name  # what is called next is a place in memory, which has no name
        with _as_for(name):
            return unresolved(self, builder, name, signature, args)

    def propagated(self: Any, builder: Any, status: Any) -> None:
        if isinstance(status, Outcome):
            builder.ret(status.code)
        else:
            propagate(self, builder, status)

    packer.gathers = True
    BaseContext.get_arg_packer = packer
    BaseContext.call_unresolved = recursive
    CPUCallConv.call_function = called
    CPUCallConv.return_status_propagate = propagated
    BaseContext.declare_function = _named(BaseContext.declare_function, lambda module, about: about.mangled_name)
    for name in ("create_cpython_wrapper", "create_cfunc_wrapper"):
        setattr(CPUContext, name, _named(getattr(CPUContext, name), lambda library, about, *_: about.llvm_func_name))
    BaseCallConv.decode_arguments = _named(BaseCallConv.decode_arguments, lambda builder, kinds, of: of.name)


def _called(self: Any, builder: Any, callee: Any, kind: Any, args: tuple[Any, ...]) -> tuple[Outcome, Any]:
    """A call whose fault goes where the caller's own would; results of one type share a place."""
    result = self.get_return_type(kind).pointee
    places = builder.__dict__.setdefault("_places", {})
    if result not in places:
        with builder.goto_entry_block():
            places[result] = builder.alloca(result)
    code = builder.call(callee, [places[result], self._get_excinfo_argument(builder.function), *args])
    value = self.context.get_returned_value(builder, kind, builder.load(places[result]))
    return Outcome(builder, code, kind), value


@contextlib.contextmanager
def _as_for(name: str | None) -> Iterator[None]:
    before = _state["gathers"]
    _state["gathers"] = name in NAMES
    try:
        yield
    finally:
        _state["gathers"] = before


def _named(method: Any, name_of: Callable[..., str]) -> Any:
    """The method, with arguments packed as for the function that it is about."""

    @functools.wraps(method)
    def aware(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _as_for(name_of(*args)):
            return method(self, *args, **kwargs)

    return aware


def unchanged(method: str) -> Any:
    """A method of a model of structures, which leaves values alone whose two forms are the same."""
    as_before = getattr(StructModel, method)

    def brief(self: Any, builder: Any, value: Any) -> Any:
        return value if self.get_value_type() == self.get_data_type() else as_before(self, builder, value)

    return brief


_COUNTED: dict[Any, bool] = {}


def counted_parts(self: Any, builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
    """What is counted within a value, without a look at what is not."""
    model = self._context.data_model_manager[kind]
    found = [(kind, model.get_nrt_meminfo(builder, value))] if model.has_nrt_meminfo() else []
    for of, getter in model.traverse(builder):
        if of not in _COUNTED:
            _COUNTED[of] = self._context.data_model_manager[of].contains_nrt_meminfo()
        if _COUNTED[of]:
            found += counted_parts(self, builder, of, getter(value))
    return found


CHANGES = (
    (NRTContext, "get_meminfos", counted_parts),
    *((StructModel, name, unchanged(name)) for name in ("as_return", "from_return", "as_data", "from_data")),
)
"""What holds only while kernels are compiled: the same in fewer instructions."""
