"""The steps from a kernel's bytecode to its instructions, without those that have nothing to do.

Numba walks every function some thirty times. Kernels have no closures, catch nothing and open no contexts, so what
Numba does about these is left out, and array expressions are looked for where types say that there is one. A function
that has any of them goes all the steps.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import types as python
from typing import Any

from numba.core import compiler, ir, types
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import InlineOverloads, NopythonRewrites
from numba.core.untyped_passes import (
    FindLiterallyCalls,
    InlineClosureLikes,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteDynamicRaises,
    WithLifting,
)

NEEDLESS = (
    WithLifting,
    InlineClosureLikes,
    RewriteDynamicRaises,
    MakeFunctionToJitFunction,
    FindLiterallyCalls,
    LiteralUnroll,
    LiteralPropagationSubPipelinePass,
    InlineOverloads,
)
"""What does nothing for a function without closures, contexts, literals asked for, and raised values."""
COMPUTED = ("binop", "inplace_binop", "unary", "call")
MARKS = ("literal_unroll", "literally", "objmode", "prange")


@register_pass(mutates_CFG=False, analysis_only=False)
class ArrayRewrites(NopythonRewrites):
    """Fuses array expressions, in functions that have one."""

    _name = "array_rewrites"

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for one in block.find_insts(ir.Assign):
                computed = isinstance(one.value, ir.Expr) and one.value.op in COMPUTED
                if computed and isinstance(state.typemap[one.target.name], types.Array):
                    return bool(super().run_pass(state))
        return False


class ShortCompiler(compiler.CompilerBase):
    """Goes the steps that a function needs."""

    def define_pipelines(self) -> list[Any]:
        manager = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        if not _simple(self.state.func_id.func.__code__):
            return [manager]
        short = PassManager("kernel")
        for step, about in manager.passes:
            if step not in NEEDLESS:
                short.add_pass(ArrayRewrites if step is NopythonRewrites else step, about)
        short.finalize()
        return [short]


def _simple(code: python.CodeType) -> bool:
    """Whether a function has no closures, and nothing that Numba replaces by name."""
    inner = any(isinstance(one, python.CodeType) for one in code.co_consts)
    return not inner and not set(MARKS) & set(code.co_names) and not code.co_exceptiontable
