"""Small functions within kernels, written down where they are called, without one of Numba's for every type.

They are `np.empty`, `np.zeros`, `np.full`, and the smaller or larger of two whole numbers. Numbers that stand in a call
between kernels have the type of any number, so that a kernel is not compiled once more for each of them.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,import-untyped"

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, errors, types
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl, _parse_empty_args, store_item

from noren.kernels.passes import ShortCompiler


def _kind_of(shape: Any, element: Any) -> Any:
    axes = parse_shape(shape)
    if element is None or axes is None:
        raise errors.TypingError(f"no array of shape {shape} and elements {element}")
    return types.Array(dtype=element, ndim=axes, layout="C")


def _empty(context, builder, signature, args):
    return _empty_nd_impl(context, builder, *_parse_empty_args(context, builder, signature, args))._getvalue()


def _zeros(context, builder, signature, args):
    array = _empty_nd_impl(context, builder, *_parse_empty_args(context, builder, signature, args))
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


@intrinsic
def empty(typing, shape, dtype):
    """`np.empty(shape, dtype)`."""
    return _kind_of(shape, parse_dtype(dtype))(shape, dtype), _empty


@intrinsic
def empty_floats(typing, shape):
    """`np.empty(shape)`."""
    return _kind_of(shape, types.float64)(shape), _empty


@intrinsic
def zeros(typing, shape, dtype):
    """`np.zeros(shape, dtype)`."""
    return _kind_of(shape, parse_dtype(dtype))(shape, dtype), _zeros


@intrinsic
def zero_floats(typing, shape):
    """`np.zeros(shape)`."""
    return _kind_of(shape, types.float64)(shape), _zeros


def _full(context, builder, signature, args):
    kind = signature.return_type
    array = _empty_nd_impl(context, builder, *_parse_empty_args(context, builder, signature, args))
    value = context.cast(builder, args[1], signature.args[1], kind.dtype)
    with cgutils.for_range(builder, array.nitems) as loop:
        store_item(context, builder, kind, value, builder.gep(array.data, [loop.index]))
    return array._getvalue()


@intrinsic
def full(typing, shape, value, dtype):
    """`np.full(shape, value, dtype)`."""
    return _kind_of(shape, parse_dtype(dtype))(shape, types.unliteral(value), dtype), _full


@intrinsic
def full_of(typing, shape, value):
    """`np.full(shape, value)`."""
    return _kind_of(shape, types.unliteral(value))(shape, types.unliteral(value)), _full


def _of_two(chosen):
    """An intrinsic that takes the first or the second of two whole numbers of one type."""

    def written(context, builder, signature, args):
        first, second = args
        compare = builder.icmp_signed if signature.return_type.signed else builder.icmp_unsigned
        return builder.select(compare(chosen, second, first), second, first)

    @intrinsic
    def one(typing, first, second):
        return first(first, second), written

    return one


_ARRAYS = {
    (np.empty, 1): empty_floats,
    (np.empty, 2): empty,
    (np.zeros, 1): zero_floats,
    (np.zeros, 2): zeros,
    (np.full, 2): full_of,
    (np.full, 3): full,
}
_NUMBERS = {min: _of_two("<"), max: _of_two(">")}


def direct(function: Any, args: Any) -> Any:
    """What stands for a function with these arguments, none of them by name; or None."""
    if function in _NUMBERS and len(args) == 2:
        first, second = (types.unliteral(arg) for arg in args)
        return _NUMBERS[function] if isinstance(first, types.Integer) and first == second else None
    return _ARRAYS.get((function, len(args)))


_ask_kernel: Any = types.Dispatcher.get_call_type


def kernel_for(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """The kernel for these types, numbers of any value among them."""
    if self.dispatcher._compiler.pipeline_class is ShortCompiler:
        args = tuple(types.unliteral(arg) if isinstance(arg, types.Literal) else arg for arg in args)
    return _ask_kernel(self, context, args, kws)
