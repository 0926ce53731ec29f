"""`seglog find` finds the records that a decode of every record finds, and says what it could not read."""

from __future__ import annotations

import errno
import gzip
import json
import random
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from helpers.batches import batch, patched, record
from helpers.made_partitions import checkpoint, control, entry, make
from helpers.support import FIXTURES, bundled, bundled_cases
from helpers.walking import each_of

from proofs.unpacking import unpack_archive
from seglog_format import Engine, engine, open_partition, open_tier, walk
from seglog_format.cli.main import DONE, FINDINGS, NOT_WRITTEN, UNREADABLE, USAGE, run
from seglog_format.codec.decode import decode_frame
from seglog_format.columnar import prefilter
from seglog_format.doctor.find import found_in
from seglog_format.errors import FormatError, Location, MissingOffsetsWarning, OffsetOutOfRangeError, UsageError
from seglog_format.lines import LineOptions, sources_of
from seglog_format.lines.sources import SourceKind
from seglog_format.log.search import FIELDS, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.model import Message, Record

NEEDLES = 5


def logs_of(case: str) -> list[Path]:
    sources = sources_of(bundled(case))
    return [source.path for source in sources if source.kind is SourceKind.LOG and source.is_live]


def decoded(path: Path) -> Iterator[Record | Message]:
    with suppress(FormatError):  # no batch can be found after this
        for frame in walk(path.read_bytes()):
            if not frame.header.is_control:
                with suppress(FormatError):
                    yield from decode_frame(frame, at=Location(str(path))).records


def fields_of(one: Record | Message) -> dict[str, list[bytes | None]]:
    return {
        "key": [one.key],
        "value": [one.value],
        "header": [part for header in one.headers for part in (header.key, header.value)],
    }


def hits(path: Path, wanted: Wanted) -> list[int]:
    (source,) = sources_of(path)
    found = found_in(source, wanted, LineOptions())
    return [each["offset"] for each in found if isinstance(each, dict)]


@each_of("case", bundled_cases(), share=6)
def test_hits_are_those_of_a_decode_of_every_record(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Needles are cut out of the files themselves: fields of records, varints, markers, headers of batches, indexes."""
    dice = random.Random(case)  # noqa: S311 - chance that repeats
    for path in logs_of(case):
        data = path.read_bytes()
        everything = list(decoded(path))
        cut = [(dice.randrange(len(data) or 1), dice.choice((1, 2, 4, 9))) for _ in range(NEEDLES)]
        some = everything[:: max(1, len(everything) // 3)]
        parts = [part[:7] for one in some for each in fields_of(one).values() for part in each if part]
        beside = [each.read_bytes()[-4:] for each in sorted(path.parent.glob("*index"))]
        for needle in [*(data[start : start + size] for start, size in cut), *parts, *filter(None, beside)]:
            for names in (FIELDS, (dice.choice(FIELDS),)):
                for pattern in (needle, re.compile(re.escape(needle))):
                    expected = [
                        one.offset
                        for one in everything
                        if any(needle in part for name in names for part in fields_of(one)[name] if part is not None)
                    ]
                    assert hits(path, Wanted(pattern=pattern, fields=names)) == expected
                    monkeypatch.setattr(engine, "COLUMNAR_SIZE", dice.choice((-1, 2**22)))
                    monkeypatch.setattr(prefilter, "SEARCHED_SIZE", dice.choice((61, 300, 2**18)))


@pytest.mark.parametrize("rows", [1, 3, 4096])
def test_compiled_code_passes_over_no_hit_and_no_damage(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries with and without compression, hits and damage follow each other in any order."""
    monkeypatch.setattr(prefilter, "ROWS", rows)
    monkeypatch.setattr(prefilter, "SEARCHED_SIZE", 61)
    wanted, counts = Wanted(pattern=b"needle-9", fields=("value",)), []
    for seed in range(20):
        dice = random.Random(seed)  # noqa: S311 - chance that repeats
        path = make(tmp_path / str(seed), {"0.log": b"".join(any_entry(dice, offset) for offset in range(200))})
        (source,) = [each for each in sources_of(path) if each.kind is SourceKind.LOG]
        answers = []
        for least in (2**22, -1):
            monkeypatch.setattr(engine, "COLUMNAR_SIZE", least)
            found = [*found_in(source, wanted, LineOptions())]
            answers.append(([str(each) for each in found if not isinstance(each, int)], found[-1]))
            counts.append(len(found))
        assert answers[0] == answers[1]
    assert sum(counts[1::2]) < sum(counts[::2])


def any_entry(dice: random.Random, offset: int) -> bytes:
    """Return a batch that may hold the text in the value, in another field or not, compressed or damaged or not."""
    value, key = (dice.choice((b"x", b"x", b"x", b"needle-8", b"a needle-9")) for _ in range(2))
    section, codec = record(key=key, value=value * dice.choice((1, 9))), dice.choice((0, 0, 1))
    section = gzip.compress(section) if codec else section
    data = batch(section, base_offset=offset, attributes=codec, producer_epoch=dice.choice((-1,) * 40 + (3,)))
    if dice.random() < 1 / 50:
        return patched(data, 17, "I", 0, seal=False)
    return batch(section, base_offset=offset - 3, attributes=codec) if dice.random() < 1 / 80 else data


@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_a_text_that_is_in_no_record_is_not_found(
    codec: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is in a record of an aborted transaction, a header of a batch, a size and what follows, a marker, an index."""

    def stored(section: bytes, **fields: int) -> bytes:
        data = gzip.compress(section) if codec else section
        return batch(data, attributes=fields.pop("attributes", 0) | codec, **fields)

    text = b"needle-9"
    kinds = [
        stored(record(value=text), base_offset=0, attributes=0x10, producer_id=7, producer_epoch=0, base_sequence=0),
        control(1, 0, value=text),
        stored(record(value=b"x"), base_offset=2, producer_id=int.from_bytes(text)),
        stored(record(value=text[1:].ljust(text[0] // 2)), base_offset=3),
        stored(record(value=b"x", headers=((b"trace", text),)), base_offset=4),
    ]
    assert text in kinds[2]
    assert codec or text in kinds[3]
    path = make(tmp_path, {"0.log": b"".join(kinds), "0.index": text, "0.timeindex": text + bytes(4)})
    lines, _ = find(capsys, text.decode(), path, status=DONE)
    assert [line["offset"] for line in lines] == [0, 4]


def find(capsys: pytest.CaptureFixture[str], *words: object, status: int) -> tuple[list[dict[str, Any]], str]:
    assert run(["find", "--json", *map(str, words)]) == status
    captured = capsys.readouterr()
    return [json.loads(line) for line in captured.out.splitlines()], captured.err


HEADERS = [(b"trace", b"needle-9"), (b"needle-9", None)]


def small(root: Path) -> Path:
    """Make four records that hold the text in a key, a value, a header's value and key, and an end marker."""
    kinds = [
        batch(record(key=b"needle-9"), base_offset=0),
        batch(record(value=b"a needle-9 b"), base_offset=1, base_timestamp_ms=5000, max_timestamp_ms=5000),
        *(batch(record(value=b"x", headers=(pair,)), base_offset=2 + number) for number, pair in enumerate(HEADERS)),
        control(4, 0, value=b"needle-9"),
    ]
    return make(root, {"0.log": b"".join(kinds)})


FOUND = {
    (): [0, 1, 2, 3],
    ("--key",): [0],
    ("--value",): [1],
    ("--header",): [2, 3],
    ("--key", "--header"): [0, 2, 3],
    ("--from", "1", "--to", "3"): [1, 2],
    ("--since", "5000"): [1],
    ("--until", "1970-01-01T00:00:05Z"): [0, 2, 3],
    ("--first", "2"): [0, 1],
}


@each_of("options", FOUND)
def test_options(options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = find(capsys, "needle-9", small(tmp_path), *options, status=DONE)
    assert [line["offset"] for line in lines] == FOUND[options]


def test_from_python(tmp_path: Path) -> None:
    with open_partition(small(tmp_path)) as partition:
        assert [each.offset for each in partition.find("needle-9")] == FOUND[()]
        assert [each.offset for each in partition.find(re.compile(b"^needle"), fields=["key"], to_offset=3)] == [0]
        assert [each.offset for each in partition.find(b"needle-9", from_offset=1, since_ms=5000)] == [1]
        assert [each.offset for each in partition.find("", fields=["value"], until_ms=5000)] == [0, 2, 3]
        with pytest.raises(UsageError, match="a field is one of key, value, header, not 'values'"):
            partition.find("x", fields=["values"])
        with pytest.raises(OffsetOutOfRangeError):
            partition.find("x", from_offset=9)
    a_missing_segment(partition.path)
    with open_partition(partition.path) as partition, pytest.warns(MissingOffsetsWarning, match="5 to 89"):
        list(partition.find("nothing"))


def test_a_place_in_json_or_in_a_decoded_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [b'{"user":{"id":7},"tags":["a","b"]}', b'{"user":{"id":77}}', b"7", b"{", None]
    path = make(
        tmp_path, {"0.log": b"".join(batch(record(value=each), base_offset=n) for n, each in enumerate(values))}
    )
    for names, text, expected in (("user.id", "7", [0]), ("tags.1", "b", [0]), ("tags", '["a", "b"]', [0])):
        lines, _ = find(capsys, text, path, "--at", names, status=DONE)
        assert [line["offset"] for line in lines] == expected
    find(capsys, "7", path, "--at", "tags.7", status=FINDINGS)
    groups = bundled("4.3.0/consumer-offsets")
    everything, _ = find(capsys, "", groups, "--decode", status=DONE)
    wanted = [one["offset"] for one in everything if one["decoded"]["type"] == "groupMetadata"]
    lines, _ = find(capsys, "groupMetadata", groups, "--decode", "--at", "type", status=DONE)
    assert 0 < len(wanted) < len(everything)
    assert [one["offset"] for one in lines] == wanted


def test_tiered_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unpack_archive(FIXTURES / "tiered" / "lts-4.4.0" / "files.tar.gz", tmp_path)
    path, store = tmp_path / "local" / "orders-0", tmp_path / "tier" / "kafka-tiered-storage"
    with open_partition(path, remote=open_tier(store)) as partition:
        value = next(each.value for each in partition.records(100) if each.value)
    text = value.decode()
    find(capsys, "--from", 100, "--to", 200, text, path, status=UNREADABLE)
    lines, _ = find(capsys, "--from", 100, "--to", 200, text, path, "--remote", store, status=DONE)
    assert lines[0]["offset"] == 100
    (path / f"{5000:020}.log").write_bytes(entry(5000))
    find(capsys, "nothing", path, "--remote", store, status=UNREADABLE)
    assert run(["dump", str(path), "--remote", str(store), "--from", "4000"]) == FINDINGS
    assert "4000 to 4999" in capsys.readouterr().err


def test_patterns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = small(tmp_path)
    for words, expected in ((("--regex", "^needle-[0-9]$"), [0, 2, 3]), (("--hex", b"needle-9 ".hex()), [1])):
        lines, _ = find(capsys, *words, directory, status=DONE)
        assert [line["offset"] for line in lines] == expected
    (line,), _ = find(capsys, "--count", "needle-9", directory.parent, status=DONE)
    assert (line["type"], line["records"]) == ("count", 4)
    assert find(capsys, "needle-10", directory, status=FINDINGS) == ([], "")


@each_of("words", [("--hex", "0"), ("--regex", "("), ("--hex", "--regex", "00")])
def test_wrong_patterns(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    find(capsys, *words, small(tmp_path), status=USAGE)


def damaged_bytes(directory: Path) -> None:
    log = next(directory.glob("*.log"))
    log.write_bytes(batch(record(value=b"x"), base_offset=0) + entry(1)[:-1] + b"?" + entry(2))


def a_control_bit(directory: Path) -> None:
    log = next(directory.glob("*.log"))
    log.write_bytes(entry(0) + patched(entry(1), 22, "B", 0x20, seal=False))


def an_impossible_size(directory: Path) -> None:
    log = next(directory.glob("*.log"))
    log.write_bytes(log.read_bytes() + b"\xff" * 70)


def no_log(directory: Path) -> None:
    next(directory.glob("*.log")).unlink()
    checkpoint(directory, "replication-offset-checkpoint", 5)


def a_directory_for_a_log(directory: Path) -> None:
    log = next(directory.glob("*.log"))
    log.unlink()
    log.mkdir()


def a_missing_segment(directory: Path) -> None:
    (directory / f"{90:020}.log").write_bytes(entry(90))


HARMS = [
    damaged_bytes,
    a_control_bit,
    an_impossible_size,
    no_log,
    a_directory_for_a_log,
    a_missing_segment,
]


@each_of("harm", HARMS)
def test_what_was_not_read_is_never_called_not_found(
    harm: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5)})
    assert callable(harm)
    harm(directory)
    for pattern in ("nothing", "v"):
        _, errors = find(capsys, pattern, directory, status=UNREADABLE)
        assert errors


IN_PYTHON = {
    "records": lambda log, end: log.records(15, end),
    "columnar": lambda log, end: log.records(15, end, engine=Engine.COLUMNAR),
    "find": lambda log, end: log.find("nothing", from_offset=15, to_offset=end),
    "scan": lambda log, end: log.scan(from_offset=15, to_offset=end),
}


@each_of("options", [(), ("--count",), ("--json",), ("--first", "3"), ("--from", "1")])
def test_logs_that_are_searched_side_by_side_give_what_they_give_one_by_one(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Harmed directories are among them, and more is found than may wait."""
    monkeypatch.setattr("seglog_format.doctor.find.AHEAD", 2)
    for number, harm in enumerate(HARMS):
        directory = small(tmp_path / str(number))
        harm(directory)
        (tmp_path / "data").mkdir(exist_ok=True)
        directory.rename(tmp_path / "data" / f"orders-{number}")
    found = []
    for count in (1, 2, 16):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        status = run(["find", *options, "x", str(tmp_path / "data")])
        found.append((status, *capsys.readouterr()))
    assert found[0][0] in {DONE, UNREADABLE}
    assert found[0][1]
    assert found == found[:1] * 3


@each_of(("end", "border"), [(end, border) for end in (18, 25, 40) for border in ("", "20.log")])
@pytest.mark.filterwarnings("ignore::seglog_format.errors.MissingOffsetsWarning")
def test_a_range_does_not_hide_a_batch_whose_last_offset_is_damaged(
    end: int, border: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its header says that it ends below the range, and only its checksum proves that."""
    before = entry(0, 10) + patched(entry(10, 10), 23, "i", 0, seal=False)
    after = {border: entry(20, 10), "90.log": entry(90)} if border else {}
    path = make(tmp_path, {"0.log": before if border else before + entry(20, 10), **after})
    for words in (["dump"], ["find", "nothing"], ["diff", str(path)]):
        assert run([*words, str(path), "--from", "15", "--to", str(end)]) in {FINDINGS, UNREADABLE}
        captured = capsys.readouterr()
        assert "SEG-BAT-003" in captured.out + captured.err
    with open_partition(path) as partition:
        for read in IN_PYTHON.values():
            with pytest.raises(FormatError, match="SEG-BAT-003"):
                list(read(partition, end))


def test_segments_due_for_removal_and_other_files_are_not_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = small(tmp_path)
    shutil.copy(directory / f"{0:020}.log", directory / f"{0:020}.log.deleted")
    (directory / "notes.txt").write_text("needle-9", encoding="utf-8")
    assert len(find(capsys, "needle-9", directory, status=DONE)[0]) == len(FOUND[()])
    find(capsys, "needle-9", directory / "notes.txt", status=USAGE)


def test_the_batches_of_the_records_are_written_as_a_segment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], no_fsync: None
) -> None:
    del no_fsync
    wanted = batch(record(value=b"here") + record(offset_delta=1, value=b"here too"), 2, base_offset=1)
    path = make(
        tmp_path,
        {"0.log": entry(0) + wanted + entry(3), "4.log": batch(record(value=b"here"), 1, base_offset=4) + entry(5)},
    )
    found = tmp_path / "found" / f"{0:020d}.log"
    assert run(["find", "here", str(path), "-o", str(found)]) == DONE
    assert found.read_bytes() == wanted + batch(record(value=b"here"), 1, base_offset=4)
    assert f"wrote {found}, 2 batches" in capsys.readouterr().err
    assert run(["verify", str(found)]) == DONE
    assert [each.name for each in found.parent.iterdir()] == [found.name]
    assert run(["find", "here", "--first", "1", str(path), "-o", str(tmp_path / "first.log")]) == DONE
    assert (tmp_path / "first.log").read_bytes() == wanted
    assert run(["find", "nowhere", str(path), "-o", str(tmp_path / "none.log")]) == FINDINGS
    assert not (tmp_path / "none.log").exists()


def test_no_segment_is_written_over_a_file_or_of_two_partitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path, {"0.log": entry(0) + entry(1)})
    shutil.copytree(path, path.with_name("orders-1"))
    existing = tmp_path / "existing.log"
    existing.write_bytes(b"precious")
    log = str(path / f"{0:020d}.log")
    refused = {
        "is there already": [str(path), "-o", str(existing)],
        "where nothing is written": [str(path), "-o", str(path / "new.log")],
        "a segment is of one partition, not of orders-0 and orders-1": [str(path.parent), "-o", f"{tmp_path}.log"],
        "offset 0 comes after 1": [log, log, "-o", str(tmp_path / "twice.log")],
    }
    for text, arguments in refused.items():
        assert run(["find", "v", *arguments]) == USAGE
        assert text in capsys.readouterr().err
    assert existing.read_bytes() == b"precious"
    assert {each.name for each in tmp_path.iterdir()} == {"existing.log", "logs"}


def test_a_segment_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = make(tmp_path / "data", {"0.log": entry(0)})
    monkeypatch.setattr("seglog_format.storage.new_directory.rename_to_new", refuse)
    assert run(["find", "v", str(path), "-o", str(tmp_path / "new" / "0.log")]) == NOT_WRITTEN
    assert "No space left" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
