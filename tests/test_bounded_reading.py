"""A range of offsets costs what it holds: bytes that the storage layer reads, counted, for each road that takes one."""

from __future__ import annotations

import json
import random
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from helpers.batches import batch, record
from helpers.made_logs import data_batch
from helpers.walking import each_of

from seglog_format import Engine, open_partition, rebuild_indexes
from seglog_format.cli.main import run
from seglog_format.cli.options import to_timestamp_ms
from seglog_format.codec.plain import RecordReading
from seglog_format.engine import lacking
from seglog_format.errors import CorruptRecordError
from seglog_format.lines import lines_of
from seglog_format.storage import file_reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from seglog_format.types import Partition, Record

PACKAGE = str(Path("/seglog_format/"))
SEGMENTS = 40
FIRST_BATCHES = 400
"""Batches of the first segment, which has 12 MB; of the others each has 4."""
MIDDLE = 20 * FIRST_BATCHES + 20 * 4 * 20
SMALL = 400_000
"""Bytes: a few windows; the log has 12 MB."""
SMALL_SCAN = 1_500_000
"""Bytes: a few windows of the columnar engine."""


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a partition of 40 segments with their indexes."""
    directory = tmp_path_factory.mktemp("logs") / "topic-0"
    directory.mkdir()
    offset = 0
    for number in range(SEGMENTS):
        batches = []
        for _ in range(4 if number else FIRST_BATCHES):
            times = [1000 * (offset + each) for each in range(20)]
            batches.append(data_batch(offset, times, value=b"v" * (40 if number else 1500)).data)
            offset += 20
        (directory / f"{offset - 20 * len(batches):020}.log").write_bytes(b"".join(batches))
    rebuild_indexes(directory).apply()
    return directory


def command(*arguments: str) -> Callable[[Path], object]:
    """Return a call of a command that must succeed; PATH stands for the partition."""

    def call(path: Path) -> None:
        status = run([str(path) if each == "PATH" else each for each in arguments])
        assert status == (1 if arguments[0] == "find" else 0)

    return call


def records(path: Path, offsets: dict[str, Any], *, trust_indexes: bool = False) -> None:
    with open_partition(path, trust_indexes=trust_indexes) as log:
        assert list(log.records(**offsets))


def scan(path: Path, offsets: dict[str, Any], *, trust_indexes: bool = False) -> None:
    pytest.importorskip("pyarrow")
    with open_partition(path, trust_indexes=trust_indexes) as log:
        assert log.scan(**offsets).read_all().num_rows


def read(path: Path, offsets: dict[str, Any]) -> None:
    with open_partition(path) as log:
        assert log.read(offsets["from_offset"], 1).records


def lines(path: Path, offsets: dict[str, Any]) -> None:
    assert list(lines_of(path, **offsets))


RANGES: tuple[dict[str, Any], ...] = (
    {"to_offset": 5},
    {"from_offset": MIDDLE, "to_offset": MIDDLE + 5},
    {"from_offset": 40, "to_offset": 45},
    {"from_offset": 20 * FIRST_BATCHES - 25, "to_offset": 20 * FIRST_BATCHES - 20},
)
ROADS: dict[str, Callable[..., None]] = {
    "records": records,
    "records, trusting": partial(records, trust_indexes=True),
    "scan": scan,
    "scan, trusting": partial(scan, trust_indexes=True),
    "lines_of": lines,
}
CALLS: dict[str, Callable[[Path], object]] = {
    f"{name} {offsets}": partial(call, offsets=offsets) for offsets in RANGES for name, call in ROADS.items()
}
CALLS |= {f"read {offsets}": partial(read, offsets=offsets) for offsets in RANGES[1:]}
CALLS |= {
    f"{words[0]} {' '.join(options)}": command(*words, *options)
    for words in (
        ("dump", "PATH"),
        ("dump", "--json", "PATH"),
        ("find", "no such text", "PATH"),
        ("diff", "PATH", "PATH"),
    )
    for options in (("--to", "5"), ("--from", str(MIDDLE), "--to", str(MIDDLE + 5)), ("--from", "40", "--to", "45"))
}
LATE_MS = 1000 * (MIDDLE + 1200)
CALLS |= {
    f"{name} since": partial(call, offsets={"from_timestamp_ms": LATE_MS})
    for name, call in (("scan", scan), ("scan records", records))
}
CALLS |= {
    f"scan {words[0]} since": command(*words, "--since", str(LATE_MS), "--until", str(LATE_MS + 9000))
    for words in (("dump", "PATH"), ("find", "no such text", "PATH"))
}
CALLS |= {
    f"scan verify {' '.join(options)}": command("verify", *options, "PATH")
    for options in (("--to", "5"), ("--from", str(MIDDLE), "--to", str(MIDDLE + 5)), ("--since", str(LATE_MS)))
}
CALLS["diff scan since"] = command("diff", "PATH", "PATH", "--since", str(LATE_MS))
CALLS |= {
    f"lookup {' '.join(options)}": command("lookup", *options, "PATH", str(MIDDLE))
    for options in ((), ("--trust-indexes",))
}


@each_of(("name", "call"), CALLS.items(), ids=lambda each: each if isinstance(each, str) else "")
def test_a_small_range_costs_few_bytes(
    name: str, call: Callable[[Path], object], partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = file_reader._read_at

    def counted(descriptor: int, size: int, position: int) -> bytes | memoryview:
        found = real(descriptor, size, position)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(file_reader, "_read_at", counted)
    call(partition)
    bound = SMALL_SCAN if "scan" in name else SMALL
    assert 0 < sum(sizes) < (2 * bound if name.startswith("diff") else bound)


@pytest.mark.parametrize("change", ["checksum", "order"])
def test_a_range_does_not_end_at_an_entry_that_no_reader_accepts(change: str, tmp_path: Path) -> None:
    """A damaged header may state any offset, and entries after one that is out of order may hold those wanted."""
    entries = [data_batch(base, [base] * 5).data for base in (0, 900, 5)]
    if change == "checksum":
        entries[1] = entries[1][:-1] + b"?"
    else:
        (tmp_path / f"{100:020}.log").touch()
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(entries))
    lines = list(lines_of(tmp_path, from_offset=3, to_offset=8))
    assert [line["offset"] for line in lines if line["type"] == "record"] == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("seed", range(12))
def test_a_range_of_times_is_a_filter_over_everything(seed: int, tmp_path: Path) -> None:
    """Times rise and fall at random; time indexes are right, missing, garbage, or of an earlier and smaller log."""
    dice, offset = random.Random(seed), 0  # noqa: S311 - chance that repeats
    for _ in range(3):
        entries, base = [], offset
        for _ in range(dice.randrange(1, 5)):
            times = [dice.randrange(100) for _ in range(dice.randrange(1, 4))]
            entries.append(data_batch(offset, times, value=b"v" * dice.choice((1, 9000))).data)
            offset += len(times)
        (tmp_path / f"{base:020}.log").write_bytes(b"".join(entries))
    rebuild_indexes(tmp_path).apply()
    for index in sorted(tmp_path.glob("*.timeindex")):
        stale = index.read_bytes()[:-12] + dice.choice((b"", bytes(12), dice.randbytes(12)))
        dice.choice((index.unlink, lambda index=index, stale=stale: index.write_bytes(stale), lambda: None))()
    with open_partition(tmp_path) as log:
        everything = [(one.offset, one.timestamp_ms) for one in log.records()]
        for _ in range(20):
            since, until = (dice.choice((None, dice.randrange(-1, 110))) for _ in range(2))
            first = dice.choice((None, dice.randrange(offset)))
            expected = [
                number
                for number, time in everything
                if number >= (first or 0) and (since is None or time >= since) and (until is None or time < until)
            ]
            bounds: dict[str, Any] = {"from_timestamp_ms": since, "to_timestamp_ms": until}
            for engine in (Engine.AUTO, Engine.PLAIN, Engine.REFERENCE):
                assert [one.offset for one in log.records(first, engine=engine, **bounds)] == expected
            assert [one.offset for one in log.find(b"", from_offset=first, since_ms=since, until_ms=until)] == expected
            if lacking() is None:
                assert log.scan(["offset"], first, **bounds).read_all()["offset"].to_pylist() == expected
            lines = lines_of(tmp_path, from_offset=first, since_ms=since, until_ms=until)
            assert [line["offset"] for line in lines if line["type"] == "record" and line["file"]] == expected


def test_verify_says_that_only_a_range_was_checked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A damaged batch counts if it is in the range; the index, which is wrong throughout, does not."""
    entries = [data_batch(base, [base] * 5).data for base in range(0, 40, 5)]
    entries[4] = entries[4][:-1] + b"?"
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(entries))
    (tmp_path / f"{0:020}.index").write_bytes(b"\xff" * 16)
    log = str(tmp_path / f"{0:020}.log")
    for options, status in (
        (["--to", "20"], 0),
        (["--to", "21"], 1),
        (["--from", "20"], 1),
        (["--from", "24"], 1),
        (["--from", "30"], 0),
        (["--since", "30"], 0),
        (["--since", "20", "--to", "30"], 1),
        (["--since", "999"], 0),
        (["--until", "15"], 0),
        (["--until", "16"], 1),
        (["--until", "999"], 1),
        (["--until", "16", "--to", "20"], 0),
        (["--since", "30", "--until", "40"], 0),
        (["--until", "0"], 0),
    ):
        for path in (str(tmp_path), log):
            for engine in ("plain", "reference", *(["columnar"] if lacking() is None else [])):
                assert run(["verify", path, "--engine", engine, *options]) == status, (options, path, engine)
                assert "only batches of this range" in capfd.readouterr().err
    assert run(["verify", log.replace(".log", ".index"), "--to", "3"]) == 2
    assert run(["verify", log, "--to", "0"]) == 2


def test_a_time_is_given_in_three_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    context, parameter = click.Context(click.Command("x")), click.Option(["--since"])
    forms = {"5": 5, "-1": -1, "1970-01-01": 0, "1970-01-01T01:00+01:00": 0, "2h": 1_699_992_800_000}
    assert {text: to_timestamp_ms(context, parameter, text) for text in forms} == forms
    for text in ("", "h", "2w", "-2h"):
        with pytest.raises(click.BadParameter):
            to_timestamp_ms(context, parameter, text)


def test_a_fresh_lookup_decodes_one_record(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    decoded: list[int] = []
    real = RecordReading._record

    def counted(self: RecordReading, index: int) -> Record:
        decoded.append(index)
        return real(self, index)

    monkeypatch.setattr(RecordReading, "_record", counted)
    offsets = range(7, 20 * FIRST_BATCHES, 20 * 13)
    for trust_indexes in (False, True):
        decoded.clear()
        with open_partition(partition, trust_indexes=trust_indexes) as log:
            for offset in offsets:
                assert next(log.records(offset)).offset == offset
                found = log.offset_for_timestamp(1000 * offset - 999)
                assert found is not None
                assert found.offset == offset
        assert len(decoded) == 2 * len(offsets)


def test_a_lookup_looks_at_the_whole_batch(tmp_path: Path) -> None:
    """The checksum is right, and another record of the batch is not: nothing of it is delivered, as by any reader."""
    good, wrong = record(value=b"v" * 90_000), record(offset_delta=1, value=b"v")
    entry = batch(good + wrong[:-1] + b"\x01", 2, last_offset_delta=1)
    (tmp_path / f"{0:020}.log").write_bytes(entry)
    for engine in (Engine.AUTO, Engine.PLAIN, Engine.REFERENCE):
        with open_partition(tmp_path) as log, pytest.raises(CorruptRecordError, match="SEG-REC"):
            next(log.records(0, engine=engine))


COSTS = Path(__file__).parent / "costs.json"
"""What ten calls cost: bytes read, entries decoded in Python, calls of functions of the package. A cost that rises by
more than a twentieth fails here, until it is recorded with the reason."""
COSTLY: dict[str, Callable[[Path], object]] = {
    "log end": lambda path: with_log(path, lambda log: log.log_end_offset),
    "lookup": lambda path: with_log(path, lambda log: next(log.records(MIDDLE))),
    "lookup, trusting": lambda path: with_log(path, lambda log: next(log.records(77)), trust_indexes=True),
    "lookup by time": lambda path: with_log(path, lambda log: log.offset_for_timestamp(77_000), trust_indexes=True),
    "read": lambda path: with_log(path, lambda log: log.read(MIDDLE)),
    "records": lambda path: with_log(path, lambda log: [*log.records(MIDDLE, MIDDLE + 200)]),
    "dump": command("dump", "--from", str(MIDDLE), "--to", str(MIDDLE + 200), "PATH"),
    "find": command("find", "no such text", "--from", str(MIDDLE), "PATH"),
    "ls": command("ls", "PATH"),
    "verify": command("verify", "PATH"),
}


def with_log(path: Path, ask: Callable[[Partition], object], *, trust_indexes: bool = False) -> None:
    with open_partition(path, trust_indexes=trust_indexes) as log:
        ask(log)


def cost(call: Callable[[Path], object], path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return what a call costs in a process that has made it before."""
    call(path)
    found = {"bytes": 0, "decoded": 0, "calls": 0}
    real = file_reader._read_at

    def counted(descriptor: int, size: int, position: int) -> bytes | memoryview:
        data = real(descriptor, size, position)
        found["bytes"] += len(data)
        return data

    def noted(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and PACKAGE in code.co_filename and code.co_name[0] != "<":
            found["calls"] += 1
            found["decoded"] += code.co_name == "decode_unverified"

    before = sys.getprofile()
    with monkeypatch.context() as patch:
        patch.setattr(file_reader, "_read_at", counted)
        sys.setprofile(noted)
        try:
            call(path)
        finally:
            sys.setprofile(before)
    return found


def test_ten_calls_cost_no_more_than_recorded(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if lacking() is not None:
        pytest.skip("without compiled kernels other code does the work")
    found = {name: cost(call, partition, monkeypatch) for name, call in COSTLY.items()}
    recorded = json.loads(COSTS.read_text(encoding="utf-8"))
    rising = {
        f"{name}, {kind}: {recorded[name][kind]} became {number}"
        for name, numbers in found.items()
        for kind, number in numbers.items()
        if number > 1.05 * recorded[name][kind]
    }
    assert not rising, f"record with the reason in {COSTS.name}:\n{json.dumps(found, indent=1)}"
