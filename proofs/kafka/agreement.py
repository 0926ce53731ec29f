"""Compare what the reader reports about a directory with what Kafka's own classes read from it.

Two lines agree when every field of the expected one is present and equal. An absent field is a difference, and an
unexpected batch or record is one as well.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from typing import TYPE_CHECKING, Any

from proofs.kafka.dumped import dumped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Line = dict[str, Any]
Key = tuple[object, ...]

REMARKS = ("recordsRead", "sanityCheck")
"""Fields about Kafka's classes, not about the bytes."""
OPTIONS = ("--bytes", "base64", "--digest-over", "256")
"""Options under which longer values appear in the expected lines as size and digest."""
KINDS = (
    "file",
    "batch",
    "record",
    "logEnd",
    "offsetIndex",
    "timeIndex",
    "transactionIndex",
    "producerSnapshot",
    "text",
)


def differences(directory: Path, expected: list[Line]) -> list[str]:
    """Return the differences between the lines read from an unpacked case and the expected ones.

    Args:
        directory: the case; crash cases hold ``before`` and ``after``, which are read separately.
        expected: lines of ``expected.jsonl.gz``.
    """
    found = numbered(read(directory))
    wanted = numbered([line for line in expected if line["type"] in KINDS])
    missing = [f"missing: {name}" for name in wanted.keys() - found.keys()]
    extra = [f"not expected: {name}" for name in found.keys() - wanted.keys() if name[0] in ("batch", "record")]
    fields = [text for name in wanted.keys() & found.keys() for text in compared(wanted[name], found[name])]
    return sorted(missing + extra + fields)


def read(directory: Path, options: Sequence[str] = OPTIONS) -> list[Line]:
    """Return the lines of a case, named as in the expected ones; each state of a crash is read separately."""
    states = [name for name in ("before", "after") if (directory / name).is_dir()]
    if not states:
        return dumped(directory, *options)
    return [
        line | {"file": f"{state}/{line['file']}"} for state in states for line in dumped(directory / state, *options)
    ]


def numbered(lines: list[Line]) -> dict[Key, Line]:
    """Return lines by their key fields; the last part of a key numbers lines whose other parts are equal."""
    seen: Counter[Key] = Counter()
    table = {}
    for line in lines:
        name = (line["type"], line["file"], line.get("position"), line.get("offset"))
        table[*name, seen[name]] = line
        seen[name] += 1
    return table


def compared(wanted: Line, found: Line) -> list[str]:
    """Return the fields of one line that differ."""
    described = f"{wanted['type']} of {wanted['file']} at {wanted.get('position')}"
    if "invalid" in wanted:
        return [] if found.get("isValid") is False else [f"{described}: not seen as damaged"]
    wrong = []
    for name, value in wanted.items():
        if name in REMARKS:
            continue
        if name not in found:
            wrong.append(f"{described}: {name} is absent")
        elif not equal(name, value, found[name]):
            wrong.append(f"{described}: {name}: expected {value!r}, found {found[name]!r}")
    return wrong


def equal(name: str, wanted: Any, found: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether two values of a field are equal; header keys are text, and errors are in Kafka's words."""
    if name == "headers":
        found = [[b64decode(header_key).decode(), value] for header_key, value in found]
    if name == "error":
        return (found is None) == (wanted is None)
    return bool(wanted == found)
