"""Let every producer write the same records, and every consumer and decoder read them."""

from __future__ import annotations

import tempfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import Outcome
from proofs.pairing.reading import OURS, read_logs, readers, written_differences
from proofs.pairing.subjects import subjects_of
from proofs.pairing.writing import Log, newest, write_logs, write_transactions
from proofs.writers.cells import CODECS, WRITERS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from seglog_conformance.registry import Listed

    from proofs.pairing.reading import Differences, Reader
    from proofs.pairing.subjects import Subject

OUR_NAMES: Final = frozenset(one.name for one in OURS)

Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for writers and readers."""
    parser.add_argument("--writers", nargs="+", metavar="NAME", help="titles of some writers, instead of all")
    parser.add_argument("--readers", nargs="+", metavar="NAME", help="names of some readers, instead of all")
    parser.add_argument("--codecs", nargs="+", default=list(CODECS), choices=CODECS, metavar="CODEC", help="to try")
    parser.add_argument("--no-broker", action="store_true", help="leave out transactions, which need a stock broker")


def prove(options: argparse.Namespace) -> Outcome:
    """Write all logs, and read each with every reader."""
    subjects = subjects_of(options.seed)
    writers = [newest(one) for one in WRITERS if not options.writers or one.title in options.writers]
    wanted = [one for one in readers() if not options.readers or one.name in options.readers]
    with tempfile.TemporaryDirectory(prefix="seglog-pairs-") as home:
        logs = Path(home) / "served"
        logs.mkdir()
        made = write_logs(logs, subjects, _say, writers, options.codecs)
        if not options.no_broker:
            made = chain(made, write_transactions(Path(home) / "broker", subjects, _say, writers, options.codecs))
        written = list(made)
    return _outcome(subjects, written, wanted)


def _outcome(subjects: Sequence[Subject], written: Iterable[Log | str], wanted: Sequence[Listed]) -> Outcome:
    logs = [one for one in written if isinstance(one, Log) and one.data]
    changed = [written_differences(log) for log in logs]
    found = []
    for listed, reader, differences in read_logs(logs, wanted):
        _say(f"{listed.label}: {reader if isinstance(reader, str) else f'{sum(map(bool, differences))} differ'}")
        found.append((listed, reader, differences))
    facts = {
        "subjects": {subject.name: len(subject.rows) for subject in subjects},
        "readers": [_reader_line(listed, reader) for listed, reader, _ in found],
        "logs": [_log_line(log, changed[number], number, found) for number, log in enumerate(logs)],
        "notWritten": [*(one for one in written if isinstance(one, str)), *_empty(written)],
    }
    return Outcome(facts, list(_failures(logs, changed, found)))


def _reader_line(listed: Listed, reader: Reader | str) -> Json:
    if isinstance(reader, str):
        return {"name": listed.name, "version": listed.version, "reason": reader}
    return {"name": listed.name, "version": reader.version, "language": reader.language, "way": reader.way}


def _log_line(
    log: Log, changed: Sequence[str], number: int, found: Sequence[tuple[Listed, Reader | str, Differences]]
) -> Json:
    """Return a log with its differences; readers that are not named read it as written."""
    read = {listed.name: differences[number] for listed, _, differences in found if differences}
    return {
        "writer": log.writer.title,
        "through": log.writer.way.value,
        "version": log.version,
        "language": log.language,
        "kind": log.kind.value,
        "codec": log.codec,
        "bytes": len(log.data),
        "refused": dict(log.refused),
        "wrote": changed,
        "skipped": [name for name, difference in read.items() if difference is None],
        "differs": {name: difference for name, difference in read.items() if difference},
    }


def _empty(written: Iterable[Log | str]) -> list[str]:
    """Return a line for each log without any record, with the reason."""
    logs = [log for log in written if isinstance(log, Log) and not log.data]
    reasons = ["; ".join(dict.fromkeys(log.refused.values())) for log in logs]
    return [
        f"{log.writer.title} ({log.writer.way.value}), {log.kind.value}, {log.codec}: {reason}"
        for log, reason in zip(logs, reasons, strict=True)
    ]


def _failures(
    logs: Sequence[Log], changed: Sequence[list[str]], found: Sequence[tuple[Listed, Reader | str, Differences]]
) -> Iterable[str]:
    """Yield the failures of this package; the report has those of the others."""
    for log, differences in zip(logs, changed, strict=True):
        if log.writer.title == "seglog-format" and (wrong := log.refused or differences):
            yield f"we do not write what we are given: {wrong}"
    for listed, reader, differences in found:
        if listed.name in OUR_NAMES:
            yield from (
                f"{listed.name}: {one}" for one in [*([reader] if isinstance(reader, str) else []), *differences] if one
            )


def _say(text: str) -> None:
    print(text, flush=True)
