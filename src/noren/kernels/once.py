"""Kernels that are optimised once: what a kernel calls is kept as it was written down, and the whole is optimised.

Numba makes every function a library of its own: optimised, turned into machine code, and optimised again inside each
caller. Here a function is a part, of which nothing is made but its text; whatever Python calls is a whole, which takes
its parts in, lets nothing of them be seen from outside, and is optimised as one. Numba's own functions that kernels
call are parts, too.
"""

# mypy: disable-error-code="attr-defined,misc,import-untyped"

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import llvmlite.binding as llvm
from numba.core import compiler, cpu, registry, types
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import _FunctionCompiler as FunctionCompiler
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.targetconfig import ConfigStack

from noren.kernels import calls
from noren.kernels.entry import Entry
from noren.kernels.lean import lean
from noren.kernels.passes import ShortCompiler

LONG = 500
"""Functions of more instructions stay functions. All of them in one cost LLVM a third more, and run no faster."""
INLINED = {"alwaysinline"}
EXTERNAL = llvm.Linkage.external
ENVIRONMENT = "_ZN08NumbaEnv"
"""How the names of globals begin that hold a function's environment."""


class Part(JITCodeLibrary):
    """The code of one function, not optimised; it cannot be run."""

    _own: Any = None

    @property
    def codegen(self) -> Any:
        return _Unplaced(self._codegen)

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            if sum(len(block.instructions) for block in function.blocks) > LONG and not function.attributes & INLINED:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)

    def add_llvm_module(self, ll_module: Any) -> None:
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def own_module(self) -> Any:
        """What a whole links: this function, without what it calls."""
        if self._own is None:
            self._own = super()._get_module_for_linking()
            self._shared_module = None
        return self._own

    def _get_module_for_linking(self) -> Any:
        """What other code of Numba links, which knows nothing of parts: this function with all that it calls."""
        if self._shared_module is None:
            together = self.own_module().clone()
            for library in _parts(self._linking_libraries):
                if library is not self:
                    together.link_in(_module_of(library), preserve=True)
            self._shared_module = together
        return self._shared_module


class _Unplaced:
    """What a part is made by: as a whole, except that it has no place in memory that an environment could be put in."""

    def __init__(self, codegen: Any) -> None:
        self._of = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing: the whole sets it."""


class Whole(JITCodeLibrary):
    """A function that Python calls, with all of its parts."""

    defined: tuple[str, ...] = ()
    level = 2
    """How hard LLVM tries. More, or loops written out several times, takes a fifth longer and runs no faster."""

    def add_llvm_module(self, ll_module: Any) -> None:
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        self._codegen._check_llvm_bugs()
        self._raise_if_finalized()
        for library in _parts(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(_module_of(library), preserve=True)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()

    def _optimize_final_module(self) -> None:
        """Needless counts of references go first: they keep loops from being improved."""
        machine = self._codegen._tm
        options = llvm.create_pipeline_tuning_options(speed_level=self.level)
        options.loop_vectorization, options.slp_vectorization = self.level > 1, False
        options.loop_interleaving, options.loop_unrolling = self.level > 1, False
        builder = llvm.create_pass_builder(machine, options)
        before = llvm.create_new_module_pass_manager()
        before.add_always_inliner_pass()
        before.add_sroa_pass()
        before.add_simplify_cfg_pass()
        before.add_refprune_pass()
        before.run(self._final_module, builder)
        whole = builder.getModulePassManager()
        whole.add_refprune_pass()
        whole.run(self._final_module, builder)

    def load(self, code: bytes, defined: tuple[str, ...]) -> None:
        """Take machine code that was kept."""
        self.enable_object_caching()
        self._set_compiled_object(code)
        super()._finalize_final_module()
        self._codegen._engine._defined_symbols |= set(defined)

    def _finalize_final_module(self) -> None:
        functions = self._final_module.functions
        self.defined = tuple(one.name for one in functions if not one.is_declaration and one.linkage == EXTERNAL)
        super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            name = variable.name
            environment = lookup_environment(name) if name.startswith(ENVIRONMENT) else None
            if environment is not None:
                self._codegen.set_env(name, environment)


def _module_of(library: Any) -> Any:
    return library.own_module() if isinstance(library, Part) else library._get_module_for_linking()


def _parts(libraries: list[Any]) -> list[Any]:
    """These libraries and all that parts among them need, each once."""
    found: dict[Any, None] = {}
    waiting = list(reversed(libraries))
    while waiting:
        library = waiting.pop()
        if library not in found:
            found[library] = None
            waiting += library._linking_libraries if isinstance(library, Part) else ()
    return list(found)


@contextlib.contextmanager
def parts_only(codegen: Any) -> Iterator[None]:
    """While this lasts, every library that Numba makes is a part. Only with the compiler's lock."""
    before = codegen.__dict__.get("_library_class")
    codegen._library_class = Part
    try:
        yield
    finally:
        if before is None:
            del codegen._library_class
        else:
            codegen._library_class = before


class WholeCompiler(FunctionCompiler):
    """Makes a whole of the part that another dispatcher has."""

    part: Any
    level: int

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        with lean():
            with parts_only(self.targetdescr.target_context.codegen()):
                self.part.compile(tuple(args))
            return self._whole(self.part.overloads[tuple(args)])

    def _whole(self, found: Any) -> Any:
        """What Python calls, made of this part."""
        target = found.target_context  # with reference counts, which the one of all functions lacks
        library = Whole(target.codegen(), found.fndesc.qualname)
        library.level = self.level
        library.enable_object_caching()
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        entries = patch.object(cpu, "PyCallWrapper", Entry)
        with ConfigStack().enter(flags), target.push_code_library(library), entries:
            target.create_cpython_wrapper(library, found.fndesc, found.environment, None, release_gil=True)
            target.add_linking_libs([found.library])
        entry = target.get_executable(library, found.fndesc, found.environment)
        target.insert_user_function(entry, found.fndesc, [found.library])
        return found._replace(library=library, entry_point=entry, metadata=None)


class WholeDispatcher(CPUDispatcher):
    """A kernel as Python calls it. Within other kernels its part is meant."""

    part: Any

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.part)


class Form:
    """A whole taken apart, to be kept, and put together: machine code without anything that others could link to."""

    def check_cachable(self, result: Any) -> bool:
        return not result.library.has_dynamic_globals

    def reduce(self, result: Any) -> Any:
        library, about = result.library, result.fndesc
        about.typemap = about.calltypes = None  # not needed any more, and large
        code = library.name, library._get_compiled_object(), library.defined
        environments = (result.environment, *result._find_referenced_environments())
        constants = tuple(tuple(one.consts) for one in environments)
        return code, about, result.signature, tuple(result.reload_init), environments, constants

    def rebuild(self, target: Any, kept: Any) -> Any:
        (name, code, defined), about, signature, inits, (environment, *environments), constants = kept
        for one, known in zip((environment, *environments), constants, strict=True):
            if len(one.consts) < len(known):  # Numba gives the environment of an earlier part, which wraps nothing
                one.consts[:] = known
        for init in inits:
            init()
        library = Whole(target.codegen(), name)
        library.load(code, defined)
        entry = target.get_executable(library, about, environment)
        for other in environments:
            library.codegen.set_env(other.env_name, other)
        return compiler.compile_result(
            target_context=target,
            typing_context=target.typing_context,
            library=library,
            environment=environment,
            entry_point=entry,
            fndesc=about,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=inits,
            referenced_envs=environments,
        )


def once(function: Callable[..., Any], level: int = 2, **options: Any) -> WholeDispatcher:
    """A kernel that is optimised as one with what it calls."""
    rtsys.initialize(registry.cpu_target.target_context)
    calls.install()
    wanted = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, **options}
    inline = wanted.pop("inline", "never")
    options_of_part = {**wanted, "no_cpython_wrapper": True, "inline": inline}
    part = CPUDispatcher(function, targetoptions=options_of_part, pipeline_class=ShortCompiler)
    whole = WholeDispatcher(function, targetoptions={**wanted, "inline": inline})
    whole.part = part
    whole._compiler = WholeCompiler(function, whole.targetdescr, whole.targetoptions, {}, compiler.Compiler)
    whole._compiler.part = part
    whole._compiler.level = level
    return whole
