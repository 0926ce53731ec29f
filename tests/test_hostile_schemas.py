"""No schema on the disk stops an export, slows it without bound, or changes what becomes of other records."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, record
from helpers.hostile_schemas import CASES, GOOD, GOOD_VALUES, HOSTILE, HOSTILE_VALUES
from helpers.walking import each_of

from seglog_format.cli.main import run
from seglog_format.values.decoder import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 60
"""What no schema may take, on a busy machine."""


def log_of(directory: Path, values: list[tuple[bytes, bytes]]) -> None:
    directory.mkdir(parents=True)
    section = b"".join(record(number, number, key, value) for number, (key, value) in enumerate(values))
    (directory / f"{0:020}.log").write_bytes(batch(section, len(values), last_offset_delta=len(values) - 1))


def stored(subject: str, id_: int, kind: str, schema: str, references: object = None) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
    value = {"subject": subject, "version": 1, "id": id_, "schemaType": TYPES[kind], "schema": schema}
    return json.dumps(key).encode(), json.dumps(value | {"references": references or []}).encode()


def header(id_: int) -> bytes:
    return b"\x00" + id_.to_bytes(4, "big")


@each_of(("kind", "name"), CASES)
def test_hostile_schema_concerns_its_own_records_alone(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    schemas = [stored("t-value", 1, kind, GOOD[kind]), stored("other-value", 2, kind, HOSTILE[kind][name])]
    log_of(tmp_path / "logs" / "_schemas-0", schemas)
    good, bad = header(1) + GOOD_VALUES[kind], [header(2) + value for value in HOSTILE_VALUES[kind]]
    log_of(tmp_path / "logs" / "t-0", [(b"", value) for value in (good, *bad, good)])
    log_of(tmp_path / "logs" / "other-0", [(b"", value) for value in bad])
    out = [str(tmp_path / "logs"), "--to", str(tmp_path / "out"), "--value", kind]
    assert run(["export", *out, "--topic", "t", "--format", "jsonl"]) in {0, 1}
    shown, error = capsys.readouterr()
    assert "Traceback" not in error
    (path,) = (tmp_path / "out").rglob("*.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["value"] for row in rows if row["offset"] in {0, len(bad) + 1}] == [{"x": "a"}] * 2
    aside = [json.loads(line) for line in _lines_of(tmp_path / "out-undecoded")]
    assert sorted(row["offset"] for row in (*rows, *aside)) == list(range(len(bad) + 2))
    assert all(row["reason"] for row in aside)
    assert ("not decoded" in shown) == bool(aside)
    assert time.monotonic() - began < SECONDS


REFERENCES = {
    "outside": ["../../etc/x.proto"],
    "absolute": ["/etc/x.proto"],
    "an option": ["--plugin=x"],
    "a file as a directory": ["a.proto", "a.proto/b.proto"],
    "a directory as a file": ["a.proto/b.proto", "a.proto"],
    "the schema itself": ["seglog-schema.proto"],
    "long": ["x" * 300],
    "very long": ["x/" * 5_000 + "a.proto"],
    "half a character": ["\ud800.proto"],
    "empty": [""],
    "many": [f"x{number}.proto" for number in range(2_000)],
}


@pytest.mark.parametrize("main", ["text", "descriptor"])
@pytest.mark.parametrize("name", REFERENCES)
def test_hostile_names_of_references_stay_in_their_schema(
    name: str, main: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas = [
        stored(f"s{number}", number + 10, "protobuf", GOOD["protobuf"]) for number in range(len(REFERENCES[name]))
    ]
    references = [{"name": each, "subject": f"s{number}", "version": 1} for number, each in enumerate(REFERENCES[name])]
    text = GOOD["protobuf"] if main == "text" else HOSTILE["protobuf"]["names of methods"]
    schemas += [stored("other", 2, "protobuf", text, references), stored("t-value", 1, "protobuf", GOOD["protobuf"])]
    log_of(tmp_path / "logs" / "_schemas-0", schemas)
    values = [header(2) + b"\x00\x0a\x01a", header(1) + b"\x00\x0a\x01a"]
    log_of(tmp_path / "logs" / "t-0", [(b"", value) for value in values])
    arguments = [str(tmp_path / "logs"), "--to", str(tmp_path / "out"), "--value", "protobuf", "--format", "jsonl"]
    assert run(["export", *arguments, "--topic", "t"]) in {0, 1}
    assert "Traceback" not in capsys.readouterr().err
    assert '"value":{"x":"a"}' in "".join(_lines_of(tmp_path / "out"))


@pytest.mark.parametrize("kind", GOOD)
def test_long_chain_of_references_is_followed(kind: str, tmp_path: Path) -> None:
    texts = {"avro": '"int"', "json-schema": "{}", "protobuf": GOOD["protobuf"]}
    schemas = [
        stored(
            f"s{number}",
            number + 10,
            kind,
            texts[kind],
            [{"name": f"n{number}", "subject": f"s{number + 1}", "version": 1}],
        )
        for number in range(3_000)
    ]
    references = [{"name": "n", "subject": "s0", "version": 1}]
    schemas += [stored("other", 2, kind, GOOD[kind], references), stored("t-value", 1, kind, GOOD[kind])]
    log_of(tmp_path / "logs" / "_schemas-0", schemas)
    log_of(tmp_path / "logs" / "t-0", [(b"", header(each) + GOOD_VALUES[kind]) for each in (2, 1)])
    arguments = [str(tmp_path / "logs"), "--to", str(tmp_path / "out"), "--value", kind, "--format", "jsonl"]
    assert run(["export", *arguments, "--topic", "t"]) in {0, 1}
    assert '"value":{"x":"a"}' in "".join(_lines_of(tmp_path / "out"))


def _lines_of(directory: Path) -> Iterator[str]:
    for path in directory.rglob("*.jsonl"):
        yield from path.read_text("utf-8").splitlines()


@pytest.mark.parametrize("table_format", ["parquet", "iceberg", "arrow", "csv", "jsonl"])
@each_of(("kind", "name"), CASES, share=5)
def test_hostile_readers_schema_is_used_or_refused_in_one_line(
    kind: str, name: str, table_format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    log_of(tmp_path / "logs" / "_schemas-0", [stored("t-value", 2, kind, HOSTILE[kind][name])])
    log_of(tmp_path / "logs" / "t-0", [(b"", header(2) + value) for value in HOSTILE_VALUES[kind]])
    arguments = [str(tmp_path / "logs" / "t-0"), "--to", str(tmp_path / "out"), "--format", table_format]
    status = run(["export", *arguments, "--value", kind])
    error = capsys.readouterr().err
    assert status in {0, 1, 2} or (table_format == "iceberg" and status == 4)
    assert "Traceback" not in error
    assert error.count("\n") == (status > 1)
    assert time.monotonic() - began < SECONDS
