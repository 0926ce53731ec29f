"""Compile every kernel ahead of time, into the library that `kernel_library` loads; linked, where there is a linker.

For each kernel, numba compiles a C function of numbers that calls it (for an array: its address and lengths), and LLVM
joins them into one object. Only documented interfaces are used. No kernel raises or allocates, so the code of numba for
errors is dead; it is removed, and the object needs nothing but ten functions of the interpreter.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.columnar.kernel_library import (
    DIRECTORY,
    ENVIRONMENT,
    LINKED,
    MANIFEST,
    NUMBER_COUNTS,
    UNLINKED,
    KernelLibrary,
    digest,
    machine_name,
    open_library,
    processor_level,
)
from seglog_format.errors import UsageError
from seglog_format.storage.child_processes import NOWHERE, find_program, process_pool, run

if TYPE_CHECKING:
    from collections.abc import Sequence

Part = tuple[str, str, str, dict[str, Any]]
"""Name of a kernel, its symbol, its LLVM code and its signature."""

BASELINE: Final = "+cmov,+cx8,+cx16,+fxsr,+mmx,+popcnt,+sahf,+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+crc32,+pclmul"
WIDER: Final = (
    "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+vpclmulqdq"
)
TARGETS: Final = {"v2": ("x86-64-v2", BASELINE), "v4": ("x86-64-v4", f"{BASELINE},{WIDER}"), "any": ("generic", "")}
"""LLVM's processor and features of each level; carry-less products belong to no level of x86-64."""
STUBS: Final = """
declare void @llvm.trap()
define void @numba_gil_ensure(ptr %a) noreturn nounwind { call void @llvm.trap() unreachable }
define void @NRT_MemInfo_call_dtor(ptr %a) noreturn nounwind { call void @llvm.trap() unreachable }
define i32 @numba_attempt_nocopy_reshape(i64 %a, ptr %b, ptr %c, i64 %d, ptr %e, ptr %strides, i64 %item, i32 %f) {
  store i64 %item, ptr %strides
  ret i32 1
}
"""
"""The first two are dead code, which the passes remove with all that only it refers to; the third is `reshape(-1)`."""
PASSES: Final = (
    *("rpo_function_attrs", "always_inliner", "ipsccp", "dead_code_elimination", "simplify_cfg"),
    *("instruction_combine", "ipsccp", "simplify_cfg", "dead_arg_elimination", "global_opt"),
    *("global_dead_code_eliminate", "constant_merge", "merge_functions", "simplify_cfg", "instruction_combine"),
    *("global_dead_code_eliminate", "strip_dead_prototype"),
)
LINKERS: Final = (
    *((name, "-shared", "-nostdlib") for name in ("cc", "gcc", "clang")),
    *((name, "-shared") for name in ("ld.lld", "ld")),
)


def linker() -> Sequence[str] | None:
    """Return the command that links a shared object; None if this machine has none."""
    known = LINKERS if sys.platform == "linux" else ()
    return next((command for command in known if find_program(command[0])), None)


def make_libraries(levels: Sequence[str] = ()) -> list[tuple[str, bool]]:
    """Make the libraries of this package that are not there yet, or do not fit.

    Args:
        levels: of the processors that they are for; by default this processor's.

    Returns:
        The name of each kernel, and whether it was compiled just now; once for each level.

    Raises:
        UsageError: numba is not installed, or the linker fails.
    """
    made = []
    for level in levels or [processor_level()]:
        directory = DIRECTORY / level
        known = open_library(directory)
        names = known.names if isinstance(known, KernelLibrary) else []
        made += [(name, not names) for name in names or build(directory, level)]
    return made


def build(directory: Path, level: str, processes: int | None = None) -> list[str]:
    """Compile a library of all kernels, about a minute of processor time.

    Args:
        directory: receives it; replaced as a whole: no process sees half of it.
        level: of the processors that it is for.
        processes: number of processes; by default one for each processor.

    Returns:
        The names of the kernels.

    Raises:
        UsageError: numba is not installed, or the linker fails, or the level is one of another kind of processor.
    """
    if find_spec("numba") is None:
        msg = "kernels are compiled by numba: pip install 'seglog-format[compile]'"
        raise UsageError(msg)
    if level != "any" and machine_name().rpartition(" ")[2] not in {"x86_64", "AMD64"}:
        msg = f"{level} is a level of x86-64, and this is {machine_name()}"
        raise UsageError(msg)
    before = {**os.environ}
    cpu, features = TARGETS[level]
    # numba reads these when it is imported, which happens in the processes below only.
    os.environ.update({ENVIRONMENT: "jit", "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features})
    os.environ.pop("NUMBA_BOUNDSCHECK", None)
    os.environ.pop("NUMBA_CACHE_DIR", None)
    try:
        with process_pool(processes, get_context("spawn")) as pool:
            compiled = [*pool.map(_compiled, kernel_modules())]
            parts = [part for found, _ in compiled for part in found]
            code = pool.submit(_object_code, parts, cpu, features).result()
    finally:
        os.environ.clear()
        os.environ.update(before)
    manifest = {
        "level": level,
        "machine": machine_name(),
        "sources": {module: digest(module) for module in sorted({each for _, modules in compiled for each in modules})},
        "kernels": {name: signature for name, _, _, signature in parts},
    }
    _store(directory, manifest, code)
    return [*manifest["kernels"]]


def kernel_modules() -> list[str]:
    """Return the modules with kernels, the largest first."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))}
    marked = [name for name, text in texts.items() if "\n@kernel\n" in text or "\n@kernel_under_lock\n" in text]
    return sorted(marked, key=lambda name: -len(texts[name]))


def _store(directory: Path, manifest: dict[str, Any], code: bytes) -> None:
    link = linker()
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}-") as made:
        new, compiled = Path(made, "new"), Path(made, "kernels.o")
        new.mkdir(mode=0o755)
        manifest["file"] = LINKED if link else UNLINKED
        if link is None:
            (new / UNLINKED).write_bytes(code)
        else:
            compiled.write_bytes(code)
            command = [*link, "-o", str(new / LINKED), str(compiled)]
            done = run(command, directory=NOWHERE, check=False, capture_output=True)
            if done.returncode:
                msg = f"{link[0]} cannot link the kernels: {done.stderr.decode(errors='replace').strip()}"
                raise UsageError(msg)
        (new / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        if directory.exists():
            directory.rename(Path(made, "old"))
        new.rename(directory)


def _compiled(module: str) -> tuple[list[Part], list[str]]:
    """Return the kernels of a module, and the modules of this package that are loaded for it."""
    from seglog_format.columnar import jit  # noqa: PLC0415 - imports numba

    import_module(f"{__package__}.{module}")
    own = [kernel for kernel in jit.KERNELS if kernel.py_func.__module__.endswith(f".{module}")]
    loaded = [name.rpartition(".")[2] for name in sys.modules if name.startswith(f"{__package__}.")]
    return [_part(kernel) for kernel in own], loaded


def _part(kernel: Any) -> Part:
    code, kinds = _c_function(kernel), dict(kernel.py_func.__annotations__)
    signature = {
        "gives": kinds.pop("return"),
        "takes": list(kinds.items()),
        "holds_lock": not kernel.targetoptions["nogil"],
    }
    return kernel.py_func.__name__, code.native_name, code.inspect_llvm(), signature


def _c_function(kernel: Any) -> Any:
    """Return a C function of 64-bit numbers that calls a kernel."""
    from numba import carray, cfunc, njit, types  # noqa: PLC0415 - needed to build, not to run

    from seglog_format.columnar.jit import OPTIONS  # noqa: PLC0415 - imports numba

    items = {"Bytes": types.uint8, "Numbers": types.int64, "Table": types.int64}
    kinds = dict(kernel.py_func.__annotations__)
    gives = kinds.pop("return")
    given, passed, of_c = [], [], []
    for name, kind in kinds.items():
        lengths = [f"{name}_{number}" for number in range(NUMBER_COUNTS.get(kind, 1) - 1)]
        given += [name, *lengths]
        of_c += [types.CPointer(items[kind]) if lengths else types.int64, *[types.int64] * len(lengths)]
        number = f"{name} != 0" if kind == "bool" else name
        passed.append(f"carray({name}, ({', '.join(lengths)},))" if lengths else number)
    call = f"inner({', '.join(passed)})"
    body = f"{call}; return 0" if gives == "None" else f"return int64({call})"
    space = {"carray": carray, "inner": njit(**OPTIONS)(kernel.py_func), "int64": types.int64}
    exec(f"def outer({', '.join(given)}): {body}", space)  # noqa: S102 - parameters differ
    return cfunc(types.int64(*of_c), nopython=True, error_model="numpy")(space["outer"])


def _object_code(parts: list[Part], cpu: str, features: str) -> bytes:
    """Return an object file of all kernels, in which only their C functions are visible."""
    from llvmlite import binding as llvm  # noqa: PLC0415 - comes with numba

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    whole = llvm.parse_assembly(STUBS)
    for name, symbol, text, _ in parts:
        module = llvm.parse_assembly(text)
        for each in (*module.functions, *module.global_variables):
            if each.name == symbol:
                each.name = f"seglog_{name}"
            elif not each.is_declaration and not each.name.startswith("llvm."):
                each.linkage = "internal"
        whole.triple, whole.data_layout = module.triple, module.data_layout
        whole.link_in(module)
    for each in whole.functions:
        if not each.is_declaration and not each.name.startswith("seglog_"):
            each.linkage = "internal"
    machine = llvm.Target.from_triple(whole.triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
    )
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    manager = llvm.create_new_module_pass_manager()
    for name in PASSES:
        getattr(manager, f"add_{name}_pass")()
    manager.run(whole, builder)
    code: bytes = machine.emit_object(whole)
    return code
