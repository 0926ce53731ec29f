"""What the reader says of broker directories is what Kafka's own classes read from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import authentic, authentic_expected, authentic_names, bundled, bundled_expected
from helpers.walking import each_of

from proofs.kafka.agreement import compared, differences

if TYPE_CHECKING:
    from collections.abc import Callable


@each_of("name", authentic_names())
def test_every_line_agrees(name: str) -> None:
    assert differences(authentic(name), authentic_expected(name)) == []


def without_first_record(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = next(line for line in lines if line["type"] == "record")
    return [line for line in lines if line is not first]


def one_more_record(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*lines, lines[-1] | {"type": "record", "position": 0, "offset": 999}]


def another_checksum(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line | {"crc": 1} if line["type"] == "batch" and not line["position"] else line for line in lines]


@pytest.mark.parametrize("change", [without_first_record, one_more_record, another_checksum])
def test_a_difference_is_noticed(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    changed = change(bundled_expected("4.3.0/one"))
    assert len(differences(bundled("4.3.0/one"), changed)) == 1


@pytest.mark.parametrize(
    ("wanted", "found", "word"),
    [
        ({"crc": 1}, {}, "absent"),
        ({"crc": 1}, {"crc": 2}, "expected 1, found 2"),
        ({"invalid": "crc"}, {"isValid": True}, "not seen as damaged"),
        ({"headers": [["a", "Yg=="]]}, {"headers": [["YQ==", "Yw=="]]}, "headers"),
        ({"error": "bad"}, {"error": None}, "error"),
    ],
)
def test_a_field_that_differs_is_named(wanted: dict[str, Any], found: dict[str, Any], word: str) -> None:
    line = {"type": "record", "file": "0.log"}
    (difference,) = compared(line | wanted, line | found)
    assert word in difference
