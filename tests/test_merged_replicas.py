"""Several damaged replicas of a partition give one log with every batch that is whole in any of them."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.batches import batch, record
from helpers.made_partitions import ONE, checkpoint, entry, make
from helpers.support import bundled
from helpers.walking import each_of

from seglog_format import open_partition, resurrect, verify, walk
from seglog_format.cli.main import DONE, FINDINGS, USAGE, run
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_fsync")

PARTITIONS: Final = (
    ("4.3.0/segs", "segs-0"),
    ("4.3.0/consumer-offsets", ""),
    ("2.8.2/crash-flip", "before/crash-flip-0"),
)


def batches(directory: Path) -> dict[tuple[int, int], bytes]:
    """Return the bytes of each batch by its first and last offset."""
    found = {}
    for path in sorted(directory.glob("*.log")):
        for frame in walk(path.read_bytes()):
            found[frame.header.base_offset, frame.header.last_offset] = bytes(frame.data)
    return found


def merged(capsys: pytest.CaptureFixture[str], target: Path, *paths: Path, status: int | None = None) -> dict[str, Any]:
    done = run(["salvage", "--json", *map(str, paths), "-o", str(target)])
    out = capsys.readouterr()
    assert status in {None, done}, out
    return {"status": done, **(json.loads(out.out) if out.out else {"error": out.err})}


def flip(data: bytearray, draw: random.Random) -> None:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def zero(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    end = min(start + draw.randrange(1, 3000), len(data))
    data[start:end] = bytes(end - start)


def cut_out(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    del data[start : start + draw.randrange(1, 500)]


def cut_end(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def put_in(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    data[start:start] = draw.randbytes(draw.randrange(1, 500))


DAMAGES: Final[tuple[Callable[[bytearray, random.Random], None], ...]] = (flip, zero, cut_out, cut_end, put_in)


def damage(directory: Path, draw: random.Random) -> None:
    logs = sorted(path for path in directory.glob("*.log") if path.stat().st_size)
    for _ in range(draw.randrange(1, 5)):
        path = draw.choice(logs)
        data = bytearray(path.read_bytes())
        if data:
            draw.choice(DAMAGES)(data, draw)
            path.write_bytes(data)


def authentic_partition(case: str, name: str, target: Path) -> Path:
    """Copy a partition of a broker, which may be damaged; salvage makes it whole."""
    below = bundled(case) / name
    source = next(path for path in (below, *sorted(below.glob("*-[0-9]*"))) if list(path.glob("*.log")))
    run(["salvage", str(source), "-o", str(target / "orders-0")])
    return target / "orders-0"


@each_of("seed", (*range(40), 169, 171))
def test_every_batch_that_is_whole_in_a_replica_is_in_the_new_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    draw = random.Random(seed)  # noqa: S311 - a repeatable choice
    whole = authentic_partition(*PARTITIONS[seed % len(PARTITIONS)], tmp_path / "whole")
    capsys.readouterr()
    copies = [tmp_path / f"{number}" / "orders-0" for number in range(draw.choice((2, 2, 3)))]
    for copy in copies:
        shutil.copytree(whole, copy)
        damage(copy, draw)
    held = [path.read_bytes() for copy in copies for path in copy.glob("*.log")]
    before = batches(whole)
    expected = {offsets: data for offsets, data in before.items() if any(data in each for each in held)}
    report = merged(capsys, tmp_path / "new", *copies)
    assert batches(tmp_path / "new") == expected
    assert [one for one in verify(tmp_path / "new") if one.severity is Severity.ERROR] == []
    lost = {offset for each in report["lost"] for offset in range(each["firstOffset"], each["nextOffset"])}
    gone = {offset for first, last in before.keys() - expected for offset in range(first, last + 1)}
    has_unknown_end = any(not each["offsetCount"] for each in report["lost"])
    assert report["status"] == (FINDINGS if report["lost"] else DONE)
    assert gone <= lost or has_unknown_end
    assert gone or not report["lost"]


@each_of("other", [entry(10, 2, epoch=3), entry(9, 3, epoch=1)])
def test_no_batch_is_taken_from_before_a_leader_epoch_whose_first_batch_is_damaged(
    other: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the checkpoint knows where the epoch of the damaged batch began."""
    begin, own = entry(0, 9, epoch=1), entry(9, epoch=1)
    damaged = entry(10, 2, epoch=5)[:-1] + b"?"
    one = make(tmp_path / "one", {"0.log": begin + own + damaged + entry(12, 2, epoch=5)})
    (one / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n5 10\n", encoding="ascii")
    before = begin if other[7] == 9 else begin + own
    two = make(tmp_path / "two", {"0.log": before + other + entry(12, 2, epoch=3, time=7)})
    report = merged(capsys, tmp_path / "new", one, two, status=FINDINGS)
    assert [*batches(tmp_path / "new")] == [(0, 8), (9, 9), (12, 13)]
    assert [(each["firstOffset"], each["nextOffset"]) for each in report["lost"]] == [(10, 12)]


def test_two_replicas_that_are_damaged_in_different_places_lose_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [bytearray(b"".join(entry(offset) for offset in range(10))) for _ in range(2)]
    logs[0][3 * ONE + 70] ^= 1
    logs[1][7 * ONE + 8 : 7 * ONE + 12] = b"\xff\xff\xff\xff"
    paths = [make(tmp_path / str(number), {"0.log": bytes(log)}) for number, log in enumerate(logs)]
    report = merged(capsys, tmp_path / "new", *paths, status=DONE)
    assert report["lost"] == []
    assert [each["copiedBatches"] for each in report["replicas"]] == [9, 1]
    assert sorted(batches(tmp_path / "new")) == [(offset, offset) for offset in range(10)]
    assert run(["salvage", *map(str, paths), "-o", str(tmp_path / "text")]) == DONE
    assert "1 of 9 whole batches copied" in capsys.readouterr().out


def test_the_history_of_the_later_leader_is_kept_and_the_other_one_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = [entry(offset) for offset in range(5)]
    old = [*common, *(entry(offset, time=2000) for offset in range(5, 9))]
    new = [*common, *(entry(offset, epoch=1) for offset in range(5, 8))]
    paths = [make(tmp_path / name, {"0.log": b"".join(log)}) for name, log in (("old", old), ("new", new))]
    report = merged(capsys, tmp_path / "merged", *paths, status=FINDINGS)
    assert report["chosen"] == str(paths[1])
    assert report["replicas"][0]["diverged"] == [{"firstOffset": 5, "lastOffset": 8, "leaderEpoch": 0}]
    assert batches(tmp_path / "merged") == batches(paths[1])
    assert "diverged: offsets 5 to 8, leader epoch 0" in text_of(capsys, tmp_path / "text", *paths)


def text_of(capsys: pytest.CaptureFixture[str], target: Path, *paths: Path) -> str:
    run(["salvage", *map(str, paths), "-o", str(target)])
    return capsys.readouterr().out


def test_a_history_that_lost_stays_out_where_the_other_one_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = [entry(offset, time=1000 * (1 + offset // 5)) for offset in range(9)]
    new = [*old[:5], *(entry(offset, epoch=1) for offset in range(5, 12))]
    new[6] = bytes(ONE)
    paths = [make(tmp_path / name, {"0.log": b"".join(log)}) for name, log in (("old", old), ("new", new))]
    report = merged(capsys, tmp_path / "merged", *paths, status=FINDINGS)
    assert report["lost"] == [{"firstOffset": 6, "nextOffset": 7, "offsetCount": 1}]
    assert [one for one, _ in batches(tmp_path / "merged")] == [*range(6), *range(7, 12)]


@pytest.mark.parametrize("field", ["epoch", "offset"])
def test_a_field_that_no_checksum_covers_is_taken_from_the_replica_where_it_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    log = b"".join(entry(offset, epoch=3) for offset in range(6))
    wrong = bytearray(log)
    wrong[2 * ONE + (12 if field == "epoch" else 4)] ^= 0x40
    paths = [make(tmp_path / str(number), {"0.log": bytes(each)}) for number, each in enumerate((wrong, log))]
    merged(capsys, tmp_path / "merged", *paths, status=DONE)
    assert b"".join(batches(tmp_path / "merged").values()) == log


def test_of_a_batch_that_one_replica_compacted_the_fuller_one_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cleaned = batch(record(offset_delta=1, value=b"v" * 40), 1, base_offset=5, last_offset_delta=4)
    logs = [entry(0, 5) + cleaned + entry(10, 5), entry(0, 5) + entry(5, 5) + entry(10, 5)]
    paths = [make(tmp_path / str(number), {"0.log": each}) for number, each in enumerate(logs)]
    merged(capsys, tmp_path / "merged", *paths, status=DONE)
    assert batches(tmp_path / "merged") == batches(paths[1])


def test_replicas_of_two_partitions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (make(tmp_path / str(time), {"0.log": entry(0, time=time) + entry(1, time=time)}) for time in (1, 2))
    strange = merged(capsys, tmp_path / "new", one, other, status=USAGE)
    assert "is it the same partition?" in strange["error"]
    for number, path in enumerate((one, other)):
        text = f"version: 0\ntopic_id: BBBBBBBBBBBBBBBBBBBBB{'AQ'[number]}\n"
        (path / "partition.metadata").write_text(text, "utf-8")
    assert "the topic ids differ" in merged(capsys, tmp_path / "new", one, other, status=USAGE)["error"]
    renamed = other.rename(other.with_name("orders-1"))
    assert "the names differ" in merged(capsys, tmp_path / "new", one, renamed, status=USAGE)["error"]
    assert not (tmp_path / "new").exists()


def test_log_directories_are_merged_partition_by_partition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [make(tmp_path / str(number), {"0.log": entry(0) + entry(1)}) for number in range(2)]
    shutil.copytree(paths[0], paths[0].with_name("alone-0"))
    (paths[1] / f"{0:020d}.log").write_bytes(entry(0))
    assert run(["salvage", *(str(path.parent) for path in paths), "-o", str(tmp_path / "new")]) == DONE
    capsys.readouterr()
    assert [sorted(batches(tmp_path / "new" / name)) for name in ("alone-0", "orders-0")] == [[(0, 0), (1, 1)]] * 2


def test_a_node_of_replicas_that_are_damaged_at_different_places_loses_nothing(tmp_path: Path) -> None:
    logs = [bytearray(b"".join(map(entry, range(9)))) for _ in range(2)]
    for log, damaged in zip(logs, (3, 6), strict=True):
        log[(damaged + 1) * ONE - 1] ^= 1
    paths = [make(tmp_path / str(number), {"0.log": bytes(each)}) for number, each in enumerate(logs)]
    plan = resurrect([path.parent for path in paths], tmp_path / "node", unknown_topics=True)
    plan.apply()
    assert b"".join(batches(tmp_path / "node" / "orders-0").values()) == b"".join(map(entry, range(9)))
    about = [note.text for note in plan.made.notes if note.about == "orders-0"]
    assert about[-1] == f"batches that it lacks are taken from {paths[0]}: 1"
    assert not any("lost" in text for text in about)
    (paths[0] / f"{0:020d}.log").write_bytes(entry(0, time=2) + entry(1, time=2))
    texts = [note.text for note in resurrect([path.parent for path in paths], unknown_topics=True).made.notes]
    assert any(text.startswith("nothing is taken from other replicas: ") for text in texts)


def test_offsets_below_a_high_watermark_that_no_replica_has_are_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (make(tmp_path / str(count), {"0.log": entry(0, count)}) for count in (3, 5))
    checkpoint(one, "replication-offset-checkpoint", 5)
    (other / f"{0:020d}.log").write_bytes(entry(0, 3) + entry(3, 2))
    assert merged(capsys, tmp_path / "whole", one, other, status=DONE)["lost"] == []
    checkpoint(one, "replication-offset-checkpoint", 7)
    lost = merged(capsys, tmp_path / "less", one, other, status=FINDINGS)["lost"]
    assert lost == [{"firstOffset": 5, "nextOffset": 7, "offsetCount": 2}]


@each_of(
    ("damaged_end", "is_lost"),
    {
        "bytes were put in": (entry(3)[:30] + bytes(range(200)) + entry(3)[30:], False),
        "zeros": (bytes(5 * ONE), False),
        "another batch follows": (entry(3)[:-1] + b"?" + entry(4)[:-1] + b"?", True),
        "the start of another batch follows": (entry(3)[:-1] + b"?" + entry(4)[:-1], True),
    }.values(),
)
def test_what_follows_an_intact_end_is_lost_if_a_header_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, damaged_end: bytes, is_lost: bool
) -> None:
    common = b"".join(map(entry, range(3)))
    logs = (common + damaged_end, common + entry(3))
    paths = [make(tmp_path / str(number), {"0.log": each}) for number, each in enumerate(logs)]
    report = merged(capsys, tmp_path / "new", *paths, status=FINDINGS if is_lost else DONE)
    assert report["lost"] == ([{"firstOffset": 3, "nextOffset": 3, "offsetCount": 0}] if is_lost else [])
    assert sorted(batches(tmp_path / "new")) == [(offset, offset) for offset in range(4)]


def test_a_damaged_end_that_no_intact_one_passes_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = b"".join(map(entry, range(3)))
    logs = (common + entry(3)[:-1] + b"?", common)
    paths = [make(tmp_path / str(number), {"0.log": each}) for number, each in enumerate(logs)]
    lost = merged(capsys, tmp_path / "new", *paths, status=FINDINGS)["lost"]
    assert lost == [{"firstOffset": 3, "nextOffset": 3, "offsetCount": 0}]


@each_of(
    ("others", "lost"),
    {
        "all are emptied": ({"7.log": b""}, []),
        "one has older records": ({"0.log": entry(0, 3)}, [{"firstOffset": 3, "nextOffset": 7, "offsetCount": 4}]),
        "one reaches as far": ({"0.log": entry(0, 7)}, []),
    }.values(),
)
def test_the_end_of_an_emptied_replica_is_that_of_the_new_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, others: dict[str, bytes], lost: list[dict[str, int]]
) -> None:
    paths = [make(tmp_path / "one", {"7.log": b""}), make(tmp_path / "other", others)]
    report = merged(capsys, tmp_path / "new", *paths, status=FINDINGS if lost else DONE)
    assert (report["nextOffset"], report["lost"]) == (7, lost)
    with open_partition(tmp_path / "new") as log:
        assert log.log_end_offset == 7
