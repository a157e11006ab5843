"""How Python calls a kernel: arguments become native values in few instructions.

Numba writes some fifty instructions for each array among the arguments, with a way out after each and all that is to be
undone on both ways, up to a quarter of a kernel. What an argument is was looked at before: a kernel is chosen by the
types of all its arguments. So here all of them are taken first, whether one failed is asked once, and arrays are given
back together.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,import-untyped,attr-defined"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.callwrapper import PyCallWrapper
from numba.core.runtime.nrtdynmod import incref_decref_ty

FAILED = "an argument of a kernel could not be read; its type is not the one that the kernel was made for"
PLAIN = (types.Integer, types.Float, types.Boolean, types.NoneType)


def _known(kind: Any) -> bool:
    """Whether a value is an array, a number, None, or a tuple of these."""
    if isinstance(kind, types.BaseTuple):
        return all(_known(one) for one in kind)
    return type(kind) is types.Array or (isinstance(kind, PLAIN) and not isinstance(kind, types.Literal))


def _arrays(kind: Any) -> list[Any]:
    if isinstance(kind, types.BaseTuple):
        return [array for one in kind for array in _arrays(one)]
    return [kind] if isinstance(kind, types.Array) else []


class Entry(PyCallWrapper):
    """What Python calls. Arguments of other kinds are taken as Numba takes them."""

    def build(self):
        """As Numba builds it, and not optimised: it runs once a call, and is full of what is costly to look at."""
        wrapper, api = super().build()
        wrapper.attributes.add("noinline")
        wrapper.attributes.add("optnone")
        return wrapper, api

    def build_wrapper(self, api, builder, closure, args, kws):
        if not all(_known(kind) for kind in self.fndesc.argtypes):
            super().build_wrapper(api, builder, closure, args, kws)
            return
        kinds = self.fndesc.argtypes
        objects = [api.alloca_obj() for _ in kinds]
        read = api.unpack_tuple(args, self.fndesc.qualname, len(kinds), len(kinds), *objects)
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, read)):
            builder.ret(api.get_null_object())
        environment = self.get_env(api, builder)
        self._place(builder, [array for kind in kinds for array in _arrays(kind)])
        values = [self._taken(api, builder, builder.load(one), kind) for one, kind in zip(objects, kinds, strict=True)]
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, self._failed)):
            self._given_back(builder)
            with cgutils.if_likely(builder, cgutils.is_null(builder, api.err_occurred())):
                api.err_set_string("PyExc_TypeError", FAILED)
            builder.ret(api.get_null_object())
        thread = api.save_thread() if self.release_gil else None
        status, result = self.context.call_conv.call_function(
            builder, self.func, self.fndesc.restype, kinds, values, attrs=("noinline",)
        )
        if thread is not None:
            api.restore_thread(thread)
        self._given_back(builder)
        with builder.if_then(status.is_ok, likely=True):
            with builder.if_then(status.is_none):
                api.return_none()
            builder.ret(api.from_native_return(self._simplified_return_type(), result, environment))
        self.context.call_conv.raise_error(builder, api, status)
        builder.ret(api.get_null_object())

    def _place(self, builder, arrays) -> None:
        """Room for all arrays, empty: what is not taken need not be given back."""
        room = ir.LiteralStructType([self.context.get_value_type(kind) for kind in arrays])
        self._room = cgutils.alloca_once(builder, room)
        if arrays:
            size = self.context.get_constant(types.intp, self.context.get_abi_sizeof(room))
            cgutils.memset(builder, self._room, size, 0)
        self._places = (self._at(builder, number) for number in range(len(arrays)))
        self._count = len(arrays)
        self._failed: Any = ir.Constant(ir.IntType(32), 0)

    def _at(self, builder, *path: int):
        return builder.gep(self._room, [ir.Constant(ir.IntType(32), at) for at in (0, *path)], inbounds=True)

    def _taken(self, api, builder, given, kind):
        """The native value of an object, whose parts are borrowed from it."""
        if isinstance(kind, types.BaseTuple):
            parts = [self._taken(api, builder, api.tuple_getitem(given, at), one) for at, one in enumerate(kind)]
            return self.context.make_tuple(builder, kind, parts)
        if isinstance(kind, types.Array):
            place = next(self._places)
            code = api.nrt_adapt_ndarray_from_python(given, builder.bitcast(place, api.voidptr))
            self._failed = builder.or_(self._failed, code)
            return builder.load(place)
        native = api.to_native_value(kind, given)
        self._failed = builder.or_(self._failed, builder.zext(native.is_error, ir.IntType(32)))
        return native.value

    def _given_back(self, builder) -> None:
        """Count down what was counted up when the arrays were taken; none is no reference."""
        function = cgutils.get_or_insert_function(builder.module, incref_decref_ty, "NRT_decref")
        for number in range(self._count):
            builder.call(function, [builder.load(self._at(builder, number, 0))])
