"""Reads of the logs by every reader, and the differences from the written records."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.cases import Case
from seglog_conformance.features import EVERYTHING, UNTOLD_OF_MODELS, Mask
from seglog_conformance.judging import Examiner
from seglog_conformance.reference import decode
from seglog_conformance.registry import BUILDS, COLUMNAR, REFERENCE, AdapterError, Builder, Listed, adapters
from seglog_conformance.testee import StartError
from seglog_conformance.values import same
from seglog_conformance.verdicts import Verdict, shown

from proofs.kafka.oracle import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_conformance.verdicts import Result

    from proofs.pairing.writing import Log

OURS: Final = (Listed(REFERENCE), Listed(COLUMNAR))
SHOWN_SIZE: Final = 40
MARKER: Final = "marker of a transaction"
SEGMENT: Final = f"{0:020}.log"

Json = dict[str, Any]
Differences = list[list[str] | None]
"""What differs, by log; see `Reader.read`."""


def readers() -> list[Listed]:
    """Return all readers: this package, and each implementation in the first release of the matrix."""
    return [*OURS, *(Listed(one.name, one.asked[0], one) for one in adapters())]


class Reader:
    """A started reader; to be closed.

    Args:
        wanted: its testee.

    Attributes:
        version: version of the library.
        language: language of the library.
        way: ``wire`` for a whole client, ``disk`` for one that is given files, ``records`` for a decoder.

    Raises:
        AdapterError: it cannot be built on this machine.
        StartError: it does not start.
    """

    def __init__(self, wanted: Listed) -> None:
        limits = {} if wanted.adapter is None else {"extra_growth": wanted.adapter.extra_memory}
        self._examiner = Examiner(Builder(REPOSITORY / BUILDS).testee(wanted), seconds=60, **limits)
        hello = self._examiner.start()
        self._features = hello.features
        self.version, self.language = hello.implementation.version, hello.implementation.language
        is_client = wanted.adapter is not None and "seglog_conformance.wire" in wanted.adapter.run
        is_storage = wanted.adapter is not None and "read" in hello.ops
        self.way = "wire" if is_client else "disk" if is_storage else "records"

    def read(self, number: int, log: Log, batches: Sequence[Json]) -> list[str] | None:
        """Read a log.

        Args:
            number: number of the log.
            log: the log on disk.
            batches: its batches as the reference decodes them.

        Returns:
            The differences; None if the reader lacks a feature of the log.
        """
        result = self._examiner.examine(_case(number, log, batches, reads_files=self.way == "disk"))
        if result.verdict is Verdict.SKIP:
            return None
        return [] if result.verdict is Verdict.PASS else self._explained(result, log, batches)

    def _explained(self, result: Result, log: Log, batches: Sequence[Json]) -> list[str]:
        answer = result.answer or {}
        found: list[str] = []
        if answer.get("ok"):
            given = [{"records": answer["records"]}] if "records" in answer else answer["batches"]
            mask = Mask(self._features)
            expected = data_records(batches, has_control=mask.has_control)
            found = differing(expected, data_records(given, has_control=mask.has_control), names_of(log), mask)
        return found or [f"{result.verdict}: {(result.differences or (result.detail,))[0]}"]

    def close(self) -> None:
        """End the reader and remove its files."""
        self._examiner.close()


def read_logs(logs: Sequence[Log], wanted: Sequence[Listed]) -> Iterator[tuple[Listed, Reader | str, Differences]]:
    """Have each reader read each log.

    Args:
        logs: the written logs.
        wanted: the readers.

    Yields:
        The started reader, or the reason why it did not start, and the differences by log; see `Reader.read`.
    """
    decoded = [decode({"data": log.data.hex()})["batches"] for log in logs]
    for listed in wanted:
        try:
            reader = Reader(listed)
        except (AdapterError, StartError) as error:
            yield listed, str(error).splitlines()[0], []
            continue
        with closing(reader):
            pairs = zip(logs, decoded, strict=True)
            yield listed, reader, [reader.read(number, *pair) for number, pair in enumerate(pairs)]


def written_differences(log: Log) -> list[str]:
    """Return the differences between a log, as the reference reads it, and the records that its writer was given."""
    answer = decode({"data": log.data.hex()})
    if not answer["ok"]:
        return [f"the log cannot be read: {answer['reject']['message']}"]
    rows = [row for subject in log.subjects for row in subject.rows]
    wanted = [
        {
            "timestamp": str(row.timestamp_ms),
            "key": None if row.key is None else row.key.hex(),
            "value": None if row.value is None else row.value.hex(),
            "headers": [[key.hex(), None if value is None else value.hex()] for key, value in row.headers],
        }
        for row in rows
    ]
    return differing(wanted, data_records(answer["batches"]), names_of(log), Mask(EVERYTHING))


def _case(number: int, log: Log, batches: Sequence[Json], *, reads_files: bool) -> Case:
    """Return the case for a log: to read the bytes of a producer."""
    data = log.data.hex()
    asked: Json = {"data": data, "options": {"crc": True}}
    expected: Json = {"batches": list(batches)}
    if reads_files:
        asked = {"files": {SEGMENT: data}, "offset": "0"}
        expected = {"records": data_records(batches)}
    return Case(
        id=f"pairs/{number}",
        family=0,
        family_name="pairs",
        op="read" if reads_files else "decode",
        requirements=(),
        level="must",
        result="valid",
        why=f"{log.writer.title} wrote it, and a broker has taken it.",
        stored_request=asked,
        stored_expect=expected,
        needs=("magic:2", f"codec:{log.codec}"),
        untold=UNTOLD_OF_MODELS["read" if reads_files else "decode"],
    )


def names_of(log: Log) -> list[str]:
    """Return the subject of each record of a log."""
    return [subject.name for subject in log.subjects for _ in subject.rows]


def data_records(batches: Sequence[Json], *, has_control: bool = False) -> list[Json]:
    """Return the records of batches, in order; those of control batches only if they are delivered."""
    return [
        record for batch in batches if has_control or not batch.get("isControl") for record in batch.get("records", ())
    ]


def differing(expected: Sequence[Json], given: Sequence[Json], names: Sequence[str], mask: Mask) -> list[str]:
    """Return the differences between sequences of records: one example for each field of each subject.

    Args:
        expected: the expected records.
        given: the delivered records.
        names: name of the subject of each record.
        mask: fields that the reader reports.
    """
    found: dict[tuple[str, str], str] = {}
    if len(expected) != len(given):
        found["", "count"] = f"{len(given)} of {len(expected)} records"
    named = [*names, *[MARKER] * (len(expected) - len(names))]
    for one, other, name in zip(expected, given, named, strict=False):
        for field in mask.record_fields(one):
            pair = tuple(_compared(record, field, mask) for record in (one, other))
            if not same(*pair):
                values = " as ".join(_shown(value, field) for value in pair)
                found.setdefault((name, field), f"{name}: {field} {values}")
    return list(found.values())


def _compared(record: Mapping[str, Any], field: str, mask: Mask) -> object:
    """Return a field in comparable form: headers are sorted if the reader does not report their order."""
    if field == "headers" and mask.header_order == "unordered":
        return sorted(record.get("headers") or (), key=str)
    return record.get(field, [] if field == "headers" else None)


def _shown(value: object, field: str) -> str:
    if field == "headers" and isinstance(value, list):
        return shown(" ".join(f"{_readable(key)}={_readable(found)}" for key, found in value) or "none", SHOWN_SIZE)
    return shown(value if field in {"offset", "timestamp"} else _readable(value), SHOWN_SIZE)


def _readable(value: object) -> object:
    """Return bytes as text if it is printable; empty and null look different."""
    if not isinstance(value, str):
        return "null" if value is None else value
    text = bytes.fromhex(value)
    return f'"{text.decode()}"' if text.isascii() and text.decode().isprintable() else f"0x{value}"
