"""Plant faults into decoders written from the specification and into its algorithms, and ask the suite.

The decoders were written from the specification alone (`conformance/planted/`), so cases that only repeat the behaviour
of the reference do not flag their faults. A fault is one change to the text of one file: 26 in each of three decoders,
and 447 by a reader of the specification, in the decoder in Python and in the algorithms (`spec/algorithms/`), which
stand for an encoder and a storage; 107 by another reader. The goal is that two cases flag
each of 95 % of the faults of the readers.
"""

from __future__ import annotations

import ast
import builtins
import gzip
import io
import json
import multiprocessing
import resource
import shutil
import signal
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import ROOT, Outcome

sys.path.insert(0, str(ROOT / "conformance"))

from seglog_conformance.cases import load_cases, scale_directory
from seglog_conformance.direct import DirectTestee
from seglog_conformance.judging import Examiner
from seglog_conformance.registry import Builder, UnavailableError, listed
from seglog_conformance.toolchains import child_processes
from seglog_conformance.verdicts import FAILURES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.verdicts import Result

DECODERS: Final = ROOT / "conformance" / "planted"
LIST: Final = "faults.toml"
READERS: Final = DECODERS / "faults.json.gz"
"""The list of the reader of the specification, as it was before its first run."""
SECOND: Final = DECODERS / "second.toml"
"""The list of another reader, as it was before its first run."""
MISSED_FIRST: Final = DECODERS / "missed.toml"
"""Which of these faults the first run missed, and why some are none."""
PYTHON: Final = "conformance/planted/python"
ALGORITHMS: Final = "spec/algorithms"
PACKAGE: Final = "seglog_format"
"""Faults in it are in the second list, and need processes of their own: this proof leaves them out."""
Line = tuple[str, int]
"""Name of a file and line of a function in it."""
NOTE: Final = "_seglog_note_call"
EVERYWHERE: Final[Line] = ("", 0)
OF_READER: Final = "reader"
FRESH: Final = ("seglog_algorithms", "seglog_conformance.specification")
"""Modules that are imported again where a fault was planted."""
MIN_SHARE: Final = 0.97
"""Of the faults of the reader that two cases flag each: it may only rise."""
SECONDS: Final = 20
"""Time for a case in this process; a fault may loop for ever."""
ADDRESS_SPACE: Final = 4 << 30
MIN_FLAGGED: Final = 25
"""Of the faults of one decoder."""
LEVELS: Final = ("must", "should", "may")
AT_SCALE: Final = (
    *("scale/decode-65536-records", "scale/decode-65537-records"),
    *("scale/decode-none-1-mebibyte", "scale/decode-none-2-mebibytes"),
)
"""Of the family that runs by name alone: for faults that pass all others."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A change to a decoder.

    Attributes:
        id: its name in reports.
        what: behaviour of the decoder with the fault.
        why: reason why a programmer might write it.
        file: file of the decoder.
        find: text that occurs once in the file.
        replace: text in its place.
        missed_first: whether the suite did not flag it in the first run, before any change.
        unflagged: reason why no case flags it, and none has to; empty if a case must flag it.
    """

    id: str
    what: str
    why: str
    file: str
    find: str
    replace: str
    missed_first: bool = False
    unflagged: str = ""

    def plant(self, directory: Path) -> None:
        """Change the decoder in a directory.

        Raises:
            ValueError: the text to find does not occur exactly once.
        """
        path = directory / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.find) != 1:
            msg = f"{self.id}: {self.file} has the text {text.count(self.find)} times: {self.find}"
            raise ValueError(msg)
        path.write_text(text.replace(self.find, self.replace), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Flag:
    """The outcome of asking a decoder.

    Attributes:
        result: result of the first case that it failed; None if it passed all.
        level: level of that case.
        asked: number of cases that it answered, up to the second one that it failed, but not the case of scale.
        also: id of the second case that it failed; empty if it passed all others.
    """

    result: Result | None
    level: str
    asked: int
    also: str = ""


def decoders() -> list[str]:
    """List the decoders by name."""
    return sorted(path.parent.name for path in DECODERS.glob(f"*/{LIST}"))


def faults(decoder: str) -> list[Fault]:
    """List the faults of a decoder."""
    text = (DECODERS / decoder / LIST).read_text(encoding="utf-8")
    return [Fault(**entry) for entry in tomllib.loads(text)["fault"]]


def by_level() -> list[Case]:
    """Return all cases, those of the strongest level first, so a fault is reported with the strongest level."""
    return sorted(load_cases(), key=lambda case: (LEVELS.index(case.level), case.family))


def flag(decoder: str, fault: Fault | None, cases: Sequence[Case]) -> Flag:
    """Ask a decoder, with or without a fault, until it fails two cases.

    Raises:
        UnavailableError: its tool chain is not on this machine.
    """
    with _examiner(decoder, fault) as examiner:
        return _asked(examiner, cases)


def _asked(examiner: Examiner, cases: Sequence[Case], *, seconds: int = 0) -> Flag:
    asked, first = 0, Flag(None, "", 0)
    for case in cases:
        if seconds:
            signal.alarm(seconds)
        result = examiner.examine(case)
        asked += result.verdict != "SKIP"
        if result.verdict in FAILURES and first.result is not None:
            return replace(first, asked=asked, also=case.id)
        if result.verdict in FAILURES:
            first = Flag(result, case.level, asked)
    return replace(first, asked=asked)


def flag_at_scale(decoder: str, fault: Fault) -> Flag:
    """Ask a decoder with a fault to decode large batches, as it does without the fault."""
    cases = [case for case in load_cases(scale_directory()) if case.id in AT_SCALE]
    found = flag(decoder, fault, cases)
    if found.result is not None and flag(decoder, None, cases).result is not None:
        return Flag(None, "", found.asked)
    return found


@contextmanager
def _examiner(decoder: str, fault: Fault | None) -> Iterator[Examiner]:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch, decoder)
        shutil.copytree(DECODERS / decoder, directory)
        if fault is not None:
            fault.plant(directory)
        wanted = listed(str(directory))
        assert wanted.adapter is not None
        testee = Builder(Path(scratch, "build")).testee(wanted)
        examiner = Examiner(testee, seconds=wanted.adapter.seconds, extra_growth=wanted.adapter.extra_memory)
        try:
            yield examiner
        finally:
            examiner.close()


def readers_faults() -> list[Fault]:
    """List the faults that two readers of the specification planted."""
    missed = tomllib.loads(MISSED_FIRST.read_text(encoding="utf-8"))
    second = tomllib.loads(SECOND.read_text(encoding="utf-8"))["fault"]
    names = {"operation": "kind", "find": "old", "replace": "new"}
    second = [entry for entry in second if not entry["file"].startswith(PACKAGE)]
    listed_now = [{names.get(name, name): text for name, text in entry.items()} for entry in second]
    return [
        Fault(
            id=entry["id"],
            what=entry["what"],
            why=entry["kind"],
            file=entry["file"].replace("decoders/", "conformance/planted/"),
            **missed["moved"].get(entry["id"], {"find": entry["old"], "replace": entry["new"]}),
            missed_first=entry["id"] in missed["missed_first"],
            unflagged=missed["unflagged"].get(entry["id"], ""),
        )
        for entry in [*json.loads(gzip.decompress(READERS.read_bytes())), *listed_now]
    ]


def flag_readers(wanted: Sequence[Fault], workers: int) -> Iterator[Flag]:
    """Ask the algorithms and the decoder in Python with each fault alone: the cases that call the changed function.

    Raises:
        RuntimeError: they fail a case without a fault.
    """
    cases, processes = by_level(), multiprocessing.get_context("forkserver")  # this process may have threads
    processes.set_forkserver_preload(["proofs.planted", "seglog_conformance.specification"])  # once for all of them
    with child_processes.isolated_interpreters(), processes.Pool(workers, maxtasksperchild=1) as pool:
        sources = sorted({_source(fault) for fault in wanted})
        calls = dict(zip(sources, pool.map(_calls, sources, chunksize=1), strict=True))
        changed = [(_changed(fault), calls[_source(fault)]) for fault in wanted]
        concerned = ([case for case in cases if line in called[case.id]] for line, called in changed)
        flags = pool.map(_flag_inside, zip(wanted, concerned, strict=True), chunksize=1)
    for fault, found in zip(wanted, flags, strict=True):
        is_left = found.result is None and _source(fault) == PYTHON  # what it takes is seen only from outside
        yield flag("python", replace(fault, file=Path(fault.file).name), cases) if is_left else found


def _source(fault: Fault) -> str:
    return PYTHON if fault.file.startswith(PYTHON) else ALGORITHMS


def _calls(source: str) -> dict[str, set[Line]]:
    """Return which functions of a directory are called by each case: a copy notes its calls."""
    found, noted = {}, set[Line]()
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / source, Path(scratch, source))
        for path in Path(scratch, source).rglob("*.py"):
            path.write_text(_noting(path), encoding="utf-8")
        setattr(builtins, NOTE, noted.add)
        examiner = _examiner_inside(Path(scratch), source)
        for case in load_cases():
            noted.clear()
            result = examiner.examine(case)
            found[case.id] = {EVERYWHERE, *noted} if result.verdict != "SKIP" else set()
            if result.verdict in FAILURES:
                msg = f"{source} without a fault: {result.verdict} {case.id}: {result.detail}"
                raise RuntimeError(msg)
    return found


def _noting(path: Path) -> str:
    """Return a module each of whose functions first notes its call."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body[:0] = ast.parse(f"{NOTE}(({path.name!r}, {node.lineno}))").body
    return ast.unparse(tree)


def _changed(fault: Fault) -> Line:
    """Return the innermost function that holds the text of a fault; outside of any, every case is concerned."""
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    first = text[: text.index(fault.find)].count("\n") + 1
    last = first + fault.find.rstrip("\n").count("\n")
    inside = [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.lineno < first and last <= (node.end_lineno or 0)
    ]
    return (Path(fault.file).name, max(inside)) if inside else EVERYWHERE


def _flag_inside(given: tuple[Fault, Sequence[Case]]) -> Flag:
    """Ask what has a fault in this process, which ends then."""
    fault, cases = given
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / _source(fault), Path(scratch, _source(fault)))
        fault.plant(Path(scratch))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        signal.signal(signal.SIGALRM, _give_up)
        return _asked(_examiner_inside(Path(scratch), _source(fault)), cases, seconds=SECONDS)


def _examiner_inside(root: Path, source: str) -> Examiner:
    """Return the algorithms, or the decoder, of a directory in this process."""
    sys.path.insert(0, str(root / source))
    for name in [name for name in sys.modules if name.startswith(FRESH)]:
        del sys.modules[name]
    if source == PYTHON:
        sys.stdin = io.StringIO()  # the adapter reads requests to their end
        adapter: Any = import_module("adapter")
        adapter.hello = partial(adapter.hello, {})
        return Examiner(DirectTestee(source, adapter))
    from seglog_conformance.specification import Specification  # noqa: PLC0415 - from a changed directory

    return Examiner(DirectTestee(source, Specification()))


def _give_up(*_: object) -> None:
    raise TimeoutError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--decoder", choices=[*decoders(), OF_READER], help="only this one, or the list of the reader")
    parser.add_argument("--only", default="", help="faults whose ids hold this text")
    parser.add_argument("--workers", type=int, default=2, help="decoders that are asked at the same time")


def prove(options: argparse.Namespace) -> Outcome:
    """Ask each decoder without a fault, and then with each of its faults; then the faults of the reader."""
    cases = by_level()
    chosen = [options.decoder] if options.decoder else [*decoders(), OF_READER]
    facts: dict[str, Any] = {}
    failures: list[str] = []
    if OF_READER in chosen:
        chosen.remove(OF_READER)
        of_reader = [fault for fault in readers_faults() if options.only in fault.id]
        flags = list(flag_readers(of_reader, options.workers))
        facts[OF_READER] = _readers_facts(of_reader, flags)
        failures += readers_complaints(of_reader, flags)
    for decoder in chosen:
        wanted = [fault for fault in faults(decoder) if options.only in fault.id]
        try:
            sound, *flags = _flags(decoder, [None, *wanted], cases, options.workers)
        except UnavailableError as error:
            failures.append(f"{decoder}: {error}")
            continue
        facts[decoder] = _facts(sound, wanted, flags)
        failures += complaints(decoder, sound, wanted, flags)
    return Outcome({"cases": len(cases), "decoders": facts}, failures)


def _readers_facts(wanted: Sequence[Fault], flags: Sequence[Flag]) -> dict[str, Any]:
    pairs = list(zip(wanted, flags, strict=True))
    return {
        "faults": len(wanted),
        "noFaults": sum(bool(fault.unflagged) for fault in wanted),
        "flaggedAtFirst": sum(not fault.missed_first for fault in wanted),
        "flagged": sum(found.result is not None for _, found in pairs),
        "flaggedTwice": sum(bool(found.also) for _, found in pairs),
        "once": {fault.id: found.result.case for fault, found in pairs if found.result and not found.also},
        "missed": {fault.id: fault.what for fault, found in pairs if found.result is None and not fault.unflagged},
        "firstCases": {fault.id: found.result.case for fault, found in pairs if found.result and found.also},
    }


def readers_complaints(wanted: Sequence[Fault], flags: Sequence[Flag]) -> list[str]:
    """Return the problems: too few faults that two cases flag each, and flagged ones that are said to be none."""
    pairs = list(zip(wanted, flags, strict=True))
    found = [
        f"{fault.id}: {one.result.case} flags it, which the list rules out"
        for fault, one in pairs
        if one.result is not None and fault.unflagged
    ]
    real = [one for fault, one in pairs if not fault.unflagged]
    twice = sum(bool(one.also) for one in real)
    if twice < MIN_SHARE * len(real):
        found.append(f"{twice} of {len(real)} faults of the reader are flagged by two cases, less than {MIN_SHARE:.0%}")
    return found


def _flags(decoder: str, wanted: Sequence[Fault | None], cases: Sequence[Case], workers: int) -> list[Flag]:
    def asked(fault: Fault | None) -> Flag:
        found = flag(decoder, fault, cases)
        if fault is None or found.result is not None:
            return found
        return replace(flag_at_scale(decoder, fault), asked=found.asked)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(asked, wanted))


def _facts(sound: Flag, wanted: Sequence[Fault], flags: Sequence[Flag]) -> dict[str, Any]:
    flagged = [fault for fault, found in zip(wanted, flags, strict=True) if found.result is not None]
    return {
        "casesAsked": sound.asked,
        "faults": len(wanted),
        "flagged": len(flagged),
        "flaggedAtFirst": sum(not fault.missed_first for fault in wanted),
        "flaggedOnce": [fault.id for fault, one in zip(wanted, flags, strict=True) if one.result and not one.also],
        "byFault": {fault.id: _row(fault, found) for fault, found in zip(wanted, flags, strict=True)},
    }


def _row(fault: Fault, found: Flag) -> dict[str, Any]:
    if found.result is None:
        return {"what": fault.what, "flaggedBy": None, "casesAsked": found.asked, "reason": fault.unflagged}
    result = found.result
    row = {"what": fault.what, "flaggedBy": result.case, "level": found.level, "verdict": str(result.verdict)}
    return row | ({"alsoFlaggedBy": found.also} if found.also else {})


def complaints(decoder: str, sound: Flag, wanted: Sequence[Fault], flags: Sequence[Flag]) -> list[str]:
    """Return the problems: a wrong decoder, too few flagged faults, or other flagged faults than in the list."""
    found = []
    if sound.result is not None:
        found.append(f"{decoder} without a fault: {sound.result.verdict} {sound.result.case}: {sound.result.detail}")
    for fault, one in zip(wanted, flags, strict=True):
        if one.result is None and not fault.unflagged:
            found.append(f"{decoder} with {fault.id}: passes all {one.asked} cases")
        if one.result is not None and fault.unflagged:
            found.append(f"{decoder} with {fault.id}: {one.result.case} flags it, which the list rules out")
    least = len(wanted) - (len(faults(decoder)) - MIN_FLAGGED)
    flagged = sum(one.result is not None for one in flags)
    if flagged < least:
        found.append(f"{decoder}: {flagged} of {len(wanted)} faults are flagged, {least} have to be")
    return found
