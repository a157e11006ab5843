"""Kernels written down in few instructions: variables that need no memory get none, elements are reached directly.

Numba gives every variable that lives in several blocks a place in memory, counts references to whatever it holds, and
unpacks a whole array to reach one element; LLVM then removes most of that again, at a price. Here

- a variable that is set once, before all of its uses, is the value itself;
- numbers are not cleared when they are done with;
- arguments and what is taken out of named tuples among them is borrowed: whoever calls holds it until the call ends;
- an element of an array of numbers takes the pointer and the sizes that it needs, and no look at the sign of an index
  that cannot be negative;
- one number for a run of places is a loop, which need not look whether shapes agree;
- a loop over `range` without a step counts, and looks at no sign of its step.
"""

# mypy: disable-error-code="attr-defined,import-untyped"

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils, ir, types
from numba.core.lowering import Lower
from numba.cpython import slicing
from numba.np.arrayobj import fix_integer_index, load_item, store_item

from noren.kernels import calls
from noren.kernels.variables import Variables

DATA, SHAPE, STRIDES = 4, 5, 6
"""Where they stand in an array."""
ATTRIBUTES = {"shape": SHAPE, "size": 2}


class ShortLower(Lower):
    """Lowers a function to less code that does the same."""

    def init(self) -> None:
        super().init()
        if self.generator_info is None:
            calls.NAMES.add(self.fndesc.mangled_name)
            if not _tries(self.func_ir):
                calls.PLAIN.add(self.fndesc.mangled_name)

    def pre_lower(self) -> None:
        super().pre_lower()
        counted: dict[Any, bool] = {}
        models = self.context.data_model_manager

        def is_counted(name: str) -> bool:
            kind = self.typeof(name)
            if kind not in counted:
                counted[kind] = models[kind].contains_nrt_meminfo()
            return counted[kind]

        plain = self.generator_info is None and not self._disable_sroa_like_opt
        self._known = Variables(self.func_ir, self.typeof, is_counted) if plain else Variables.none()
        self._values: dict[str, Any] = {}

    def loadvar(self, name: str) -> Any:
        value = self._values.get(name)
        return super().loadvar(name) if value is None else value

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if name in self._known.direct:
            self._values[name] = value
        elif name in self._known.uncounted and name not in self._singly_assigned_vars:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))
        else:
            super().storevar(value, name, argidx=argidx)

    def delvar(self, name: str) -> None:
        if name not in self._known.uncounted:
            super().delvar(name)

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        moved = None
        for at, inst in enumerate(block.body):
            self.loc = inst.loc
            if inst is moved:
                moved = None
                continue
            self._moves = self._moved(inst, block.body[at + 1]) if at + 1 < len(block.body) else False
            moved = block.body[at + 1] if self._moves else None
            self.lower_inst(inst)
        self.post_block(block)

    def _moved(self, inst: Any, following: Any) -> bool:
        """Whether a variable is given to another, and gone thereafter: then nothing has to be counted."""
        if not isinstance(inst, ir.Assign) or not isinstance(inst.value, ir.Var) or not isinstance(following, ir.Del):
            return False
        name = inst.value.name
        same = following.value == name != inst.target.name and self.typeof(name) == self.typeof(inst.target.name)
        return same and name in self._blk_local_varmap and inst.target.name not in self._known.borrowed

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        if self._moves:
            return self._blk_local_varmap.pop(inst.value.name)
        if inst.target.name not in self._known.borrowed:
            return super().lower_assign(ty, inst)
        value = inst.value
        if isinstance(value, ir.Arg):
            return self.context.cast(self.builder, self.fnargs[value.index], self.typeof("arg." + value.name), ty)
        if isinstance(value, ir.Var):
            return self.context.cast(self.builder, self.loadvar(value.name), self.typeof(value.name), ty)
        of = self.loadvar(value.value.name)
        if value.op == "exhaust_iter":
            return of
        kind = self.typeof(value.value.name)
        index = kind.fields.index(value.attr) if value.op == "getattr" else value.index % len(kind)
        return self.builder.extract_value(of, index)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        kind = self.typeof(expr.value.name) if expr.op in ("getattr", "static_getitem") else None
        if expr.op == "getattr" and type(kind) is types.Array and kind.ndim and expr.attr in ATTRIBUTES:
            return self.builder.extract_value(self.loadvar(expr.value.name), ATTRIBUTES[expr.attr])
        if expr.op in ("pair_first", "pair_second"):
            pair = self.context.data_model_manager[self.typeof(expr.value.name)]
            place = pair.get_field_position(expr.op.removeprefix("pair_"))
            return self.builder.extract_value(self.loadvar(expr.value.name), place)
        if expr.op in ("getiter", "iternext") and self._known.steps_by_one(expr.value.name, expr.op):
            return self._counted(expr) if expr.op == "getiter" else self._next(resty, expr)
        if expr.op == "static_getitem" and type(kind) is types.Array and expr.index_var is not None:
            return self.lower_getitem(resty, expr, expr.value, expr.index_var, self.fndesc.calltypes[expr])
        return super().lower_expr(resty, expr)

    def _counted(self, expr: Any) -> Any:
        """An iterator over whole numbers from a first one on: how many are left, and which is next."""
        builder, state = self.builder, self.loadvar(expr.value.name)
        kind = self.typeof(expr.value.name)
        start, stop, step = (builder.extract_value(state, at) for at in range(3))
        zero = self.context.get_constant(kind.dtype, 0)
        with builder.goto_entry_block():
            place, left = builder.alloca(start.type), builder.alloca(start.type)
        size = builder.sub(stop, start)
        builder.store(start, place)
        builder.store(builder.select(builder.icmp_signed(">", size, zero), size, zero), left)
        return self._composed(kind.iterator_type, iter=place, stop=stop, step=step, count=left)

    def _next(self, pair: Any, expr: Any) -> Any:
        """The next number, and whether there is one; after the last one nobody asks which."""
        builder, iterator = self.builder, self.loadvar(expr.value.name)
        kind = self.typeof(expr.value.name)
        at = self.context.data_model_manager[kind].get_field_position
        place, left = (builder.extract_value(iterator, at(name)) for name in ("iter", "count"))
        zero, one = (self.context.get_constant(kind.yield_type, number) for number in (0, 1))
        number, count = builder.load(place), builder.load(left)
        builder.store(builder.add(number, one), place)
        builder.store(builder.sub(count, one), left)
        return self._composed(pair, first=number, second=builder.icmp_signed(">", count, zero))

    def _composed(self, kind: Any, **parts: Any) -> Any:
        """A structure of these parts."""
        model = self.context.data_model_manager[kind]
        made = llvm.Constant(model.get_value_type(), llvm.Undefined)
        for name, value in parts.items():
            made = self.builder.insert_value(made, value, model.get_field_position(name))
        return made

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        kind = self.typeof(value.name)
        if not _one_element(kind, self.typeof(index.name)) or resty != kind.dtype:
            return super().lower_getitem(resty, expr, value, index, signature)
        return load_item(self.context, self.builder, kind, self._place(value, index))

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        kind = self.typeof(target_var.name)
        given = self.typeof(value_var.name)
        numbers = isinstance(given, types.Number | types.Boolean)
        one = numbers and _one_element(kind, self.typeof(index_var.name))
        if not one and not (numbers and _one_run(kind, signature.args[1])):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        cast = self.context.cast(self.builder, self.loadvar(value_var.name), given, signature.args[2])
        cast = self.context.cast(self.builder, cast, signature.args[2], kind.dtype)
        if one:
            return store_item(self.context, self.builder, kind, cast, self._place(target_var, index_var))
        return self._fill(target_var, index_var, cast, types.unliteral(signature.args[1]))

    def _fill(self, array: Any, index: Any, value: Any, at: Any) -> None:
        """Write one number to a run of places, which lie one after the other."""
        builder, kind, of = self.builder, self.typeof(array.name), self.loadvar(array.name)
        given = self.context.cast(builder, self.loadvar(index.name), self.typeof(index.name), at)
        run = self.context.make_helper(builder, at, value=given)
        slicing.fix_slice(builder, run, builder.extract_value(of, [SHAPE, 0]))
        start, count = run.start, slicing.get_slice_length(builder, run)
        for axis in range(1, kind.ndim):
            size = builder.extract_value(of, [SHAPE, axis])
            start, count = builder.mul(start, size), builder.mul(count, size)
        first = builder.gep(builder.extract_value(of, DATA), [start])
        with cgutils.for_range(builder, count) as loop:
            store_item(self.context, builder, kind, value, builder.gep(first, [loop.index]))

    def _place(self, array: Any, index: Any) -> Any:
        """Where the element is."""
        builder, kind, of = self.builder, self.typeof(array.name), self.loadvar(array.name)
        at, given = self.typeof(index.name), self.loadvar(index.name)
        several = isinstance(at, types.BaseTuple)
        kinds = list(at.types) if several else [at]
        indices = cgutils.unpack_tuple(builder, given, count=len(kinds)) if several else [given]
        signs = self._known.parts_not_negative(index.name, len(kinds))
        fixed = []
        for axis, (one, of_kind, never) in enumerate(zip(indices, kinds, signs, strict=True)):
            if never:
                fixed.append(self.context.cast(builder, one, of_kind, types.intp))
            else:
                size = builder.extract_value(of, [SHAPE, axis])
                fixed.append(fix_integer_index(self.context, builder, of_kind, one, size))
        data = builder.extract_value(of, DATA)
        if kind.layout == "C":
            place = fixed[0]
            for axis in range(1, len(fixed)):
                size = builder.extract_value(of, [SHAPE, axis])
                place = builder.add(builder.mul(place, size), fixed[axis])
            return builder.gep(data, [place])
        strides = [builder.extract_value(of, [STRIDES, axis]) for axis in range(len(fixed))]
        shape = [builder.extract_value(of, [SHAPE, axis]) for axis in range(len(fixed))]
        return cgutils.get_item_pointer2(self.context, builder, data, shape, strides, kind.layout, fixed)


def _tries(function: Any) -> bool:
    """Whether a function catches what is raised in it."""
    values = (one.value for block in function.blocks.values() for one in block.body if isinstance(one, ir.Assign))
    named = (value.value for value in values if isinstance(value, ir.Global | ir.FreeVar))
    return any(getattr(one, "__module__", None) == "numba.core.unsafe.eh" for one in named)


def _one_run(kind: Any, index: Any) -> bool:
    """Whether such an index names numbers of an array of such a kind that lie one after the other."""
    if type(kind) is not types.Array or kind.layout != "C" or not isinstance(kind.dtype, types.Number | types.Boolean):
        return False
    return isinstance(index, types.SliceType) and not index.has_step


def _one_element(kind: Any, index: Any) -> bool:
    """Whether such an index names one number of an array of such a kind."""
    if type(kind) is not types.Array or not isinstance(kind.dtype, types.Number | types.Boolean):
        return False
    kinds = index.types if isinstance(index, types.BaseTuple) else [index]
    return len(kinds) == kind.ndim and all(isinstance(one, types.Integer) for one in kinds)
