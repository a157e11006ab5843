"""What Numba finds out about a function before it is written down, each thing once.

Numba asks anew after every step: which variables live where (six times a function, used once), which type every
statement has (in every round, though few change), which statements a renamed variable concerns (all of them, for every
variable). And it keeps a diary: every step, every call of LLVM and every statement is timed and announced to listeners.
Here what cannot have changed is not asked again, and no diary is kept. The answers are the same.
"""

# mypy: disable-error-code="no-untyped-call,import-untyped"

from __future__ import annotations

from typing import Any

from llvmlite.binding import ffi
from numba.core import errors, ir, ssa, transforms, typeinfer, types
from numba.core.compiler_machinery import PassManager
from numba.core.postproc import PostProcessor, VariableLifetime

SETTLED = (
    typeinfer.Propagate,
    typeinfer.ArgConstraint,
    typeinfer.BuildTupleConstraint,
    typeinfer.ExhaustIterConstraint,
    typeinfer.PairFirstConstraint,
    typeinfer.PairSecondConstraint,
    typeinfer.CallConstraint,
    typeinfer.IntrinsicCallConstraint,
    typeinfer.GetAttrConstraint,
    typeinfer.SetItemConstraint,
    typeinfer.StaticGetItemConstraint,
    typeinfer.StaticSetItemConstraint,
)
"""Statements whose types follow from those of their variables alone."""
NAMED = ("dst", "src", "target", "func")
"""What of a statement may be the name of a variable."""
_process: Any = PostProcessor.run


def processed(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """The blocks of a function in order; how long variables live is found out by whoever asks."""
    function = self.func_ir
    if function.is_generator:
        _process(self, emit_dels, extend_lifetimes)
        return
    function.blocks = transforms.canonicalize_cfg(function.blocks)
    function.variable_lifetime = VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels:
        self._insert_var_dels(extend_lifetimes=extend_lifetimes)


def rewritten(blocks: Any, states: Any, handler: Any) -> dict[Any, Any]:
    """The blocks after a variable was renamed; those that do not name it stay as they are."""
    name, changed = states["varname"], {}
    renames = isinstance(handler, ssa._FreshVarHandler)
    mentions: dict[int, set[str]] = {} if renames else vars(handler._cache_list_vars).setdefault("mentions", {})
    for label, block in blocks.items():
        if renames:
            concerned = any(type(one) is ir.Assign and one.target.name == name for one in block.body)
        else:
            concerned = name in _names_in(block, label, mentions)
        changed[label] = block
        if concerned:
            states["label"], states["block"] = label, block
            changed[label] = ir.Block(scope=block.scope, loc=block.loc)
            changed[label].body = [
                handler.on_assign(states, one) if isinstance(one, ir.Assign) else handler.on_other(states, one)
                for one in block.body
            ]
    return changed


def _names_in(block: Any, label: int, mentions: dict[int, set[str]]) -> set[str]:
    """The names that a block had when it was first looked at. What is renamed later was looked for before."""
    if label not in mentions:
        mentions[label] = {variable.name for one in block.body for variable in one.list_vars()}
    return mentions[label]


def propagated(self: Any, of: Any) -> list[Any]:
    """One round of type inference: statements whose variables have the types of the last round are left out."""
    found: list[Any] = []
    seen = self.__dict__.setdefault("seen", {})
    names = self.__dict__.setdefault("names", {})
    variables = of.typevars
    for constraint in self.constraints:
        at = id(constraint)
        if at not in names:
            names[at] = _names_of(constraint) if type(constraint) in SETTLED else None
        mine = names[at]
        if mine is not None and at in seen and seen[at] == [variables[name].type for name in mine]:
            continue
        try:
            constraint(of)
        except errors.ForceLiteralArg as fault:
            found.append(fault)
        except errors.TypingError as fault:
            found.append(_chained(fault, constraint.loc))
        else:
            if mine is not None:
                kinds = [variables[name].type for name in mine]
                if all(kind is not None and kind.is_precise() for kind in kinds) and not _recursive(kinds):
                    seen[at] = kinds
    return found


def _chained(fault: Any, place: Any) -> Any:
    raised = errors.TypingError(str(fault), loc=place, highlighting=False)
    raised.__cause__ = fault
    return raised


def _recursive(kinds: list[Any]) -> bool:
    """Whether a function calls itself here: then its type follows from what is known of it so far, too."""
    return any(isinstance(kind, types.RecursiveCall) for kind in kinds)


def _names_of(constraint: Any) -> list[str]:
    """All variables that a constraint names."""
    about = vars(constraint)
    named = NAMED[:-1] if isinstance(constraint, typeinfer.IntrinsicCallConstraint) else NAMED
    found = dict.fromkeys(about[key] for key in named if isinstance(about.get(key), str))
    waiting = list(about.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, ir.Var):
            found[value.name] = None
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, typeinfer.IntrinsicCallConstraint):
            waiting += vars(value).values()
    return list(found)


def step(self: Any, index: int, one: Any, state: Any) -> None:
    """One step from bytecode to instructions."""
    one.analysis = self._analysis
    try:
        one.run_initialization(state)
        one.run_pass(state)
        one.run_finalizer(state)
    except errors.NumbaError as fault:
        fault.add_context(f"Pass {one.name()}")
        raise


def called(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of LLVM's library, under its lock, of which nobody is told."""
    with self._lock._lock:
        return self._cfn(*args, **kwargs)


CHANGES = (
    (PostProcessor, "run", processed),
    (ssa, "_run_block_rewrite", rewritten),
    (typeinfer.ConstraintNetwork, "propagate", propagated),
    (PassManager, "_runPass", step),
    (ffi._lib_fn_wrapper, "__call__", called),
)
"""What holds while kernels are compiled."""
