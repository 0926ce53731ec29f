"""What `dump` prints can be made into files again, and nothing else is made of anything else."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import bundled
from helpers.walking import each_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seglog_format.checks.verify import verify
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.lines import lines_of
from seglog_format.lines.rebuild import rebuilt_files
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from pathlib import Path

CASES = [
    "0.8.2.2/codec-snappy",
    "0.8.2.2/plain",
    "0.10.2.2/mixed",
    "1.1.1/logappend",
    "1.1.1/mixed-segs",
    "2.8.2/compact-txn",
    "2.8.2/headers",
    "4.3.0/cluster-metadata",
    "4.3.0/codec-zstd",
    "4.3.0/compact-empty",
    "4.3.0/idem",
    "4.3.0/txn",
]
RECOMPUTED = {"position", "sizeInBytes", "crc"}
"""Of compressed batches: the coding of a library, and all that follows from its size."""

LOG = "00000000000000000000.log"
BATCH = {
    "type": "batch",
    "file": LOG,
    "magic": 2,
    "baseOffset": 0,
    "lastOffset": 1,
    "codec": "none",
    "timestampType": "CreateTime",
    "baseTimestamp": 1000,
    "maxTimestamp": 1005,
    "producerId": -1,
    "producerEpoch": -1,
    "baseSequence": -1,
    "partitionLeaderEpoch": 0,
    "isValid": True,
}
RECORDS = [
    {"type": "record", "file": LOG, "offset": 0, "timestamp": 1000, "key": "k", "value": None},
    {"type": "record", "file": LOG, "offset": 1, "timestamp": 1005, "key": "", "value": "ä", "headers": [["h", None]]},
]


def reported(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in RECOMPUTED}


def batches_and_records(root: Path) -> list[dict[str, Any]]:
    return [reported(line) for line in lines_of(root) if line["type"] in {"batch", "record"}]


def write(root: Path, lines: list[dict[str, Any]], **options: Any) -> Path:  # noqa: ANN401 - options of the function
    for made in rebuilt_files(lines, **options):
        path = root / made.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.data)
    return root


@pytest.mark.parametrize("case", CASES)
def test_records_of_brokers_are_equal_after_a_round_trip(case: str, tmp_path: Path) -> None:
    root = bundled(case)
    copy = write(tmp_path, list(lines_of(root)))
    assert batches_and_records(copy) == batches_and_records(root)


@pytest.mark.parametrize("case", CASES)
def test_files_that_are_not_compressed_are_equal_after_a_round_trip(case: str) -> None:
    root = bundled(case)
    lines = list(lines_of(root, raw=True))
    compressed = {line["file"] for line in lines if line["type"] == "batch" and line["codec"] != "none"}
    made = {file.name: file.data for file in rebuilt_files(lines)}
    assert set(made) == {line["file"] for line in lines}
    for name, data in made.items():
        stored = (root / name).read_bytes()
        assert name in compressed or data == stored[: len(data)], name
        assert name in compressed or not stored[len(data) :].strip(b"\0"), name


@pytest.mark.parametrize("bytes_as", ["utf8", "hex", "base64"])
def test_bytes_are_read_as_they_were_written(bytes_as: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a literal
    root = bundled("4.3.0/headers")
    copy = write(tmp_path, list(lines_of(root, bytes_as=bytes_as)), bytes_as=bytes_as)
    assert batches_and_records(copy) == batches_and_records(root)


def test_logs_without_index_lines_get_indexes(tmp_path: Path) -> None:
    root = bundled("4.3.0/segs-fine")
    lines = [line for line in lines_of(root) if line["type"] in {"batch", "record"}]
    copy = write(tmp_path, lines)
    logs = sorted(path.relative_to(root) for path in root.rglob("*.log"))
    assert [path.relative_to(copy) for path in sorted(copy.rglob("*.log"))] == logs
    for log in logs:
        assert (copy / log.with_suffix(".index")).is_file()
        assert (copy / log.with_suffix(".timeindex")).is_file()
    assert not [finding for finding in verify(copy / logs[0].parent) if finding.severity is Severity.ERROR]


def test_a_line_by_hand_makes_a_batch(tmp_path: Path) -> None:
    copy = write(tmp_path, [BATCH, *RECORDS])
    data = (copy / LOG).read_bytes()
    assert data.hex() == (
        "0000000000000000 00000045 00000000 02 ea8945e3 0000 00000001 00000000000003e8 00000000000003ed"
        "ffffffffffffffff ffff ffffffff 00000002"
        "0e 00 00 00 02 6b 01 00"
        "16 00 0a 02 00 04 c3a4 02 02 68 01"
    ).replace(" ", "")
    assert sorted(path.name for path in copy.iterdir()) == [
        f"{'0' * 20}{ending}" for ending in (".index", ".log", ".timeindex")
    ]


@each_of(
    ("changes", "reason"),
    [
        ({"isValid": False}, "damaged"),
        ({"invalid": "crc"}, "damaged"),
        ({"refused": "too large"}, "damaged"),
        ({"magic": 3}, "magic 3 is not known"),
        ({"magic": "2"}, "magic is a number"),
        ({"codec": "brotli"}, "'brotli' is not known"),
        ({"recordsCount": 3}, "recordsCount is 3, and 2 records follow"),
        ({"lastOffset": 2**40}, "a number of 32 bits"),
        ({"producerEpoch": 2**15}, "a number of 16 bits"),
        ({"baseTimestamp": None}, "a number of 64 bits"),
        ({"file": None}, "file is text"),
        ({"file": "\ud800"}, "file is text"),
        ({"type": "record"}, "is not allowed here"),
        ({"type": "news"}, "is no line of a file"),
    ],
)
def test_a_batch_line_that_does_not_fit_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=f"line 1: .*{reason}"):
        list(rebuilt_files([BATCH | changes, *RECORDS]))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"key": 3}, "key is not bytes"),
        ({"key": {"bytes": 3, "sha256": ""}}, "key is not bytes"),
        ({"key": {"hex": "0g"}}, "key is not bytes"),
        ({"key": {"hex": 3}}, "key is not bytes"),
        ({"key": "\ud800"}, "key is not bytes"),
        ({"headers": [["a"]]}, "headers are pairs"),
        ({"headers": [[None, "a"]]}, "keys are not null"),
        ({"headers": {}}, "headers is a list"),
        ({"offset": -(2**62)}, "a number of 32 bits"),
        ({"timestamp": True}, "timestamp is a number"),
        ({"attributes": 128}, "a number of 8 bits"),
    ],
)
def test_a_record_line_that_does_not_fit_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=f"line 2: .*{reason}"):
        list(rebuilt_files([BATCH, RECORDS[0] | changes, RECORDS[1]]))


def test_files_whose_lines_are_apart_are_refused() -> None:
    with pytest.raises(UsageError, match="are not next to each other"):
        list(rebuilt_files([BATCH, *RECORDS, {"type": "text", "file": "a", "text": ""}, BATCH, *RECORDS]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
LINES = [
    BATCH,
    BATCH | {"magic": 1, "codec": "gzip"},
    RECORDS[0] | {"isValid": True, "innerMagic": 1},
    {"type": "offsetIndex", "file": "00000000000000000000.index", "entries": [[5, 70], [9, 80]]},
    {"type": "timeIndex", "file": "00000000000000000000.timeindex", "entries": [[5, 70]]},
    {
        "type": "transactionIndex",
        "file": "00000000000000000000.txnindex",
        "aborted": [{"version": 0, "producerId": 1, "firstOffset": 2, "lastOffset": 3, "lastStableOffset": 4}],
    },
    {
        "type": "producerSnapshot",
        "file": "00000000000000000010.snapshot",
        "producers": [
            {
                "producerId": 1,
                "producerEpoch": 0,
                "coordinatorEpoch": 0,
                "lastTimestamp": 5,
                "currentTxnFirstOffset": None,
                "batches": [{"lastSequence": 1, "lastOffset": 2, "offsetDelta": 1, "timestamp": 5}],
            }
        ],
    },
    {"type": "text", "file": "partition.metadata", "text": "version: 0"},
    {"type": "file", "file": "x", "bytes": 0, "sha256": ""},
]


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_stands_in_a_line_only_a_usage_error_comes_of_it(data: st.DataObject) -> None:
    lines = [dict(line) for line in data.draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=4))]
    changed = data.draw(st.sampled_from(lines))
    changed[data.draw(st.sampled_from(sorted(changed)))] = data.draw(JSON)
    with contextlib.suppress(UsageError):
        assert all(isinstance(made.data, bytes) for made in rebuilt_files(lines))


# Command line


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = bundled("4.3.0/txn")
    assert run(["dump", "--json", str(root)]) == 0
    lines = tmp_path / "lines.jsonl"
    lines.write_text(capsys.readouterr().out, encoding="utf-8")
    copy = tmp_path / "copy"
    assert run(["convert", str(lines), "-o", str(copy), "--json"]) == 0
    made = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["file"]: line["bytes"] for line in made} == {
        path.relative_to(copy).as_posix(): path.stat().st_size for path in copy.rglob("*") if path.is_file()
    }
    assert batches_and_records(copy) == batches_and_records(root)
    assert run(["convert", str(lines), "-o", str(copy)]) == 2
    assert "not an empty directory" in capsys.readouterr().err


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in [BATCH, *RECORDS])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(["convert", "-", "-o", str(tmp_path / "copy")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{LOG}  81 bytes"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", "a\\b", "c:x", "a\0"])
def test_nothing_is_written_outside_the_directory(name: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"type": "text", "file": name, "text": "x"}), encoding="utf-8")
    assert run(["convert", str(lines), "-o", str(tmp_path / "inner" / "copy")]) == 2
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path != lines]


@pytest.mark.parametrize("text", ["{", "3", '"a"', "[" * 100_000, "\ud800"])
def test_what_is_no_object_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert run(["convert", str(lines), "-o", str(tmp_path / "copy")]) == 2
    assert "line 1" in capsys.readouterr().err
