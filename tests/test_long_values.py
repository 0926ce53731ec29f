"""Keys, values and headers of very many bytes, and batches of very many records: what `dump` and `convert` take."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import pytest
import zstandard
from helpers.batches import batch, nullable, record, zigzag_varint

from proofs.children import watched
from seglog_format.cli.main import run
from seglog_format.errors import CorruptRecordError
from seglog_format.lines import lines_of
from seglog_format.log.partition import open_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Seglog = Callable[..., str]

LOG = "00000000000000000000.log"
LONG = 12 * 2**20
MAX_MEMORY = 120 * 2**20
ZSTD = 4

VALUES = {"zeros": bytes(LONG), "text": b"text" * (LONG // 4), "letters": "жЖ".encode() * (LONG // 4)}
RECORDS = {
    "key": lambda data: record(key=data),
    "value": lambda data: record(value=data),
    "header": lambda data: record(headers=((b"h", data),)),
    "header key": lambda data: record(headers=((data, None),)),
}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Seglog:
    def output(*args: object, status: int = 0) -> str:
        assert run([str(arg) for arg in args]) == status
        return capsys.readouterr().out

    return output


def stored(root: Path, section: bytes, count: int = 1) -> Path:
    data = batch(zstandard.ZstdCompressor().compress(section), count, attributes=ZSTD, last_offset_delta=count - 1)
    (root / LOG).write_bytes(data)
    return root / LOG


def many_headers(count: int) -> bytes:
    body = b"\0" + zigzag_varint(0) * 2 + nullable(None) * 2 + zigzag_varint(count) + (nullable(b"") * 2) * count
    return zigzag_varint(len(body)) + body


@pytest.mark.parametrize("field", RECORDS)
@pytest.mark.parametrize("option", ["--bytes=utf8", "--json"], ids=["text", "json"])
def test_dump_of_a_long_field_takes_little_more_than_the_field(tmp_path: Path, field: str, option: str) -> None:
    log = stored(tmp_path, RECORDS[field](VALUES["zeros"]))
    ended = watched(["-m", "seglog_format.cli", "dump", option, str(log)])
    assert ended.status == 0, ended.errors
    assert ended.anonymous_bytes < MAX_MEMORY


@pytest.mark.parametrize("kind", VALUES)
def test_text_shows_the_start_of_a_long_value_and_its_size(cli: Seglog, tmp_path: Path, kind: str) -> None:
    log = stored(tmp_path, record(value=VALUES[kind]))
    shown = cli("dump", log)
    assert f"{LONG} bytes " in shown
    assert len(shown) < 2**16


@pytest.mark.parametrize("bytes_as", ["utf8", "hex", "base64"])
@pytest.mark.parametrize("value", [bytes(100_001), "жz".encode() * 50_000, b"\xff" * 100_000, b"a" * 99_999 + b"\xc3"])
def test_json_of_a_long_value_is_that_of_the_lines(cli: Seglog, tmp_path: Path, value: bytes, bytes_as: str) -> None:
    log = stored(tmp_path, record(key=value, value=value, headers=((b"h", value), (b"n", None))))
    dumped = [json.loads(line) for line in cli("dump", "--json", "--bytes", bytes_as, log).splitlines()]
    assert dumped == list(lines_of(log, bytes_as=bytes_as))


def test_convert_takes_back_what_dump_gave_in_pieces(cli: Seglog, tmp_path: Path) -> None:
    log = stored(tmp_path, record(value=VALUES["zeros"][: 2**20]) + record(offset_delta=1, key=b"\xff" * 2**17), 2)
    (tmp_path / "lines").write_text(cli("dump", "--json", log), encoding="ascii")
    cli("convert", tmp_path / "lines", "-o", tmp_path / "copy")
    first, second = (line for line in lines_of(tmp_path / "copy") if line["type"] == "record")
    assert first["value"] == "\0" * 2**20
    assert second["key"] == {"hex": "ff" * 2**17}


def test_a_record_with_many_headers_is_cut_in_text_and_whole_in_json(cli: Seglog, tmp_path: Path) -> None:
    log = stored(tmp_path, many_headers(100_000))
    text = cli("dump", log)
    assert "… 100000 headers" in text
    assert len(text) < 2**17
    (dumped,) = (line for line in map(json.loads, cli("dump", "--json", log).splitlines()) if "headers" in line)
    assert dumped["headers"] == [["", ""]] * 100_000


def test_first_records_of_a_huge_batch_come_at_once(tmp_path: Path) -> None:
    count = 500_000
    log = stored(tmp_path, b"".join(record(offset_delta=number) for number in range(count)), count)
    ended = watched(["-m", "seglog_format.cli", "dump", "--to", "3", str(log)])
    assert ended.anonymous_bytes < MAX_MEMORY
    assert [line.split()[0] for line in ended.output.splitlines()[2:]] == ["0", "1", "2"]


def test_damage_behind_very_many_records_is_told_behind_them(cli: Seglog, tmp_path: Path) -> None:
    count = 70_000
    log = stored(tmp_path, record() * (count - 1) + b"\x0c" + b"\xff" * 6, count)
    lines = list(lines_of(log))
    assert [line["type"] for line in lines] == ["file", "batch", *["record"] * (count - 1), "batch", "logEnd"]
    assert lines[1]["isValid"]
    assert "records[69999]" in lines[-2]["invalid"]
    cli("dump", log, status=1)


def test_many_records_are_given_while_they_are_read(tmp_path: Path) -> None:
    count = 70_000
    lines = lines_of(stored(tmp_path, record() * count, count + 1))
    assert len([line for line in islice(lines, 2 + count) if line["type"] == "record"]) == count
    assert "SEG-BAT-008" in next(lines)["invalid"]


def test_records_of_a_huge_batch_are_delivered_while_they_are_read(tmp_path: Path) -> None:
    count = 70_000
    stored(tmp_path, record() * (count - 1) + b"\x0c" + b"\xff" * 6, count)
    with open_partition(tmp_path) as partition:
        records = partition.records()
        assert [record.offset for record in islice(records, count - 1)] == [0] * (count - 1)
        with pytest.raises(CorruptRecordError):
            next(records)


def test_verify_looks_at_the_first_records_of_a_huge_batch_and_says_so(cli: Seglog, tmp_path: Path) -> None:
    shown = cli("verify", "--engine", "reference", stored(tmp_path, record() * 3_000_000, 3_000_000), status=3)
    assert "at most 65536 records" in shown
    assert "SEG-COD-016" in shown
    assert len(shown.splitlines()) < 10
