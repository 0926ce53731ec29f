"""What appendix B says about the versions of bundled directories is what these show.

Everything here is read from raw bytes, or from the lines that Kafka's own classes gave.
"""

from __future__ import annotations

import json
import re
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import FIXTURES, REPOSITORY, bundled, bundled_cases, bundled_expected
from helpers.walking import each_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSIONS = sorted({name.split("/")[0] for name in bundled_cases()}, key=lambda version: [*map(int, version.split("."))])
MAGIC = {"0.8.2.2": 0, "0.9.0.1": 0, "0.10.2.2": 1}
WITH_BATCHES = VERSIONS[VERSIONS.index("0.11.0.3") :]
SMALL_INDEXES = {"0.9.0.1", "0.11.0.3", "2.0.1", "3.0.2", "3.4.1", "4.0.1"}
"""Brokers that were told to preallocate 65536 bytes for an index."""
HORIZON = 0x40


def is_before(version: str, other: str) -> bool:
    return VERSIONS.index(version) < VERSIONS.index(other)


@cache
def cases(version: str) -> list[str]:
    return [name for name in bundled_cases() if name.startswith(f"{version}/")]


def lines(name: str, kind: str) -> list[dict[str, Any]]:
    return [line for line in bundled_expected(name) if line["type"] == kind]


def file_sizes(name: str) -> dict[str, int]:
    return {line["file"].rpartition("/")[2]: line["bytes"] for line in lines(name, "file")}


def text_of(name: str, file: str) -> str:
    (text,) = [line["text"] for line in lines(name, "text") if line["file"].endswith(file)]
    return str(text)


def batches_by_position(name: str, log: str) -> dict[int, dict[str, Any]]:
    return {line["position"]: line for line in lines(name, "batch") if line["file"] == log and line["isValid"]}


def index_entries(version: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Offset, position and the batch there, of every index entry at a batch or wrapper of several records."""
    for name in cases(version):
        for index in lines(name, "offsetIndex"):
            batches = batches_by_position(name, index["file"].replace(".index", ".log"))
            for offset, position in index["entries"]:
                batch = batches.get(position)
                if batch and batch["baseOffset"] < batch["lastOffset"]:
                    yield offset, position, batch


def time_entries(version: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Offset, and the batch of magic 1 or 2 with several records that holds it, of every time-index entry."""
    for name in cases(version):
        for index in lines(name, "timeIndex"):
            batches = batches_by_position(name, index["file"].replace(".timeindex", ".log")).values()
            for _, offset in index["entries"]:
                for batch in batches:
                    if batch["magic"] and batch["baseOffset"] <= offset <= batch["lastOffset"] != batch["baseOffset"]:
                        yield offset, batch


def entries(log: Path) -> Iterator[bytes]:
    """Every whole entry of a log file."""
    data, position = log.read_bytes(), 0
    while position + 17 < len(data):
        (size,) = struct.unpack_from(">i", data, position + 8)
        if size < 14 or position + 12 + size > len(data):
            return
        yield data[position : position + 12 + size]
        position += 12 + size


def compressed(version: str, codec: int) -> Iterator[tuple[int, bytes]]:
    """Magic and compressed bytes of every entry with that codec."""
    for name in cases(version):
        for log in sorted(bundled(name).rglob("*.log")):
            for entry in entries(log):
                magic = entry[16]
                attributes = entry[22] if magic == 2 else entry[17]
                if attributes & 7 == codec:
                    yield magic, payload(entry, magic)


def payload(entry: bytes, magic: int) -> bytes:
    if magic == 2:
        return entry[61:]
    key_length = 18 + 8 * magic
    (size,) = struct.unpack_from(">i", entry, key_length)
    return entry[key_length + 8 + max(size, 0) :]


def snappy_blocks(stream: bytes) -> Iterator[int]:
    """Uncompressed size of each block behind a xerial header: the varint that opens it."""
    position = 16
    while position < len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        block, length, shift = stream[position + 4 : position + 4 + size], 0, 0
        for byte in block:
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield length
        position += 4 + size


@each_of("version", VERSIONS)
def test_magic_of_a_topic_with_default_settings(version: str) -> None:
    assert {line["magic"] for line in lines(f"{version}/plain", "batch")} == {MAGIC.get(version, 2)}


@each_of("version", VERSIONS)
def test_files_of_a_topic_with_one_record(version: str) -> None:
    kinds = {re.sub(r"^\d{20}", "", name) for name in file_sizes(f"{version}/one")}
    expected = {".log", ".index"}
    expected |= set() if is_before(version, "0.10.2.2") else {".timeindex"}
    expected |= set() if version in MAGIC else {".snapshot", "leader-epoch-checkpoint"}
    expected |= set() if is_before(version, "3.0.2") else {"partition.metadata"}
    assert kinds == expected


@pytest.mark.parametrize("version", WITH_BATCHES)
def test_leader_epoch_checkpoint_of_an_empty_topic(version: str) -> None:
    expected = 0 if is_before(version, "2.0.1") else 8
    assert file_sizes(f"{version}/empty")["leader-epoch-checkpoint"] == expected


@each_of("version", VERSIONS)
def test_offset_of_an_index_entry(version: str) -> None:
    side = "baseOffset" if is_before(version, "2.0.1") else "lastOffset"
    found = [(offset, batch[side]) for offset, _, batch in index_entries(version)]
    assert len(found) > (0 if version in SMALL_INDEXES else 20)
    assert all(offset == expected for offset, expected in found)


@pytest.mark.parametrize("version", [version for version in WITH_BATCHES if version not in SMALL_INDEXES])
def test_offset_of_a_time_index_entry_at_an_uncompressed_batch(version: str) -> None:
    found = [(offset, batch["lastOffset"]) for offset, batch in time_entries(version) if batch["codec"] == "none"]
    assert len(found) > 20
    assert all(offset == last for offset, last in found) == (not is_before(version, "3.9.1"))


@pytest.mark.parametrize("version", VERSIONS[VERSIONS.index("0.10.2.2") :])
def test_offset_of_a_time_index_entry_at_a_compressed_entry(version: str) -> None:
    found = [(offset, batch["lastOffset"]) for offset, batch in time_entries(version) if batch["codec"] != "none"]
    assert len(found) > 2
    assert all(offset == last for offset, last in found)


@each_of("version", VERSIONS)
def test_preallocated_indexes_of_a_killed_broker(version: str) -> None:
    (name, *_) = [name for name in cases(version) if "/crash-" in name]
    indexes = [line for line in bundled_expected(name) if line["type"] in {"offsetIndex", "timeIndex"}]
    active = [line for line in indexes if line["trailingZeroEntries"] > 1000]
    sizes = (65536, 65532) if version in SMALL_INDEXES else (10485760, 10485756)
    expected = set(zip(("offsetIndex", "timeIndex"), sizes, strict=True))
    expected -= {("timeIndex", sizes[1])} if is_before(version, "0.10.2.2") else set()
    assert {(line["type"], line["fileBytes"]) for line in active} == expected


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_version_of_meta_properties(version: str) -> None:
    expected = "version=0" if is_before(version, "3.4.1") else "version=1"
    assert expected in text_of(f"{version}/root", "meta.properties").splitlines()


def test_0_8_2_has_no_meta_properties() -> None:
    assert "meta.properties" not in file_sizes("0.8.2.2/root")


@each_of("version", VERSIONS)
def test_content_of_the_clean_shutdown_file(version: str) -> None:
    text = text_of(f"{version}/root", ".kafka_cleanshutdown")
    if is_before(version, "3.9.1"):
        assert text == ""
    else:
        assert json.loads(text).keys() == {"version", "brokerEpoch"}


@pytest.mark.parametrize("version", WITH_BATCHES)
def test_delete_horizons_since_3_1(version: str) -> None:
    found = [line for name in cases(version) for line in lines(name, "batch") if line["deleteHorizonMs"] is not None]
    assert bool(found) == (not is_before(version, "3.4.1"))


@each_of("version", VERSIONS)
def test_lz4_frames(version: str) -> None:
    found = {(magic, stream[:7].hex()) for magic, stream in compressed(version, 3)}
    assert found
    assert found <= {(0, "04224d1860401a"), (1, "04224d18604082"), (2, "04224d18604082")}


@each_of("version", VERSIONS)
def test_gzip_members(version: str) -> None:
    assert {stream[:10].hex() for _, stream in compressed(version, 1)} == {"1f8b08000000000000ff"}


def test_snappy_blocks() -> None:
    for version, largest in (("0.8.2.2", 32768), ("0.10.2.2", 1024)):
        streams = [stream for _, stream in compressed(version, 2)]
        assert {stream[:16].hex() for stream in streams} == {"82534e41505059000000000100000001"}
        assert max(size for stream in streams for size in snappy_blocks(stream)) == largest


def test_zstd_frames() -> None:
    assert {stream[:5].hex() for _, stream in compressed("4.3.0", 4)} == {"28b52ffd00"}


def test_an_index_entry_may_name_a_later_message_than_the_one_at_its_position() -> None:
    (index,) = lines("2.8.2/format-0.8.2", "offsetIndex")
    batches = batches_by_position("2.8.2/format-0.8.2", index["file"].replace(".index", ".log"))
    beyond = [offset for offset, position in index["entries"] if offset > batches[position]["lastOffset"]]
    assert len(beyond) == 5


def test_0_10_2_has_time_index_entries_for_messages_without_timestamps() -> None:
    (index,) = lines("0.10.2.2/format-0.8.2", "timeIndex")
    assert index["entryCount"] > 0
    assert {line["magic"] for line in lines("0.10.2.2/format-0.8.2", "batch")} == {0}


def test_no_index_entry_has_position_0() -> None:
    indexes = [line for name in bundled_cases() for line in lines(name, "offsetIndex")]
    undamaged = [line for line in indexes if line.get("sanityCheck") == "ok" and "noindex" not in line["file"]]
    positions = [position for line in undamaged for _, position in line["entries"]]
    assert len(positions) > 1000
    assert 0 not in positions


def test_damage_below_the_recovery_point_stays() -> None:
    for name in ("4.3.0/crash-flip-early", "4.3.0/crash-noindex"):
        after = [line for line in bundled_expected(name) if line["file"].startswith("after/")]
        damaged = [line for line in after if line.get("isValid") is False or line.get("sanityCheck", "ok") != "ok"]
        junk = [
            line
            for line in after
            if line["type"] == "offsetIndex"
            and any(position > file_sizes_below(after, line) for _, position in line["entries"])
        ]
        assert damaged or junk


def file_sizes_below(after: list[dict[str, Any]], index: dict[str, Any]) -> int:
    log = index["file"].replace(".index", ".log")
    (size,) = [line["bytes"] for line in after if line["type"] == "file" and line["file"] == log]
    return int(size)


# -- defaults of settings

DEFAULTS = json.loads((FIXTURES / "witnesses" / "default_settings.json").read_text(encoding="utf-8"))["defaults"]
SETTING = re.compile(r"`([a-z.]+)`")


def stated_defaults() -> Iterator[tuple[str, str]]:
    """Yield each setting of the appendix with its default; a broker's where the topic has none."""
    text = (REPOSITORY / "spec" / "B-version-history.md").read_text(encoding="utf-8")
    section = text.partition("## Defaults that shape files")[2].partition("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("|") and not line.startswith(("|---", "| topic setting")):
            topic, broker, default, _ = (cell.strip() for cell in line.strip("|").split("|"))
            names, values = SETTING.findall(topic) or SETTING.findall(broker), default.split(" since ")[0].split(", ")
            yield from zip(names, values * (len(names) // len(values)), strict=True)


@pytest.mark.parametrize("release", ["4.0.1", "4.4.0"])
def test_defaults_are_those_of_the_classes(release: str) -> None:
    stated, known = dict(stated_defaults()), DEFAULTS[release]
    assert len(stated) >= 19
    later = {"4.0.1": {"max.decompressed.message.bytes", "remote.copy.lag.ms", "remote.copy.lag.bytes"}}.get(
        release, set()
    )
    assert stated.keys() - known.keys() == later
    assert {name: known[name] for name in stated.keys() - later} == {
        name: ["-1" if value == "none" else value] for name, value in stated.items() if name not in later
    }


def test_a_time_far_ahead_was_allowed_before_4_0() -> None:
    assert DEFAULTS["3.9.1"]["message.timestamp.after.max.ms"] == [str(2**63 - 1)]
