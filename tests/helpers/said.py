"""What commands and readers say is missing or damaged in a partition directory, read from their ``--json``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from helpers.support import REPOSITORY
from seglog_format import open_partition
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Span = tuple[int, int]
    Said = tuple[int, set[Span]]
    """An exit status, and the first and next offset of everything that is missing or damaged."""

Capture = pytest.CaptureFixture[str]

WHOLE, FOUND, UNREAD = 0, 1, 3
"""Exit statuses."""


def lines_of(words: list[str], capsys: Capture) -> tuple[int, list[dict[str, Any]]]:
    """Run a command, and return its exit status and what it wrote."""
    capsys.readouterr()
    status = run([*words, "--json"])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def spans(missing: list[dict[str, Any]]) -> set[Span]:
    return {(each["firstOffset"], each["nextOffset"]) for each in missing if each["firstOffset"] < each["nextOffset"]}


def by_ls(path: Path, capsys: Capture) -> Said:
    status, lines = lines_of(["ls", str(path)], capsys)
    return status, spans([line for line in lines if line["type"] == "missing"])


def by_long_ls(path: Path, capsys: Capture) -> Said:
    status, lines = lines_of(["ls", "--long", str(path.parent)], capsys)
    return status, spans([each for line in lines for each in line["missing"]])


def by_verify(path: Path, capsys: Capture) -> Said:
    status, lines = lines_of(["verify", "--severity", "warning", str(path)], capsys)
    return status, spans([line["missing"] for line in lines if line["missing"]])


def by_dump(path: Path, capsys: Capture) -> Said:
    status, lines = lines_of(["dump", str(path)], capsys)
    found = [line for line in lines if line["type"] == "missing"]
    found += [
        {"firstOffset": line.get("baseOffset", line["nextOffset"]), "nextOffset": line["nextOffset"]}
        for line in lines
        if line["type"] == "batch" and not line["isValid"]
    ]
    return status, spans(found)


def by_recover(path: Path, capsys: Capture) -> Said:
    """Return what is missing, and what is cut; what follows a cut is whole, and only dropped."""
    status, (line,) = lines_of(["recover", str(path)], capsys)
    return status, spans([*line["missing"], *(each for each in line["lost"] if each["reason"] != "is dropped")])


def by_doctor(path: Path, capsys: Capture) -> Said:
    """Return what is missing, and what is cut; what follows a cut is whole, and only dropped."""
    status, lines = lines_of(["doctor", str(path)], capsys)
    return status, spans(
        [line["offsets"] for line in lines if line["offsets"] and "SEG-RCV-004" not in line["requirements"]]
    )


def by_salvage(path: Path, capsys: Capture) -> Said:
    status, lines = lines_of(["salvage", str(path), "-o", str(path.parent.parent / "out")], capsys)
    found = [line for line in lines if line["type"] == "missing"]
    segments = (line for line in lines if line["type"] == "salvage")
    return status, spans([*found, *(each for line in segments for each in line["missing"])])


def by_resurrect(path: Path, capsys: Capture) -> Said:
    """Return what the plan of a node says of lost offsets, first and last one."""
    status, lines = lines_of(["resurrect", "--unknown-topics", str(path.parent)], capsys)
    text = "\n".join(line["text"] for line in lines if line["type"] == "note" and line["about"] == path.name)
    found = re.findall(r"(?:missing,|offsets,|offsets) (\d+) to (\d+)", text)
    return status, {(int(first), int(last) + 1) for first, last in found}


def by_records(path: Path, _capsys: Capture) -> Said:
    """Return the gaps that the callback of `records` gets."""
    gaps: list[Any] = []
    with open_partition(path) as partition:
        list(partition.records(on_gap=gaps.append))
    lost = {(gap.first_offset, gap.next_offset) for gap in gaps if gap.is_loss}
    return int(bool(lost)), lost


def by_scan(path: Path, _capsys: Capture) -> Said:
    """Return the gaps that the callback of `scan` gets."""
    gaps: list[Any] = []
    with open_partition(path) as partition:
        partition.scan(columns=["offset"], on_gap=gaps.append, on_corrupt=lambda _: None).read_all()
    lost = {(gap.first_offset, gap.next_offset) for gap in gaps if gap.is_loss}
    return int(bool(lost)), lost


IN_FULL: Mapping[str, Callable[[Path, Capture], Said]] = {
    "ls": by_ls,
    "ls --long": by_long_ls,
    "verify": by_verify,
    "dump": by_dump,
    "recover": by_recover,
    "doctor": by_doctor,
    "salvage": by_salvage,
    "resurrect": by_resurrect,
    "records": by_records,
    "scan": by_scan,
}
"""What reads every segment, and tells offsets."""


def status_of_command(command: str, path: Path, capsys: Capture) -> int:
    """Return the exit status of a command for a partition; `diff` compares it with itself."""
    if command == "diff":
        return lines_of(["diff", str(path), str(path)], capsys)[0]
    if command == "find":
        return lines_of(["find", "no record has this", str(path)], capsys)[0]
    if command == "export":
        target = str(path.parent.parent / "table")
        return lines_of(["export", str(path), "--to", target, "--format", "jsonl"], capsys)[0]
    return IN_FULL[command](path, capsys)[0]


def documented_status(kind: str, command: str) -> int:
    """Return the status that the page of commands says."""
    page = (REPOSITORY / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines()]
    heads = next(row for row in rows if "at PATH" in row)
    (row,) = (row for row in rows if len(row) > 1 and row[1].startswith(kind))
    return int(row[next(number for number, cell in enumerate(heads) if command in cell.split(", "))])
