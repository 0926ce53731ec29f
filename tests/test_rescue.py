"""What a rescue keeps of a damaged partition: `resurrect` keeps what `salvage` keeps, and says what is lost.

`DAMAGES` lists the kinds of damage; each is given to `salvage`, to `resurrect` and to both recoveries. A node is judged
by the plan of a broker that starts on it, and that plan by what Kafka's own `UnifiedLog` did (`started_logs.json`).
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from helpers.made_partitions import (
    EMPTY_SNAPSHOT,
    ONE,
    checkpoint,
    control,
    entry,
    log_sizes,
    make,
    numbered,
    transactional,
)
from helpers.walking import each_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proofs.resurrect import find_failures, fingerprint
from seglog_format import PartitionWriter, RecoveryOptions, open_partition, recover, resurrect, salvage
from seglog_format.cli.main import run
from seglog_format.codec.checkpoints import decode_offset_checkpoint
from seglog_format.errors import Location
from seglog_format.log.directory_lock import DirectoryLock
from tests.helpers.kafka import kafka_at_hand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

pytestmark = pytest.mark.usefixtures("no_fsync")

LIKE_BROKER: Final = RecoveryOptions(like_broker=True)
STARTED_LOGS: Final = Path(__file__).resolve().parents[1] / "fixtures" / "witnesses" / "started_logs.json"
NOWHERE: Final = b"a link that leads nowhere"
"""Stands for a link instead of a file in `Damage.files`."""


def at(offsets: Iterable[int]) -> bytes:
    return b"".join(map(entry, offsets))


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


class Damage(NamedTuple):
    """Files of a partition, the offsets that salvage keeps, and the checkpointed log start offset."""

    files: Mapping[str, bytes]
    offsets: Iterable[int]
    log_start: int | None = None

    def made(self, root: Path) -> Path:
        files = {name: data for name, data in self.files.items() if data != NOWHERE}
        directory = make(root, files, log_start=self.log_start)
        for name in self.files.keys() - files.keys():
            (directory / numbered(name)).symlink_to("/nowhere/annex")
        return directory


LOW, HIGH = at(range(30)), at(range(30, 60))
WHOLE: Final = {"0.log": LOW, "30.log": HIGH}
DAMAGES: Final = {
    "exchanged segments": Damage({"0.log": HIGH, "30.log": LOW}, range(60)),
    "a partial copy": Damage({"0.log": LOW + HIGH, "10.log": at(range(10, 20))}, range(60)),
    "an empty replacement": Damage({**WHOLE, "0.log.swap": b""}, range(60)),
    "a poorer replacement": Damage({**WHOLE, "0.log.swap": at(range(5))}, range(60)),
    "a log start above the log": Damage(WHOLE, range(60), 1000),
    "a log start above the cut": Damage(
        {"0.log": LOW, "30.log": flipped(HIGH, 5 * ONE + 70)}, (*range(35), *range(36, 60)), 40
    ),
    "an unreadable first segment": Damage(
        {"0.log": NOWHERE, "10.log": at(range(10, 30)), "30.log": HIGH}, range(10, 60)
    ),
    "an unreadable middle segment": Damage(
        {"0.log": LOW, "30.log": NOWHERE, "40.log": at(range(40, 50))}, (*range(30), *range(40, 50))
    ),
    "a garbled segment": Damage(
        {"0.log": LOW, "30.log": b"\x77" * 500, "40.log": at(range(40, 50))}, (*range(30), *range(40, 50))
    ),
    "a single entry in the wrong segment": Damage(
        {"0.log": LOW, "30.log": entry(40), "40.log": at(range(40, 50))}, (*range(30), *range(40, 50))
    ),
    "an empty stray segment": Damage({"0.log": LOW + HIGH, "7.log": b""}, range(60)),
    "an empty stray segment in a batch": Damage({"0.log": entry(0, 15), "7.log": b""}, range(15)),
    "a flipped bit": Damage({"0.log": flipped(LOW, 10 * ONE + 70), "30.log": HIGH}, (*range(10), *range(11, 60))),
    "an unknown magic": Damage({"0.log": LOW, "30.log": flipped(HIGH, 5 * ONE + 16)}, (*range(35), *range(36, 60))),
    "zeros": Damage({"0.log": LOW + bytes(18), "30.log": HIGH}, range(60)),
    "a torn end": Damage({"0.log": LOW, "30.log": HIGH[:-7]}, range(59)),
}


def stored(directory: Path) -> dict[int, bytes]:
    """Return the entries of all logs by base offset; sizes are read by hand, and offsets have to ascend."""
    found: dict[int, bytes] = {}
    for path in sorted(directory.glob("*.log")):
        data, position = path.read_bytes(), 0
        while position < len(data):
            offset, size = struct.unpack_from(">qi", data, position)
            assert offset > max(found, default=-1), f"{path}: {offset}"
            found[offset] = data[position : position + 12 + size]
            position += 12 + size
    return found


def rescued(directory: Path, root: Path) -> tuple[dict[int, bytes], dict[int, bytes], Any]:
    """Return what salvage and resurrect make of a partition, and the plan of the node; the node is sound."""
    before = fingerprint(directory.parent)
    salvage(directory, root / "salvaged").apply()
    plan = resurrect(directory.parent, root / "node")
    plan.apply()
    assert fingerprint(directory.parent) == before
    node = root / "node" / directory.name
    if not node.is_dir():
        return stored(root / "salvaged"), {}, plan
    start = recover(node, options=LIKE_BROKER)
    assert start.failure is None, "a broker starts on the node"
    assert not start.plan.changes_log, "and cuts nothing"
    replica = plan.made.logs["orders", 0]
    assert start.plan.log_end_offset == replica.log_end_offset
    with open_partition(node) as log:
        assert (log.log_start_offset, log.log_end_offset) == (replica.log_start_offset, replica.log_end_offset)
    return stored(root / "salvaged"), stored(node), plan


@each_of("name", DAMAGES)
def test_node_gets_every_record_that_salvage_keeps(name: str, tmp_path: Path) -> None:
    damage = DAMAGES[name]
    salvaged, node, plan = rescued(damage.made(tmp_path), tmp_path)
    deltas = {base: struct.unpack_from(">i", data, 23)[0] for base, data in salvaged.items()}
    assert [offset for base in sorted(deltas) for offset in range(base, base + deltas[base] + 1)] == list(
        damage.offsets
    )
    assert node.items() >= salvaged.items()
    assert plan.made.logs["orders", 0].log_end_offset == max(damage.offsets) + 1
    assert any(note.about == "orders-0" for note in plan.made.notes)


@each_of("name", [name for name in DAMAGES if name != "a single entry in the wrong segment"])
def test_every_command_says_that_something_is_lost_or_damaged(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = DAMAGES[name].made(tmp_path)
    is_unreadable = NOWHERE in DAMAGES[name].files.values()
    assert run(["resurrect", str(directory.parent)]) == (3 if is_unreadable else 1)
    assert "orders-0" in capsys.readouterr().out
    for options in ([], ["--like-broker"]):
        assert run(["recover", *options, str(directory)]) == (3 if is_unreadable else 1), options


def test_log_start_above_the_log_is_of_another_log_and_is_said(tmp_path: Path) -> None:
    _, _, plan = rescued(DAMAGES["a log start above the log"].made(tmp_path), tmp_path)
    assert plan.made.logs["orders", 0].log_start_offset == 0
    (text,) = (note.text for note in plan.made.notes if "of another log" in note.text)
    assert text.startswith("its log start offset, 1000, is above its end, 60")


def test_log_start_that_only_damage_put_above_the_log_stays(tmp_path: Path) -> None:
    _, _, plan = rescued(DAMAGES["a log start above the cut"].made(tmp_path), tmp_path)
    assert plan.made.logs["orders", 0].log_start_offset == 40


def test_lost_offsets_are_in_the_plan(tmp_path: Path) -> None:
    _, _, plan = rescued(DAMAGES["an unreadable middle segment"].made(tmp_path), tmp_path)
    texts = [note.text for note in plan.made.notes if note.about == "orders-0"]
    assert any("30 to 39 are lost" in text and "leads nowhere" in text for text in texts)


@pytest.mark.parametrize("topic", ["words", "__consumer_offsets"])
def test_replica_with_an_unreadable_log_stops_nothing(topic: str, tmp_path: Path) -> None:
    """It is compared with the other replica, or read as the state of the groups."""
    old = [DAMAGES["an unreadable first segment"].made(tmp_path / "one"), make(tmp_path / "two", WHOLE)]
    sources = [each.rename(each.with_name(f"{topic}-0")).parent for each in old]
    notes = {(note.about, note.text.partition(" is damaged")[0]) for note in resurrect(sources[:1]).made.notes}
    assert (f"{topic}-0", str(sources[0] / f"{topic}-0")) in notes
    plan = resurrect(sources)
    assert plan.made.logs[topic, 0].path.parent == sources[1]
    assert not [note for note in plan.made.notes if "of the other are lost" in note.text]
    assert [note for note in plan.made.notes if note.text.startswith(f"{sources[0]}/{topic}-0 is damaged, and was not")]


def test_end_marker_that_brokers_cannot_read_is_left_out_and_told(tmp_path: Path) -> None:
    """With the marker a broker would cut the log after it, or not start."""
    marker = control(1, 1, base_sequence=-1, value=b"")
    directory = make(tmp_path, {"0.log": transactional(0) + marker + at(range(2, 6)) + b"x"})
    salvaged, node, plan = rescued(directory, tmp_path)
    assert set(salvaged) - set(node) == {1}
    assert any("end marker" in note.text for note in plan.made.notes)


def test_stock_broker_serves_what_salvage_keeps(tmp_path: Path) -> None:
    """The salvaged copies have no log start offset, so the damage that leaves one in place is not among these."""
    old, truths = tmp_path / "old", {}
    wanted = {f"damage{number}": each for number, each in enumerate(DAMAGES.values()) if each.log_start != 40}
    for topic, damage in wanted.items():
        directory = damage.made(tmp_path / topic).rename(tmp_path / topic / f"{topic}-0")
        truths[topic, 0] = tmp_path / "salvaged" / directory.name
        salvage(directory, truths[topic, 0]).apply()
        shutil.copytree(directory, old / directory.name, symlinks=True)
    starts = [f"{topic} 0 {damage.log_start}\n" for topic, damage in wanted.items() if damage.log_start]
    (old / "log-start-offset-checkpoint").write_text(f"0\n{len(starts)}\n{''.join(starts)}", encoding="ascii")
    with kafka_at_hand():
        failures, count = find_failures([old], tmp_path / "node", "4.4", truths=truths)
    assert failures == []
    assert count == len(wanted) == len(DAMAGES) - 1


SEGMENTS: Final = {f"{base}.log": at(range(base, base + 10)) for base in (0, 10, 20)}


def cut_short(files: dict[str, bytes], name: str, number: int) -> None:
    files[name] = files[name][: max(len(files[name]) - number, 0)]


def with_zeros(files: dict[str, bytes], name: str, number: int) -> None:
    files[name] += bytes(number % 40)


def with_a_flip(files: dict[str, bytes], name: str, number: int) -> None:
    if files[name]:
        files[name] = flipped(files[name], number % len(files[name]))


def without(files: dict[str, bytes], name: str, number: int) -> None:  # noqa: ARG001 - all damages are called alike
    if len(files) > 1:
        del files[name]


def exchanged(files: dict[str, bytes], name: str, number: int) -> None:
    logs = sorted(each for each in files if each.endswith(".log"))
    other = logs[number % len(logs)]
    files[name], files[other] = files[other], files[name]


def with_copy(files: dict[str, bytes], name: str, number: int) -> None:
    files.setdefault(f"{number % 30}.log", files[name][: number % 5 * ONE])


def with_stray(files: dict[str, bytes], name: str, number: int) -> None:  # noqa: ARG001
    files.setdefault(f"{number % 30}.log", b"")


def replaced(files: dict[str, bytes], name: str, number: int) -> None:
    """Add a replacement that lacks the end: one that lacks only the beginning may be what compaction has left."""
    files[f"{name}.swap"] = files[name][: number % 10 * ONE]


def garbled(files: dict[str, bytes], name: str, number: int) -> None:
    files[name] = bytes([number % 255 + 1]) * 300


CHANGES: Final[tuple[Callable[[dict[str, bytes], str, int], None], ...]] = (
    *(cut_short, with_zeros, with_a_flip, without, exchanged, with_copy, with_stray, replaced, garbled),
)


@example(changes=[(with_a_flip, 0, 0), (replaced, 0, 1)], log_start=None)
@example(changes=[(with_a_flip, 0, 0), (replaced, 0, 0)], log_start=None)
@example(changes=[(replaced, 0, 0)], log_start=None)
@example(changes=[(with_a_flip, 2, 0)], log_start=None)
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(
        st.tuples(st.sampled_from(CHANGES), st.integers(0, 9), st.integers(0, 2000)), min_size=1, max_size=4
    ),
    log_start=st.sampled_from([None, None, 5, 25, 1000]),
)
def test_whatever_the_damages_the_node_gets_what_salvage_keeps(
    changes: list[tuple[Callable[[dict[str, bytes], str, int], None], int, int]],
    log_start: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root, files = tmp_path_factory.mktemp("rescue"), dict(SEGMENTS)
    for change, which, number in changes:
        logs = sorted(name for name in files if name.endswith(".log"))
        change(files, logs[which % len(logs)], number)
    try:
        salvaged, node, _ = rescued(make(root, files, log_start=log_start), root)
        assert node.items() >= salvaged.items()
    finally:
        shutil.rmtree(root)


# -- a segment below the recovery point, at whose end brokers stop -----------------------------------------------------

TRUSTED: Final = {"0.log": at(range(5)), "5.log": at(range(5, 10)) + bytes(18), "10.log": at(range(10, 15))}
INDEXES: Final = {f"{base}.{kind}": b"" for base in (0, 5, 10) for kind in ("index", "timeindex")}


def trusted(root: Path, files: Mapping[str, bytes], *, clean: bool = False) -> Path:
    directory = make(root, {**files, **INDEXES}, clean=clean)
    checkpoint(directory, "recovery-point-offset-checkpoint", 10)
    return directory


@pytest.mark.req("SEG-RCV-024")
@pytest.mark.parametrize("damaged", [("5.log",), ("0.log",), ("0.log", "5.log")])
def test_recovery_cuts_where_no_broker_starts_and_keeps_the_segments_after_it(
    damaged: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {**TRUSTED, "5.log": at(range(5, 10))}
    files |= {name: files[name] + bytes(18) for name in damaged}
    directory = trusted(tmp_path, files)
    assert recover(directory, options=LIKE_BROKER).failure is not None
    assert run(["recover", str(directory)]) == 1
    assert "brokers do not start: they read the batches here" in capsys.readouterr().out
    assert run(["recover", "--write", str(directory)]) == 1
    assert log_sizes(directory) == dict.fromkeys((0, 5, 10), 5 * ONE)
    assert recover(directory, options=LIKE_BROKER).failure is None
    assert not recover(directory).steps


def test_recovery_leaves_what_brokers_do_not_read(tmp_path: Path) -> None:
    clean = recover(trusted(tmp_path / "clean", TRUSTED, clean=True))
    snapshot = recover(trusted(tmp_path / "snapshot", {**TRUSTED, "10.snapshot": EMPTY_SNAPSHOT}))
    few = recover(trusted(tmp_path / "few", {**TRUSTED, "5.log": TRUSTED["5.log"][:-14]}))
    assert [each.plan.cuts for each in (clean, snapshot, few)] == [(), (), ()]


# -- files that a broker leaves for its next start ---------------------------------------------------------------------


def started_logs() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(STARTED_LOGS.read_text(encoding="ascii"))["cases"]
    return cases


@pytest.mark.parametrize("case", started_logs(), ids=lambda case: case["name"])
def test_like_broker_leaves_the_logs_that_kafka_leaves(case: dict[str, Any], tmp_path: Path) -> None:
    directory = make(
        tmp_path,
        {name: bytes.fromhex(data) for name, data in case["files"].items()},
        clean=case["isClean"],
        log_start=case["logStartOffset"],
    )
    checkpoint(directory, "recovery-point-offset-checkpoint", case["recoveryPoint"])
    done = recover(directory, options=LIKE_BROKER).apply()
    for release, answer in case["answers"].items():
        assert (done.failure is None) == ("error" not in answer), release
        if done.failure is None:
            again = recover(directory, options=LIKE_BROKER)
            assert again.plan.log_end_offset == answer["logEndOffset"], release
            assert answer.get("recoveryPoint", 0) <= answer["logEndOffset"], "chapter 71 says that Kafka lowers it"
            logs = sorted(path.name for path in directory.iterdir() if ".log" in path.name)
            assert logs == answer["logs"], release


@pytest.mark.req("SEG-FLS-017")
@each_of("name", ["recovery point above the log", "recovery point above the log after a clean shutdown"])
def test_a_writer_goes_on_at_the_end_where_kafka_does(name: str, tmp_path: Path) -> None:
    (case,) = [case for case in started_logs() if case["name"] == name]
    root = tmp_path / name.replace(" ", "-")
    files = {file: bytes.fromhex(data) for file, data in case["files"].items()}
    directory = make(root, files, clean=case["isClean"])
    checkpoint(directory, "recovery-point-offset-checkpoint", case["recoveryPoint"])
    if not case["isClean"]:
        recover(directory).apply()
    answer = case["answers"]["4.4.0"]
    with PartitionWriter(directory) as writer:
        assert (writer.log_end_offset, writer.recovery_point) == (answer["logEndOffset"], answer["recoveryPoint"])
    points = decode_offset_checkpoint(
        (directory.parent / "recovery-point-offset-checkpoint").read_bytes(), Location("points")
    )
    assert points.entries[0].offset == answer["recoveryPoint"]


def test_default_recovery_leaves_what_kafka_starts_on(tmp_path: Path) -> None:
    cases = {case["name"]: case for case in started_logs()}
    directory = trusted(tmp_path, TRUSTED)
    recover(directory).apply()
    cut = cases["zeros that were cut"]
    expected = {numbered(name): data for name, data in cut["files"].items() if name.endswith(".log")}
    assert {path.name: path.read_bytes().hex() for path in directory.glob("*.log")} == expected
    assert {answer["logEndOffset"] for answer in cut["answers"].values()} == {15}


def test_next_start_removes_what_the_first_one_renamed(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": at(range(5)), "5.log": at(range(5, 10))}, log_start=1000)
    assert run(["recover", "--write", "--like-broker", str(directory)]) == 1
    renamed = sorted(path.name for path in directory.glob("*.deleted"))
    assert renamed == [numbered("0.log.deleted"), numbered("5.log.deleted")]
    assert run(["recover", "--write", "--like-broker", str(directory)]) == 0
    assert not list(directory.glob("*.deleted"))


# -- what is no readable file, and who else writes ---------------------------------------------------------------------


def to_link(path: Path) -> None:
    path.symlink_to("/nowhere/annex")


def to_fifo(path: Path) -> None:
    os.mkfifo(path)


def to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def to_directory(path: Path) -> None:
    path.mkdir()


COMMANDS: Final = {
    "salvage": ("salvage", "{path}", "-o", "{out}"),
    "dump": ("dump", "--no-records", "{path}"),
    "dump --json": ("dump", "--json", "{path}"),
    "dump --from": ("dump", "--from", "30", "{path}"),
    "find": ("find", "text", "{path}"),
    "doctor": ("doctor", "{path}"),
    "export": ("export", "{path}", "--to", "{out}", "--format", "jsonl"),
    "resurrect": ("resurrect", "{root}", "-o", "{out}"),
    "verify": ("verify", "{path}"),
    "ls": ("ls", "{path}"),
    "diff": ("diff", "{path}", "{path}"),
    "recover": ("recover", "{path}"),
    "recover --like-broker": ("recover", "--like-broker", "{path}"),
    "index": ("index", "{path}"),
    "retain": ("retain", "{path}"),
    "lookup": ("lookup", "{path}", "40"),
}


@pytest.mark.req("SEG-PDR-030")
@pytest.mark.parametrize("name", COMMANDS)
@each_of("turned", [to_link, to_fifo, to_device, to_directory], ids=lambda turned: turned.__name__)
def test_no_command_passes_over_a_log_in_silence(
    name: str, turned: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"30.log": HIGH})
    turned(directory / numbered("0.log"))
    paths = {"path": directory, "root": directory.parent, "out": tmp_path / "out"}
    assert run([word.format(**paths) for word in COMMANDS[name]]) == 3
    assert numbered("0.log") in capsys.readouterr().err


@pytest.mark.parametrize("name", ["salvage", "dump", "dump --json", "resurrect"])
def test_rescuing_commands_take_the_other_logs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {"30.log": HIGH})
    to_link(directory / numbered("0.log"))
    paths = {"path": directory, "root": directory.parent, "out": tmp_path / "out"}
    run([word.format(**paths) for word in COMMANDS[name]])
    written = [path for path in (tmp_path / "out").rglob(numbered("30.log")) if path.stat().st_size == len(HIGH)]
    assert written or numbered("30.log") in capsys.readouterr().out


def test_log_directory_with_a_partition_that_cannot_be_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"30.log": HIGH})
    to_link(directory.with_name("gone-0"))
    for command in (
        ["salvage", str(directory.parent), "-o", str(tmp_path / "out")],
        ["resurrect", str(directory.parent)],
    ):
        assert run(command) == 3
        assert "gone-0" in capsys.readouterr().err
    assert run(["dump", "--no-records", str(directory)]) == 0, "it is no part of what is dumped"


def test_directory_that_another_process_writes_to_is_told(tmp_path: Path) -> None:
    directory = make(tmp_path, WHOLE)
    (directory.parent / ".lock").touch()
    before = resurrect(directory.parent).made.notes
    lock = DirectoryLock(directory.parent)
    try:
        (note,) = (each for each in resurrect(directory.parent).made.notes if each not in before)
    finally:
        lock.close()
    assert note.about == str(directory.parent)
    assert "holds its lock file" in note.text
