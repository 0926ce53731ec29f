"""The way from a function to machine code, without what our kernels have no use for.

numba takes each function through some thirty passes, optimizes it, makes machine code of it and a wrapper for Python,
and does so with every helper too, though nothing but kernels ever calls one. Here helpers stop before all that: their
code is linked into the kernels, and optimized there once. That takes half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

if TYPE_CHECKING:
    from collections.abc import Iterable

BEFORE_LOWERING = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    AnnotateTypes,
)


class HelperLibrary(JITCodeLibrary):  # type: ignore[misc] # numba has no types
    """Code that is linked into that of others, and is not run by itself."""

    def finalize(self) -> None:
        """Take in what it calls itself, and nothing else."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as the class that this one replaces
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._final_module.verify()
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class HelperLowering(NativeLowering):  # type: ignore[misc] # numba has no types
    """Make code for a helper, and stop there."""

    _name = "helper_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower; Python gets an entry that it never calls."""
        state.library = HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        described = lowered.fndesc
        module, name = described.lookup_module(), described.qualname
        entry = _dynfunc.make_function(module, name, "a helper of kernels", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(entry, described, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


def _passes(name: str, classes: Iterable[type]) -> list[PassManager]:
    manager = PassManager(name)
    for each in classes:
        manager.add_pass(each, each.__name__)
    manager.finalize()
    return [manager]


class HelperCompiler(CompilerBase):  # type: ignore[misc] # numba has no types
    """Compiles what kernels call."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes."""
        return _passes("helper", (*BEFORE_LOWERING, HelperLowering, NoPythonBackend))


class KernelCompiler(CompilerBase):  # type: ignore[misc] # numba has no types
    """Compiles what Python calls."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes."""
        return _passes("kernel", (*BEFORE_LOWERING, NativeLowering, NoPythonBackend))
