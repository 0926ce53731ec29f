"""The suite on one mutant: in a process of its own, forked with everything loaded that does not depend on it.

For a change inside a function, the function gets its new code; for any other change, or one in a function that runs
while modules load, the whole package is loaded again.

The first case with an unexpected answer ends the process. Processor time is limited for each case, and memory for the
process; a mutant that exceeds a limit counts as flagged.
"""

from __future__ import annotations

import functools
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from proofs.mutants.enforcement import PACKAGE, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "conformance")]

import coverage  # noqa: E402 - like the following, after the path is set
from seglog_conformance.cases import Case, load_cases  # noqa: E402
from seglog_conformance.direct import DirectTestee  # noqa: E402
from seglog_conformance.judging import Examiner  # noqa: E402
from seglog_conformance.processes import cap_address_space  # noqa: E402
from seglog_conformance.verdicts import FAILURES  # noqa: E402

CASE_SECONDS: Final = 20
"""Processor time for one case; the slowest takes two."""

MUTANT_SECONDS: Final = 600
"""Time on the clock for one mutant, for one that waits for ever."""

ADDRESS_SPACE_BYTES: Final = 4 << 30
"""Address space that a mutant may take on top of what the process has at its start."""

RELOADED: Final = ("seglog_format", "seglog_conformance.reference")
"""What a process loads again."""


@dataclass(frozen=True, slots=True)
class Flag:
    """The outcome of one mutant: the case that flagged it, or None."""

    case: str | None
    verdict: str
    detail: str
    asked: int


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant and the cases to ask, likely killers first.

    Attributes:
        texts: changed sources by file.
        cases: cases to ask.
        is_inside: whether only functions change, and none that runs while modules load.
    """

    texts: Mapping[str, str]
    cases: Sequence[Case]
    is_inside: bool


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from another source text than that of its file."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the compiled text."""
        return self.source_to_code(self._text.encode(), self.get_filename(fullname))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {_module_name(file): (file, text) for file, text in texts.items()}

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:  # noqa: ANN401, ARG002
        """Return the changed module, if it is one."""
        if fullname not in self._texts:
            return None
        file, text = self._texts[fullname]
        loader = _Loader(fullname, str(REPOSITORY / file), text)
        return importlib.util.spec_from_file_location(fullname, REPOSITORY / file, loader=loader)


def _module_name(file: str) -> str:
    parts = Path(file).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


LOADED_LATE: Final = ("codec", "codec.compression")
"""Packages with modules that are loaded when something asks for them."""


def loaded_files() -> list[str]:
    """Return the modules of the package that the suite's reference loads."""
    paths = [Path(str(module.__file__)) for name, module in sys.modules.items() if name.startswith(RELOADED[0])]
    return sorted(path.relative_to(REPOSITORY).as_posix() for path in paths)


def suite() -> list[Case]:
    """Return the fixed cases with their cached values; load the reference as well.

    The codecs are also loaded, which the reference loads at their first use: only loaded modules are changed.
    """
    importlib.import_module("seglog_conformance.reference")
    for package in (importlib.import_module(f"{RELOADED[0]}.{name}") for name in LOADED_LATE):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    cases = load_cases()
    for case in cases:
        _ = case.request, case.expect, case.digest, case.input_size, case.answer_size, case.answer_text_size
    return cases


class Functions:
    """The functions of the loaded package, by file, so that a fork can change them.

    Args:
        texts: the loaded sources by file, because the files may change meanwhile.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._found: dict[str, list[FunctionType]] = defaultdict(list)
        gc.unfreeze()  # a command may have frozen loaded objects, which are not listed then
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(PACKAGE)):
                self._found[one.__code__.co_filename].append(one)

    def change(self, file: str, text: str) -> None:
        """Give the functions of a module the code from a changed text."""
        path = str(REPOSITORY / file)
        new = {key: code for code, key in _numbered(_codes(compile(text, path, "exec", dont_inherit=True)))}
        source = self._texts[file]
        keys = {_where(code): key for code, key in _numbered(_codes(compile(source, path, "exec", dont_inherit=True)))}
        for one in self._found[path]:
            if _where(one.__code__) in keys:
                one.__code__ = new[keys[_where(one.__code__)]]


def _where(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _numbered(codes: Iterable[CodeType]) -> Iterator[tuple[CodeType, tuple[str, int]]]:
    """Yield codes with their name and their number among codes of that name, which do not change when lines move."""
    counts: Counter[str] = Counter()
    for code in sorted(codes, key=lambda one: (one.co_firstlineno, one.co_name)):
        yield code, (code.co_qualname, counts[code.co_qualname])
        counts[code.co_qualname] += 1


def _examiner() -> Examiner:
    reference = importlib.import_module("seglog_conformance.reference")
    examiner = Examiner(DirectTestee("mutant", reference.Reference()))
    examiner.start()
    return examiner


def _fresh(texts: Mapping[str, str]) -> Examiner:
    """Return the reference, loaded again with changed sources."""
    for name in [name for name in sys.modules if name.startswith(RELOADED)]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(texts))
    return _examiner()


def _changed(task: Task, functions: Functions) -> Examiner:
    if not task.is_inside:
        return _fresh(task.texts)
    for file, text in task.texts.items():
        functions.change(file, text)
    return _examiner()


def _limit() -> None:
    cap_address_space(os.getpid(), ADDRESS_SPACE_BYTES)  # a fork starts with all mappings of its parent
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def _ask(task: Task, functions: Functions, send: Callable[[Flag], None]) -> None:
    send(Flag("(import)", "HANG", "the package did not load in time", 0))
    signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
    try:
        examiner = _changed(task, functions)
    except BaseException as error:  # noqa: BLE001 - a mutant can do anything
        send(Flag("(import)", "CRASH", repr(error)[:200], 0))
        return
    for number, case in enumerate(task.cases, 1):
        send(Flag(case.id, "HANG", f"no answer within {CASE_SECONDS} s of processor time, or it died", number))
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
        try:
            result = examiner.examine(case)
        except BaseException as error:  # noqa: BLE001
            send(Flag(case.id, "CRASH", repr(error)[:200], number))
            return
        if result.verdict in FAILURES:
            send(Flag(case.id, str(result.verdict), result.detail[:200], number))
            return
    send(Flag(None, "PASS", "", len(task.cases)))


def run(
    tasks: Sequence[Task], sources: Mapping[str, str], jobs: int, until: float = math.inf
) -> Iterator[tuple[int, Flag]]:
    """Yield the number and the flag of each task as they end; start none after a monotonic time."""
    functions = Functions(sources)
    with tempfile.TemporaryDirectory(prefix="seglog-mutants-") as scratch:
        waiting = list(enumerate(tasks))[::-1]
        running: dict[int, tuple[int, Path, float]] = {}
        while waiting or running:
            if time.monotonic() > until:
                waiting.clear()
            while waiting and len(running) < jobs:
                number, task = waiting.pop()
                path = Path(scratch) / f"{number}.json"
                running[_start(task, functions, path)] = (number, path, time.monotonic())
            yield from _ended(running)
            time.sleep(0.02)


def _start(task: Task, functions: Functions, path: Path) -> int:
    process = os.fork()
    if process:
        return process
    try:
        os.setpgid(0, 0)
        own = path.with_suffix("")
        own.mkdir()
        tempfile.tempdir = str(own)
        _limit()
        reported = os.open(path, os.O_WRONLY | os.O_CREAT)
        _ask(task, functions, lambda flag: _write(reported, flag))
    finally:
        os._exit(0)


def _write(file: int, flag: Flag) -> None:
    data = json.dumps([flag.case, flag.verdict, flag.detail, flag.asked]).encode()
    os.pwrite(file, data, 0)
    os.ftruncate(file, len(data))


def _ended(running: dict[int, tuple[int, Path, float]]) -> Iterator[tuple[int, Flag]]:
    for process, (number, path, start) in list(running.items()):
        if time.monotonic() - start > MUTANT_SECONDS:
            os.killpg(process, signal.SIGKILL)
        if os.waitpid(process, os.WNOHANG)[0]:
            del running[process]
            yield number, Flag(*json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Reach:
    """The lines that each case runs.

    Attributes:
        lines: indexes of cases by file and line.
        loading: lines that run while modules load.
    """

    lines: dict[str, dict[int, frozenset[int]]]
    loading: dict[str, frozenset[int]]

    def of(self, file: str, first: int, last: int) -> frozenset[int]:
        """Return the cases that run any of some lines."""
        lines = self.lines.get(file, {})
        return frozenset().union(*(lines[line] for line in range(first, last + 1) if line in lines))


def reach(cases: Sequence[Case]) -> tuple[Reach, list[str]]:
    """Run the suite on the unchanged package; return the lines that each case runs, and unexpected answers."""
    with tempfile.TemporaryDirectory(prefix="seglog-reach-") as scratch:
        path = Path(scratch) / "reach.json"
        process = os.fork()
        if not process:
            try:
                tempfile.tempdir = scratch
                path.write_text(json.dumps(_measured(cases)), encoding="utf-8")
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        lines, loading, failing = json.loads(path.read_text(encoding="utf-8"))
    by_line = {file: {int(line): frozenset(found) for line, found in own.items()} for file, own in lines.items()}
    return Reach(by_line, {file: frozenset(own) for file, own in loading.items()}), failing


def _measured(cases: Sequence[Case]) -> tuple[dict[str, dict[int, list[int]]], dict[str, list[int]], list[str]]:
    measuring = coverage.Coverage(data_file=None, include=[f"{PACKAGE}/*"], config_file=False)
    measuring.start()
    examiner = _fresh({})
    caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]  # noqa: SLF001
    own = [one for one in caches if str(one.__module__).startswith(RELOADED)]
    failing = []
    for number, case in enumerate(cases):
        measuring.switch_context(str(number))
        for cache in own:
            cache.cache_clear()  # so every case runs all the code that it needs
        if examiner.examine(case).verdict in FAILURES:
            failing.append(case.id)
    measuring.stop()
    data = measuring.get_data()
    found, loading = {}, {}
    for file in data.measured_files():
        by_line = data.contexts_by_lineno(file)
        name = Path(file).relative_to(REPOSITORY).as_posix()
        found[name] = {line: [int(one) for one in contexts if one] for line, contexts in by_line.items()}
        loading[name] = [line for line, contexts in by_line.items() if "" in contexts]
    return found, loading, failing
