"""What is known about the variables of a function before it is written down: which need no memory, no count of
references, and no look at their sign."""

# mypy: disable-error-code="attr-defined,index"

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from numba.core import analysis, ir, types

GROWING = (operator.add, operator.iadd, operator.mul, operator.imul, operator.floordiv, operator.ifloordiv)
SHIFTED = (operator.rshift, operator.irshift)


class Variables:
    """Facts about the variables of one function.

    uncounted: those whose references nobody has to count. borrowed: those among them that hold references of the
    caller. direct: those that are one value, set before it is used.
    """

    def __init__(self, function: Any, type_of: Callable[[str], Any], counted: Callable[[str], bool]) -> None:
        self._function, self._type_of = function, type_of
        self._set: dict[str, list[Any]] = {}
        for block in function.blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign):
                    self._set.setdefault(statement.target.name, []).append(statement.value)
        self.borrowed = self._closed({name for name in self._set if counted(name)}, self._lends)
        self.uncounted = {name for name in self._set if not counted(name)} | self.borrowed
        self.direct = self._found_direct()
        whole = {name for name in self._set if isinstance(type_of(name), types.Integer)}
        self._not_negative = self._closed(whole, self._grows)

    @classmethod
    def none(cls) -> Variables:
        """Nothing is known."""
        empty = cls.__new__(cls)
        empty._set, empty._not_negative = {}, set()
        empty.borrowed, empty.uncounted, empty.direct = set(), set(), set()
        return empty

    def parts_not_negative(self, index: str, count: int) -> list[bool]:
        """Which of the numbers of an index are never negative."""
        if count == 1 and not isinstance(self._type_of(index) if self._set else None, types.BaseTuple):
            return [index in self._not_negative]
        made = self._set.get(index, [])
        if len(made) != 1 or not isinstance(made[0], ir.Expr) or made[0].op != "build_tuple":
            return [False] * count
        return [item.name in self._not_negative for item in made[0].items]

    def _closed(self, names: set[str], holds: Callable[[str, Any, set[str]], bool]) -> set[str]:
        """The largest part of the names all of whose values hold if the part's own variables do."""
        while True:
            kept = {name for name in names if all(holds(name, value, names) for value in self._set[name])}
            if kept == names:
                return kept
            names = kept

    def _lends(self, name: str, value: Any, names: set[str]) -> bool:
        """Whether this value is an argument, or taken from tuples of arguments."""
        kind = self._type_of(name)
        if isinstance(value, ir.Arg):
            return bool(self._type_of("arg." + value.name) == kind)
        if isinstance(value, ir.Var):
            return value.name in names and bool(self._type_of(value.name) == kind)
        if not isinstance(value, ir.Expr) or value.op not in ("getattr", "static_getitem", "exhaust_iter"):
            return False
        of = self._type_of(value.value.name)
        if value.value.name not in names or not isinstance(of, types.BaseTuple):
            return False
        if value.op == "getattr":
            return isinstance(of, types.BaseNamedTuple) and bool(of[of.fields.index(value.attr)] == kind)
        if value.op == "exhaust_iter":
            return bool(of == kind)
        return isinstance(value.index, int) and -len(of) <= value.index < len(of) and bool(of[value.index] == kind)

    def _grows(self, name: str, value: Any, names: set[str]) -> bool:
        """Whether this value is never negative, if these variables are not."""
        kind = self._type_of(name)
        if not kind.signed:
            return bool(kind.bitwidth < types.intp.bitwidth)
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return isinstance(value.value, int) and value.value >= 0
        if isinstance(value, ir.Var):
            return value.name in names
        if not isinstance(value, ir.Expr):
            return False
        if value.op in ("binop", "inplace_binop"):
            if value.fn in GROWING:
                return value.lhs.name in names and value.rhs.name in names
            return value.fn in SHIFTED and value.lhs.name in names
        if value.op == "cast":
            return value.value.name in names
        if value.op == "pair_first":
            return self._counts_up(value.value.name, names)
        return value.op == "call" and self._only(value.func.name, "global") is len

    def _counts_up(self, pair: str, names: set[str]) -> bool:
        """Whether this comes from `range` with a first number that is not negative, and no step."""
        step = self._only(pair, "iternext")
        over = self._only(step, "getiter") if step else None
        call = self._range(over) if over else None
        return call is not None and (len(call.args) == 1 or call.args[0].name in names)

    def steps_by_one(self, name: str, op: str) -> bool:
        """Whether this is a `range` without a step ("getiter"), or an iterator over one ("iternext")."""
        over = self._only(name, "getiter") if op == "iternext" else name
        return bool(over) and self._range(over) is not None

    def _range(self, name: str) -> Any:
        """The call of `range` without a step that made a variable, or None."""
        call = self._made_once(name)
        if not isinstance(call, ir.Expr) or call.op != "call" or call.kws or call.vararg:
            return None
        return call if self._only(call.func.name, "global") is range and len(call.args) <= 2 else None

    def _only(self, name: str, op: str) -> Any:
        """What the only value of a variable works on, or for a global, what it is."""
        value = self._made_once(name)
        if op == "global":
            return value.value if isinstance(value, ir.Global) else None
        return value.value.name if isinstance(value, ir.Expr) and value.op == op else None

    def _made_once(self, name: str) -> Any:
        made = self._set.get(name, [])
        while len(made) == 1 and isinstance(made[0], ir.Var):
            made = self._set.get(made[0].name, [])
        return made[0] if len(made) == 1 else None

    def _found_direct(self) -> set[str]:
        """Variables set once, in a block that comes before every use, on every way and in the order of the blocks."""
        once = {name for name in self.uncounted if len(self._set[name]) == 1}
        before = analysis.compute_cfg_from_blocks(self._function.blocks).dominators()
        made: dict[str, tuple[int, int]] = {}
        for label, at, statement in _statements(self._function):
            if isinstance(statement, ir.Assign) and statement.target.name in once:
                made[statement.target.name] = (label, at)
        wrong = set()
        for label, at, statement in _statements(self._function):
            if isinstance(statement, ir.Del):
                continue
            target = statement.target.name if isinstance(statement, ir.Assign) else None
            for variable in statement.list_vars():
                name = variable.name
                if name not in once or (name == target and made[name] == (label, at) and not _reads(statement, name)):
                    continue
                block, place = made[name]
                fine = place < at if block == label else block in before[label] and block < label
                if not fine:
                    wrong.add(name)
        return once - wrong


def _statements(function: Any) -> Iterator[tuple[int, int, Any]]:
    for label, block in function.blocks.items():
        for at, statement in enumerate(block.body):
            yield label, at, statement


def _reads(statement: Any, name: str) -> bool:
    value = statement.value
    if isinstance(value, ir.Var):
        return bool(value.name == name)
    return isinstance(value, ir.Expr) and any(variable.name == name for variable in value.list_vars())
