"""A range of offsets costs what it holds: bytes that the storage layer reads, counted, for each road that takes one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_logs import data_batch
from helpers.walking import each_of

from seglog_format import open_partition, rebuild_indexes
from seglog_format.cli.main import run
from seglog_format.lines import lines_of
from seglog_format.storage import file_reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    bound = SMALL_SCAN if name.startswith("scan") else SMALL
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
