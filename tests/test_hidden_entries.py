"""Entries that are there, but that readers cannot decode or do not give: every command says so."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.batches import batch, record
from helpers.made_partitions import (
    EMPTY_SNAPSHOT,
    UNREADABLE_BATCHES,
    checkpoint,
    entry,
    flipped,
    make,
    numbered,
    transactional,
)
from helpers.messages import message, wrapper
from helpers.said import (
    FOUND,
    IN_FULL,
    UNREAD,
    Capture,
    documented_status,
    lines_of,
    spans,
    status_of_command,
)
from helpers.support import REPOSITORY
from helpers.walking import each_of

from seglog_format import Engine, open_partition
from seglog_format.cli.main import run
from seglog_format.errors import CorruptRecordError, MissingOffsetsWarning

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from helpers.said import Span

MARK: Final = "replication-offset-checkpoint"
MIDDLE = entry(5, 5)
HIDDEN: Mapping[str, bytes] = {
    "a byte too many": b"\0" + MIDDLE + entry(10, 5),
    "bytes of another file": b"\x07" * 77 + MIDDLE + entry(10, 5),
    "a batch without its first bytes": MIDDLE[9:] + entry(10, 5),
    "a size beyond the file": flipped(MIDDLE, 8, 0x40) + entry(10, 5),
    "a size beyond the file by a byte": flipped(MIDDLE, 11, 0x80)[:190] + entry(10, 1),
}
"""What follows the first batch of a log: an entry that seems to be cut short, and an intact one."""


@pytest.mark.parametrize("command", [*IN_FULL, "cluster", "diff", "export", "find"])
@each_of("name", HIDDEN)
def test_an_incomplete_batch_before_an_intact_one_is_damage(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5) + HIDDEN[name]})
    if command == "cluster":
        assert lines_of([command, str(path.parent)], capsys)[0] == FOUND
    else:
        assert status_of_command(command, path, capsys) == (UNREAD if command in {"diff", "export", "find"} else FOUND)


@each_of("name", HIDDEN)
def test_what_an_incomplete_batch_hides_reaches_to_the_high_watermark(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5) + HIDDEN[name]})
    checkpoint(path, MARK, 15)
    for command in ("records", "scan", "ls", "dump", "verify"):
        assert IN_FULL[command](path, capsys) == (FOUND, {(5, 15)}), command


BEHIND_DAMAGE: Mapping[str, tuple[dict[str, bytes], set[Span]]] = {
    "at the end": ({"0.log": entry(0, 5) + flipped(MIDDLE)}, {(10, 30)}),
    "between segments, and at the end": (
        {"0.log": entry(0, 5) + flipped(MIDDLE), "20.log": flipped(entry(20, 5))},
        {(10, 20), (25, 30)},
    ),
    "up to a snapshot": ({"0.log": flipped(entry(0, 5)), "40.snapshot": EMPTY_SNAPSHOT}, {(5, 40)}),
}
"""Segments that end with a wrong checksum, and what is missing behind that, with a high watermark of 30."""


@pytest.mark.parametrize("command", ["ls", "ls --long", "verify", "dump", "recover", "scan"])
@each_of("name", BEHIND_DAMAGE)
def test_a_wrong_checksum_hides_no_loss_behind_it(name: str, command: str, tmp_path: Path, capsys: Capture) -> None:
    files, missing = BEHIND_DAMAGE[name]
    path = make(tmp_path, files)
    checkpoint(path, MARK, 30)
    status, found = IN_FULL[command](path, capsys)
    assert status == FOUND
    assert found >= missing
    if command not in {"dump", "recover"}:  # these name the damaged batch, too
        assert found == missing


@pytest.mark.parametrize("command", ["verify", "dump", "recover", "salvage", "diff", "export", "resurrect"])
@each_of("name", UNREADABLE_BATCHES)
def test_every_command_that_decodes_tells_of_a_batch_that_no_reader_can_read(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5) + UNREADABLE_BATCHES[name], "10.log": entry(10, 5)})
    assert status_of_command(command, path, capsys) == (UNREAD if command in {"diff", "export"} else FOUND)


HIDING: Mapping[str, bytes] = {
    f"{kind}, {named}": batch(
        record(key=key, value=b"v") + record(offset_delta=1, key=key, value=b"w"), 2, base_offset=5, **fields
    )
    for kind, fields in {
        "data": {"attributes": 0x20},
        "data of a producer": {"attributes": 0x30, "producer_id": 7, "producer_epoch": 0},
    }.items()
    for named, key in {"no key": None, "a short key": b"key", "a version below zero": b"\xff\xff\0\1"}.items()
}
"""Batches of the offsets 5 and 6 with a control bit, the right checksum, and keys that no control record has."""


@pytest.mark.req("SEG-CTL-001")
@pytest.mark.parametrize(
    "command",
    [*IN_FULL, "cluster", "diff", "export", "find"],
)
@each_of("name", HIDING)
def test_every_command_that_decodes_tells_of_data_that_a_control_bit_hides(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5) + HIDING[name], "7.log": entry(7, 5)})
    if (word := command.split(maxsplit=1)[0]) in {"ls", "cluster"}:  # they read headers
        words = [*command.split(), str(path if command == "ls" else path.parent)]
        assert lines_of(words, capsys)[0] == documented_status("a control bit on data", word)
        return
    assert status_of_command(command, path, capsys) == (UNREAD if command == "find" else FOUND)
    if command in {"resurrect", "records", "scan"}:
        assert IN_FULL[command](path, capsys)[1] == {(5, 7)}


@pytest.mark.req("SEG-CTL-001")
@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.PLAIN, Engine.COLUMNAR])
@each_of("name", HIDING)
def test_every_reader_names_data_that_a_control_bit_hides(name: str, engine: Engine, tmp_path: Path) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5) + HIDING[name], "7.log": entry(7, 5)})
    offsets, hidden = [*range(5), *range(7, 12)], [(5, 7, "control bit without control records")]
    with open_partition(path) as partition:
        gaps: list[Any] = []
        assert [record.offset for record in partition.records(engine=engine, on_gap=gaps.append)] == offsets
        assert [(gap.first_offset, gap.next_offset, gap.kind.value) for gap in gaps] == hidden
        with pytest.warns(MissingOffsetsWarning, match="5 to 6 .*control bit"):
            assert partition.read(5).records == ()
        part = (0, 0, partition.segments[0].size)
        gaps.clear()
        assert partition.scan(columns=["offset"], part=part, on_gap=gaps.append).read_all().num_rows == 5
        assert [(gap.first_offset, gap.next_offset, gap.kind.value) for gap in gaps] == hidden


def test_a_control_bit_hides_what_kafkas_consumer_leaves_out(tmp_path: Path) -> None:
    asked = json.loads((REPOSITORY / "fixtures" / "witnesses" / "control_batches.json").read_text(encoding="utf-8"))
    for number, (name, stored) in enumerate(asked["batches"].items()):
        with open_partition(make(tmp_path / str(number), {"0.log": bytes.fromhex(stored)})) as partition:
            for answers in asked["answers"].values():
                for isolation, answer in answers[name].items():
                    gaps: list[Any] = []
                    is_refused = False
                    found: list[int] = []
                    try:
                        found += (each.offset for each in partition.records(isolation=isolation, on_gap=gaps.append))
                    except CorruptRecordError:
                        is_refused = True
                    assert (json.dumps(found), is_refused) == (answer["offsets"], answer["error"] != "-"), name
                    is_hiding = name.endswith(("no key", "an empty key", "three bytes", "version -1"))
                    assert is_refused or bool(gaps) == (is_hiding and "alone" not in name)
            assert "alone" not in name or partition.last_stable_offset == 3
    assert set(asked["snapshots"].values()) == {EMPTY_SNAPSHOT.hex()}  # no transaction is open


KEPT: Mapping[str, tuple[bytes, bytes, tuple[str, int, str]]] = {
    "a magic that no reader knows": (UNREADABLE_BATCHES["magic 9"], b"", ("log", len(entry(0, 5)) + 16, "SEG-BAT-004")),
    "an index with two wrong entries": (
        MIDDLE,
        struct.pack(">iiii", 3, 7, 4, 9),
        ("index", 0, "SEG-IDX-003"),
    ),
}
"""The second batch of a closed segment, its index, and the only line: ending, position and requirement."""


@each_of("name", KEPT)
def test_a_recovery_names_what_a_broker_keeps_and_no_reader_can_read(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    batch, index, (ending, position, requirement) = KEPT[name]
    path = make(tmp_path, {"0.log": entry(0, 5) + batch, "0.index": index, "10.log": entry(10, 5)}, clean=True)
    status, (line,) = lines_of(["recover", str(path)], capsys)
    assert (line["plan"]["cuts"], line["lost"], status) == ([], [], FOUND)
    assert [(each["position"], each["requirement"]) for each in line["kept"]] == [(position, requirement)]
    assert run(["recover", str(path)]) == FOUND
    assert f"kept, as brokers keep it: {0:020}.{ending}:{position}: " in capsys.readouterr().out


def test_a_recovery_names_every_offset_of_a_wrapper_that_it_drops(tmp_path: Path, capsys: Capture) -> None:
    packed = wrapper(*(message(offset) for offset in range(4)), offset=8)
    path = make(tmp_path, {"0.log": entry(0, 5)[:-9], "5.log": packed})
    _, (line,) = lines_of(["recover", "--full-scan", str(path)], capsys)
    assert spans(line["lost"]) == {(0, 5), (5, 9)}


def test_a_recovery_ends_although_the_log_ends_below_its_last_base_offset(tmp_path: Path, capsys: Capture) -> None:
    indexes = {f"{base}{ending}": b"" for base in (0, 20) for ending in (".index", ".timeindex")}
    path = make(tmp_path, {"0.log": transactional(0), "20.log": transactional(8), **indexes}, clean=True)
    checkpoint(path, "recovery-point-offset-checkpoint", 40)
    for _ in range(2):
        assert lines_of(["recover", "--write", str(path)], capsys)[0] == FOUND
        assert [each.name for each in path.glob("*.snapshot")] == [numbered("9.snapshot")]
