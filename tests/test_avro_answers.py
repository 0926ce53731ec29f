"""Avro values are what Apache Avro's own library reads (`fixtures/make/avro_answers.py` asked it)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from helpers.support import FIXTURES
from helpers.walking import each_of

from seglog_format import value_decoder
from seglog_format.values.decoder import decoded
from seglog_format.values.schemas import Schemas, SchemaText

ANSWERS = json.loads((FIXTURES / "witnesses" / "avro_answers.json").read_text("utf-8"))
CASES = {case["name"]: case for case in ANSWERS["cases"]}


class OneSchema(Schemas):
    """A registry with one schema, which every id stands for."""

    def __init__(self, schema: Any) -> None:  # noqa: ANN401 - any JSON
        super().__init__()
        self._schema = SchemaText("AVRO", json.dumps(schema))

    def by_id(self, id_: int) -> SchemaText:  # noqa: ARG002 - as above
        return self._schema


def read(case: dict[str, Any]) -> tuple[pa.DataType, Any, str]:
    """Return the type of the column, the value in it, and why there is none."""
    decoder = value_decoder("avro", schema=json.dumps(case["reader"]), schemas=OneSchema(case["writer"]))
    value = bytes(5) + bytes.fromhex(case["bytes"])
    column, failures = decoded(decoder, pa.array([value], pa.binary()))
    return decoder.type, column[0].as_py(), failures[0].reason if failures else ""


def nanos(span: timedelta) -> str:
    return str(span // timedelta(microseconds=1) * 1000)


def as_column(answer: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return an answer of the library as `plain` returns a value: numbers, days and nanoseconds are texts."""
    if isinstance(answer, list):
        return [as_column(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    ((kind, value),) = answer.items()
    if kind == "record":
        return {name: as_column(each) for name, each in value.items()}
    if kind == "map":
        return [[key, as_column(each)] for key, each in value.items()]
    changes = {"float": float.fromhex, "decimal": Decimal, "bytes": bytes.fromhex}
    return changes[kind](value) if kind in changes else value


def plain(value: Any) -> Any:  # noqa: ANN401 - decoded objects
    """Return a value of a column with texts for numbers, days, and times in nanoseconds."""
    if isinstance(value, dict):
        members = [name for name in value if name.startswith("member")]
        if members:  # a union: one of its members has the value
            return next((plain(value[name]) for name in members if value[name] is not None), None)
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return _plain_leaf(value)


def _plain_leaf(value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, datetime):
        return nanos(value - datetime(1970, 1, 1, tzinfo=value.tzinfo and UTC))
    if isinstance(value, date):
        return str((value - date(1970, 1, 1)).days)
    if isinstance(value, time):
        return nanos(datetime.combine(date.min, value) - datetime.min)  # noqa: DTZ901 - no zone
    return str(value) if type(value) is int else value


NOT_IN_THE_COLUMN = {
    "decimal of more digits than its precision": "Decimal type with precision 6 does not fit",
}
"""What the library reads, and a column does not hold: the record is set aside."""


@each_of("name", CASES)
def test_value_is_what_the_library_reads(name: str) -> None:
    case = CASES[name]
    _, found, reason = read(case)
    if "error" in case:
        assert reason
    elif name in NOT_IN_THE_COLUMN:
        assert NOT_IN_THE_COLUMN[name] in reason
    else:
        assert not reason
        assert plain(found) == as_column(case["value"])


def test_union_keeps_the_branch_that_was_written() -> None:
    found = {name: read(CASES[f"union: branch of two {name}"])[1] for name in ("numbers", "records")}
    assert found == {
        "numbers": {"member0": None, "member1": 3},
        "records": {"member0": None, "member1": {"a": 3}},
    }


def test_times_count_in_the_unit_that_they_were_written_in() -> None:
    kinds = {name: {"type": "long", "logicalType": f"timestamp-{name}"} for name in ("millis", "micros")}
    case = {"writer": kinds["millis"], "reader": kinds["micros"], "bytes": "f6d1fee0f962"}
    assert plain(read(case)[1]) == "1699969225851000000"
    _, _, reason = read({**case, "reader": {"type": "long", "logicalType": "time-micros"}})
    assert "written as timestamp-millis, and the reader's schema has time-micros" in reason
