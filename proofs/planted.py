"""Plant 26 faults into each of three decoders written from the specification, and ask the suite.

The decoders were written from the specification alone (`conformance/planted/`), so cases that only repeat the behaviour
of the reference do not flag their faults. A fault is one change to the text of one file.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import ROOT, Outcome

sys.path.insert(0, str(ROOT / "conformance"))

from seglog_conformance.cases import load_cases, scale_directory
from seglog_conformance.judging import Examiner
from seglog_conformance.registry import Builder, UnavailableError, listed
from seglog_conformance.verdicts import FAILURES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.verdicts import Result

DECODERS: Final = ROOT / "conformance" / "planted"
LIST: Final = "faults.toml"
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
    asked, first = 0, Flag(None, "", 0)
    with _examiner(decoder, fault) as examiner:
        for case in cases:
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--decoder", choices=decoders(), help="only this one")
    parser.add_argument("--only", default="", help="faults whose ids hold this text")
    parser.add_argument("--workers", type=int, default=2, help="decoders that are asked at the same time")


def prove(options: argparse.Namespace) -> Outcome:
    """Ask each decoder without a fault, and then with each of its faults."""
    cases = by_level()
    chosen = [options.decoder] if options.decoder else decoders()
    facts, failures = {}, []
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
