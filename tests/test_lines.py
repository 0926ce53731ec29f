"""The JSON vocabulary: against what Kafka's own classes read, and against lines written out by hand."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_partitions import entry, make
from helpers.support import authentic, authentic_expected, authentic_names, bundled, vector
from helpers.walking import each_of

from seglog_format.errors import UsageError
from seglog_format.lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.lines import Source

    Line = dict[str, Any]

LOG = "00000000000000000000.log"
REMARKS = {"type", "file", "recordsRead", "sanityCheck"}
"""What the expected lines tell besides the vocabulary."""


def key(line: Line) -> tuple[object, ...]:
    return (
        tuple(line.get(name) for name in ("type", "file"))
        + ((line["position"],) if line["type"] == "batch" else ())
        + ((line["position"], line["offset"]) if line["type"] == "record" else ())
    )


def comparable(name: str, value: object) -> object:
    """Header keys are text in the expected lines; producers have no order; errors have other words."""
    if name == "headers":
        return [[base64.b64decode(pair[0]).decode(), pair[1]] for pair in value]
    if name == "producers":
        return sorted(value, key=json.dumps)
    return bool(value) if name == "error" else value


@each_of("name", authentic_names())
def test_every_field_that_kafka_reads_is_there_and_equal(name: str) -> None:
    found = {key(line): line for line in lines_of(authentic(name), bytes_as="base64", digest_over=256)}
    expected = authentic_expected(name)
    for line in expected:
        other = found[key(line)]
        if "invalid" in line:
            assert other["isValid"] is False
            assert other["invalid"]
            continue
        for field in line.keys() - REMARKS:
            value = comparable(field, other[field])
            wanted = line[field] if field == "headers" else comparable(field, line[field])
            assert value == wanted, (key(line), field)
    counted = {"batch", "record"}
    assert {one for one in found if one[0] in counted} == {key(line) for line in expected if line["type"] in counted}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(data: bytes, name: str = LOG) -> Path:
        path = tmp_path / "my-topic-0" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    return write


def test_lines_of_a_magic_2_batch(written: Callable[..., Path]) -> None:
    data = vector("V-06")
    assert list(lines_of(written(data))) == [
        {"type": "file", "file": LOG, "bytes": 87, "sha256": hashlib.sha256(data).hexdigest()},
        {
            "type": "batch",
            "file": LOG,
            "position": 0,
            "sizeInBytes": 87,
            "magic": 2,
            "baseOffset": 10,
            "lastOffset": 12,
            "nextOffset": 13,
            "crc": 0x2A41A989,
            "codec": "none",
            "timestampType": "CreateTime",
            "baseTimestamp": 1000,
            "maxTimestamp": 1005,
            "deleteHorizonMs": None,
            "recordsCount": 3,
            "producerId": -1,
            "producerEpoch": -1,
            "baseSequence": -1,
            "lastSequence": -1,
            "isTransactional": False,
            "isControl": False,
            "partitionLeaderEpoch": -1,
            "isValid": True,
        },
        {"type": "record", "file": LOG, "position": 0, "offset": 10, "timestamp": 1000, "key": None, "value": "a"},
        {"type": "record", "file": LOG, "position": 0, "offset": 11, "timestamp": 1005, "key": "k", "value": None},
        {"type": "record", "file": LOG, "position": 0, "offset": 12, "timestamp": 1003, "key": "k", "value": "vv"},
        {
            "type": "logEnd",
            "file": LOG,
            "batches": 1,
            "records": 3,
            "scannedBytes": 87,
            "fileBytes": 87,
            "zeroBytes": 0,
            "error": None,
        },
    ]


def records(path: Path, **options: object) -> list[Line]:
    return [line for line in lines_of(path, **options) if line["type"] == "record"]


def batches(path: Path, **options: object) -> list[Line]:
    return [line for line in lines_of(path, **options) if line["type"] == "batch"]


def log_end(path: Path, **options: object) -> Line:
    return next(line for line in lines_of(path, **options) if line["type"] == "logEnd")


def test_messages_say_their_own_magic_and_checksum(written: Callable[..., Path]) -> None:
    first, *_ = records(written(vector("V-01")))
    assert first == {
        "type": "record",
        "file": LOG,
        "position": 0,
        "offset": 10,
        "timestamp": -1,
        "key": None,
        "value": "a",
        "innerMagic": 0,
        "crc": 0x51DF3A32,
        "isValid": True,
    }


def test_wrapper_is_one_batch_that_starts_with_its_first_message(written: Callable[..., Path]) -> None:
    (batch,) = batches(written(vector("V-04")))
    assert (batch["baseOffset"], batch["lastOffset"], batch["codec"]) == (10, 12, "lz4")
    assert batch["recordsCount"] is None
    assert batch["baseTimestamp"] is None


def test_without_records_the_first_offset_of_a_wrapper_is_not_known(written: Callable[..., Path]) -> None:
    path = written(vector("V-04"))
    assert [line["type"] for line in lines_of(path, records=False)] == ["file", "batch", "logEnd"]
    (batch,) = batches(path, records=False)
    assert (batch["baseOffset"], batch["lastOffset"]) == (None, 12)
    assert log_end(path, records=False)["records"] is None


@pytest.mark.parametrize(
    ("bytes_as", "key", "headers"),
    [
        ("utf8", "k", [["h", "x"], ["n", None]]),
        ("hex", "6b", [["68", "78"], ["6e", None]]),
        ("base64", "aw==", [["aA==", "eA=="], ["bg==", None]]),
    ],
)
def test_bytes_as_asked(written: Callable[..., Path], bytes_as: str, key: str, headers: list[list[str]]) -> None:
    (record,) = records(written(vector("V-08")), bytes_as=bytes_as)
    assert record["key"] == key
    assert record["headers"] == headers


def test_bytes_that_are_no_text_are_hex(written: Callable[..., Path]) -> None:
    data = bytearray(vector("V-01")[:27])
    data[26] = 0xFF
    (record,) = records(written(bytes(data[:12]) + fixed_crc32(data)))
    assert record["value"] == {"hex": "ff"}


def fixed_crc32(message: bytearray) -> bytes:
    import zlib

    return zlib.crc32(message[16:]).to_bytes(4) + bytes(message[16:])


def test_long_bytes_as_a_digest(written: Callable[..., Path]) -> None:
    *_, last = records(written(vector("V-06")), digest_over=1)
    assert last["key"] == "k"
    assert last["value"] == {"bytes": 2, "sha256": hashlib.sha256(b"vv").hexdigest()}


def test_raw_says_what_is_stored(written: Callable[..., Path]) -> None:
    *_, last = records(written(vector("V-06")), raw=True)
    assert (last["timestampDelta"], last["offsetDelta"], last["attributes"]) == (3, 2, 0)


def test_raw_messages_have_attributes_but_no_deltas(written: Callable[..., Path]) -> None:
    first, *_ = records(written(vector("V-02")), raw=True)
    assert (first["timestampDelta"], first["offsetDelta"], first["attributes"]) == (None, None, 0)


def test_control_record(written: Callable[..., Path]) -> None:
    (record,) = records(written(vector("V-13")), decode=True)
    assert (record["control"], record["coordinatorEpoch"], record["sequence"]) == ("COMMIT", 7, -1)
    assert record["decoded"] == {"type": "COMMIT", "version": 0, "coordinatorEpoch": 7}


def test_kraft_control_record_has_no_coordinator(written: Callable[..., Path]) -> None:
    (record,) = records(written(vector("V-15")), decode=True)
    assert record["control"] == "LEADER_CHANGE"
    assert "coordinatorEpoch" not in record
    assert record["decoded"]["leaderId"] == 1


def test_control_record_whose_key_is_damaged(written: Callable[..., Path]) -> None:
    import google_crc32c

    batch = bytearray(vector("V-13"))
    batch[66:68] = b"\xff\xff"  # key version -1
    batch[17:21] = google_crc32c.value(bytes(batch[21:])).to_bytes(4)
    (record,) = records(written(bytes(batch)))
    assert record["control"] is None
    assert "SEG-CTL-001" in record["invalid"]


def test_sequence_with_a_producer_only() -> None:
    with_producer = [line for line in records(bundled("4.3.0/txn")) if "sequence" in line]
    producers = {(line["file"], line["position"]) for line in batches(bundled("4.3.0/txn")) if line["producerId"] != -1}
    assert {(line["file"], line["position"]) for line in with_producer} == producers


def test_decoded_records_of_kafkas_own_topics() -> None:
    decoded = [line["decoded"] for line in records(bundled("4.3.0/consumer-offsets"), decode=True)]
    assert {"offsetCommit", "groupMetadata"} <= {one["type"] for one in decoded}
    assert all(line.get("decoded") is None for line in records(bundled("4.3.0/one"), decode=True))


def test_damaged_batch_is_passed_over(written: Callable[..., Path]) -> None:
    bad = bytearray(vector("V-06"))
    bad[-1] ^= 1
    path = written(bytes(bad) + vector("V-20"))
    first, second = batches(path)
    assert first["isValid"] is False
    assert "[SEG-BAT-003]" in first["invalid"]
    assert first["baseOffset"] == 10
    assert (second["isValid"], second["position"], second["recordsCount"]) == (True, 87, 0)
    assert records(path) == []
    assert log_end(path) == {
        "type": "logEnd",
        "file": LOG,
        "batches": 2,
        "records": 0,
        "scannedBytes": 148,
        "fileBytes": 148,
        "zeroBytes": 0,
        "error": None,
    }


def test_damaged_message_has_no_base_offset(written: Callable[..., Path]) -> None:
    bad = bytearray(vector("V-01"))
    bad[26] ^= 1
    first, *_ = batches(written(bytes(bad)))
    assert "baseOffset" not in first
    assert first["isValid"] is False


def test_batch_whose_checksum_is_right_and_whose_records_are_not_is_invalid_all_the_same(
    written: Callable[..., Path],
) -> None:
    import google_crc32c

    bad = bytearray(vector("V-06"))
    bad[57:61] = (2).to_bytes(4)
    bad[17:21] = google_crc32c.value(bytes(bad[21:])).to_bytes(4)
    (batch,) = batches(written(bytes(bad)))
    assert batch["isValid"] is True
    assert "[SEG-BAT-008]" in batch["invalid"]


def test_batch_beyond_the_limit_is_refused_and_not_damaged(written: Callable[..., Path]) -> None:
    path = written(vector("V-09"))
    (batch,) = batches(path, limit=10)
    assert batch["isValid"] is True
    assert "[SEG-COD-016]" in batch["refused"]
    assert "invalid" not in batch
    assert len(records(path)) == 3


@pytest.mark.parametrize(
    ("tail", "scanned", "error"),
    [
        (b"", 87, None),
        (bytes(17), 87, None),
        (bytes(18), 87, "zero bytes"),
        (b"\x01" * 12, 87, None),
        (vector("V-06")[:40], 87, None),
        (b"\0" * 11 + b"\x0d" + b"\xff" * 20, 87, "SEG-LOG-003"),
    ],
    ids=["none", "17 zeros", "18 zeros", "trailing", "partial", "size 13"],
)
def test_where_and_why_the_log_ends(written: Callable[..., Path], tail: bytes, scanned: int, error: str | None) -> None:
    end = log_end(written(vector("V-06") + tail))
    assert (end["scannedBytes"], end["fileBytes"]) == (scanned, 87 + len(tail))
    assert end["error"] is None if error is None else error in end["error"]


def test_window_of_offsets_gives_batches_and_records_only(written: Callable[..., Path]) -> None:
    path = written(vector("V-06") + vector("V-20"))
    lines = list(lines_of(path.parent, from_offset=11, to_offset=12))
    assert [(line["type"], line.get("offset")) for line in lines] == [("batch", None), ("record", 11)]
    assert [line["type"] for line in lines_of(path.parent, from_offset=104)] == ["batch"]


def test_window_leaves_out_files_on_their_way_out(written: Callable[..., Path]) -> None:
    path = written(vector("V-06"))
    written(vector("V-06"), LOG + ".deleted")
    assert len(records(path.parent)) == 6
    assert len(records(path.parent, from_offset=0)) == 3


def test_window_does_not_open_segments_outside(written: Callable[..., Path]) -> None:
    written(b"\xff" * 100)
    written(vector("V-06"), "00000000000000000010.log")
    written(b"\xff" * 100, "00000000000000000013.log")
    lines = list(lines_of(written(b"x", "other").parent, from_offset=10, to_offset=13))
    assert {line["file"] for line in lines} == {"00000000000000000010.log"}


def test_window_tells_why_the_walk_stopped(written: Callable[..., Path]) -> None:
    *_, last = lines_of(written(vector("V-06") + b"\xff" * 40), from_offset=0)
    assert last["type"] == "logEnd"
    assert "SEG-LOG-003" in last["error"]


def test_offset_index_with_slots_of_zeros(written: Callable[..., Path]) -> None:
    data = bytes.fromhex("00000005 00000100 00000009 00000200") + bytes(16) + b"\x01"
    (_, line) = lines_of(written(data, "00000000000000000100.index"))
    assert line == {
        "type": "offsetIndex",
        "file": "00000000000000000100.index",
        "fileBytes": 33,
        "entryCount": 4,
        "trailingZeroEntries": 2,
        "entries": [[105, 256], [109, 512]],
    }


def test_time_index(written: Callable[..., Path]) -> None:
    data = (1000).to_bytes(8) + (3).to_bytes(4)
    (_, line) = lines_of(written(data, "00000000000000000100.timeindex"))
    assert (line["type"], line["entryCount"], line["entries"]) == ("timeIndex", 1, [[1000, 103]])


def test_transaction_index_and_one_of_another_version(written: Callable[..., Path]) -> None:
    data = bytes.fromhex("0000 000000000000004d 0000000000000000 0000000000000003 0000000000000002")
    (_, line) = lines_of(written(data, "00000000000000000000.txnindex"))
    assert line["aborted"] == [
        {"version": 0, "producerId": 77, "firstOffset": 0, "lastOffset": 3, "lastStableOffset": 2}
    ]
    (_, line) = lines_of(written(b"\x01" + data[1:], "00000000000000000000.txnindex"))
    assert line["aborted"] == []
    assert "SEG-TXN-002" in line["error"]


def test_empty_and_damaged_producer_snapshot(written: Callable[..., Path]) -> None:
    data = bytes.fromhex("0001 48674bc7 00000000")
    (_, line) = lines_of(written(data, "00000000000000000007.snapshot"))
    assert line["producers"] == []
    (_, line) = lines_of(written(data[:-1] + b"\x01", "00000000000000000007.snapshot"))
    assert "producers" not in line
    assert "SEG-PSN-002" in line["error"]


def test_small_text_files_are_text_and_others_are_only_named(written: Callable[..., Path]) -> None:
    assert [line.get("text") for line in lines_of(written(b"0\r\n0\n", "leader-epoch-checkpoint"))] == [
        None,
        "0\r\n0\n",
    ]
    assert [line["type"] for line in lines_of(written(b"\xff\xfe", "other"))] == ["file"]
    assert [line["type"] for line in lines_of(written(b"a\0b", "other"))] == ["file"]


@pytest.mark.parametrize("name", ["bad.log", "0.log", "bad.log.swap", "x.checkpoint", "bootstrap.checkpoint"])
def test_logs_by_their_ending(written: Callable[..., Path], name: str) -> None:
    assert len(records(written(vector("V-06"), name))) == 3


def test_files_below_a_log_directory_in_the_order_of_their_paths(written: Callable[..., Path]) -> None:
    root = written(b"", "b").parent.parent
    (root / "meta.properties").write_text("version=0\n")
    (root / "a-0").mkdir()
    (root / "a-0" / LOG).write_bytes(b"")
    names = [line["file"] for line in lines_of(root) if line["type"] == "file"]
    assert names == [f"a-0/{LOG}", "meta.properties", "my-topic-0/b"]


def test_links_that_lead_back_and_special_files_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / LOG).write_bytes(vector("V-06"))
    assert {line["file"] for line in lines_of(tmp_path)} == {LOG}


def test_links_to_files_and_to_partitions_count_wherever_they_lead(tmp_path: Path) -> None:
    inside, outside = tmp_path / "logs", tmp_path / "elsewhere"
    (inside / "t-0").mkdir(parents=True)
    outside.mkdir()
    for directory in (inside / "t-0", outside):
        (directory / LOG).write_bytes(vector("V-06"))
    (inside / "u-0").symlink_to(inside / "t-0")
    (inside / "v-0").symlink_to(outside)
    (inside / "backup").symlink_to(outside)
    (inside / "w.log").symlink_to(outside / LOG)
    assert {line["file"] for line in lines_of(inside)} == {f"t-0/{LOG}", f"v-0/{LOG}", "w.log"}
    (inside / "t-0").rename(inside / "x-0")
    (inside / "x.log").symlink_to(inside / "x-0" / LOG)
    assert {line["file"] for line in lines_of(inside)} == {f"v-0/{LOG}", f"x-0/{LOG}", "w.log", "x.log"}


def test_name_that_is_no_text(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.log")
    with open(path, "wb") as file:  # noqa: PTH123 - the name is the point
        file.write(vector("V-06"))
    first, *_ = lines_of(path)
    assert json.loads(json.dumps(first))["file"] == "\udcff.log"


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        list(lines_of(tmp_path / "missing"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="neither a file nor a directory"):
        list(lines_of(tmp_path / "pipe"))


def test_file_that_cannot_be_opened_is_told_and_passed_over(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(vector("V-06"))
    other = written(b"0\n0\n", "leader-epoch-checkpoint")
    import seglog_format.lines

    real = seglog_format.lines.opened

    def refuse(source: Source) -> object:
        if source.path == path:
            raise PermissionError(13, "Permission denied", str(path))
        return real(source)

    monkeypatch.setattr(seglog_format.lines, "opened", refuse)
    first, *rest = lines_of(other.parent)
    assert first == {"type": "file", "file": LOG, "bytes": None, "sha256": None, "error": "Permission denied"}
    assert [line["type"] for line in rest] == ["file", "text"]


def files_with_batches(directory: Path, **window: int) -> list[str]:
    return [line["file"] for line in lines_of(directory, **window) if line["type"] == "batch"]


@pytest.mark.req("SEG-PDR-010")
def test_a_window_reads_the_files_that_readers_of_the_directory_open(tmp_path: Path) -> None:
    logs = {"0.log": entry(0, 5), "5.log": entry(5, 5), "0.log.swap": entry(0, 10), "10.log": entry(10, 5)}
    directory = make(tmp_path, logs)
    assert files_with_batches(directory, from_offset=6, to_offset=8) == [f"{0:020}.log.swap"]
    for name in (f"{0:020}.log", f"{5:020}.log"):
        (directory / name).unlink()
    assert files_with_batches(directory, from_offset=3) == [f"{0:020}.log.swap", f"{10:020}.log"]


@pytest.mark.req("SEG-PDR-018")
def test_a_log_with_a_short_name_stands_where_its_offsets_do(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5), "10.log": entry(10, 5)})
    (directory / "5.log").write_bytes(entry(5, 5))
    assert files_with_batches(directory, from_offset=4) == [f"{0:020}.log", "5.log", f"{10:020}.log"]
    assert files_with_batches(directory, from_offset=12) == [f"{10:020}.log"]
