"""The page of the pairs of writers and readers, from ``reports/pairs.json``."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.docs import causes
from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "pairs.json"
PAGE: Final = "docs/conformance/pairs.md"

TEXT: Final = """\
# Who reads what whom has written

{writers} producers and encoders wrote the same {records} records into {logs} logs, and {readers} clients, decoders and
storage implementations read them: of {pairs:,} pairs of a log and a reader, {equal:,} are equal. The records are about
{subjects}.

Whole clients and encoders wrote through `seglog serve --writable`, under each codec that they have, plain and
idempotent; whole clients wrote committed transactions through a stock broker. Whole clients read over the network, from
the endpoint of `seglog serve`; decoders got the bytes of the segment, and Kafka's storage classes the file. Each log is
compared with what its writer was given, and each reader with what the reference reads in the log.

{birth} A cell has the equal logs of those that were read; where some differ, it is bold. A
reader is not asked about a codec that it does not have.
"""

WAYS: Final = {"Over the network": ("wire",), "From disk": ("records", "disk")}

Json = dict[str, Any]


def pages(notice: str) -> dict[str, str]:
    """Return the page, by path."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    return {PAGE: "\n".join([notice + _introduction(report), *_tables(report), *_findings(report), ""])}


def _introduction(report: Json) -> str:
    logs, readers = report["logs"], _present(report)
    pairs = sum(len(readers) - len(log["skipped"]) for log in logs)
    return TEXT.format(
        writers=len({_writer(log)[0] for log in logs}),
        logs=len(logs),
        records=sum(report["subjects"].values()),
        readers=len(readers),
        pairs=pairs,
        equal=pairs - sum(len(log["differs"]) for log in logs),
        subjects=", ".join(report["subjects"]),
        birth=birth(report),
    )


def _present(report: Json) -> list[Json]:
    return [reader for reader in report["readers"] if "reason" not in reader]


def _writer(log: Json) -> tuple[str, str, str]:
    through = "" if log["through"] == "ours" else f", {log['through']}"
    return f"{log['writer']}{through}", log["version"], log["kind"]


def _tables(report: Json) -> Iterator[str]:
    writers = defaultdict(list)
    for log in report["logs"]:
        writers[_writer(log)].append(log)
    for title, ways in WAYS.items():
        readers = [reader for reader in _present(report) if reader["way"] in ways]
        yield from (f"## {title}", "")
        yield "| written by | " + " | ".join(f"{reader['name']} {reader['version']}" for reader in readers) + " |"
        yield "|---|" + "---:|" * len(readers)
        for (name, version, kind), logs in writers.items():
            cells = (_cell(logs, reader["name"]) for reader in readers)
            yield f"| {name} {version}, {kind} | " + " | ".join(cells) + " |"
        yield ""


def _cell(logs: Iterable[Json], reader: str) -> str:
    asked = [log for log in logs if reader not in log["skipped"]]
    equal = sum(reader not in log["differs"] for log in asked)
    counts = f"{equal}/{len(asked)}" if asked else ""
    return counts if equal == len(asked) else f"**{counts}**"


def _findings(report: Json) -> Iterator[str]:
    yield from _section("What writers changed", "Each wrote without an error what it was not given.", _changed(report))
    yield from _section("What writers refused", "The rest of the records was written without these.", _refused(report))
    yield from _section("What readers changed", "One example for each, and a log that has it.", _misread(report))
    missing = [f"{reader['name']}: {reader['reason']}" for reader in report["readers"] if "reason" in reader]
    yield from _section("Not asked", "", [*missing, *report["notWritten"]])
    yield from ("## Causes", "", "What no case of the suite shows.", "")
    for one in causes.read_pairs():
        yield from (f"### {one.library.removeprefix('https://github.com/')}", "", one.reason, "", *causes.shown(one))


def _section(title: str, words: str, lines: Iterable[str]) -> Iterator[str]:
    items = [f"- {_plain(line)}" for line in lines]
    if items:
        yield from (f"## {title}", "", *([words, ""] if words else []), *items, "")


def _changed(report: Json) -> Iterator[str]:
    found: dict[str, str] = {}
    for log in report["logs"]:
        name, version, _ = _writer(log)
        for line in log["wrote"]:
            found.setdefault(f"{name} {version}, {_without_values(line)}", f"{line} ({name} {version})")
    return iter(sorted(found.values()))


def _refused(report: Json) -> Iterator[str]:
    found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for log in report["logs"]:
        for subject, reason in log["refused"].items():
            found[_writer(log)[0], reason][subject] = None
    return (f"{name}: {', '.join(subjects)}: {reason}" for (name, reason), subjects in found.items())


def _misread(report: Json) -> Iterator[str]:
    found: dict[str, str] = {}
    for log in report["logs"]:
        name, _, kind = _writer(log)
        for reader, lines in log["differs"].items():
            for line in lines:
                example = f"{reader}: {line} ({name}, {kind}, {log['codec']})"
                found.setdefault(f"{reader}: {_without_values(line)}", example)
    return iter(sorted(found.values()))


def _without_values(line: str) -> str:
    """Return the subject and the field of a difference."""
    subject, colon, rest = line.partition(": ")
    return f"{subject}: {rest.split(' ')[0]}" if colon else line


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")
