"""What a wrong answer shows by itself: bytes that were read as text, a time that was ignored, a field that is wrong.

Such a failure has its cause there, whatever family its case is of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json
    from seglog_conformance.verdicts import Result

TEXT: Final = "text"
"""Name of the cause that bytes are read as text; no rule numbers it."""
LAYOUTS: Final = frozenset({"SEG-BAT-001", "SEG-LOG-011", "SEG-MSG-001", "SEG-MSG-002"})
"""Rules about whole batches and messages: the field that is wrong says more than they do."""
FIELDS: Final[Mapping[str, str]] = {
    "magic": "SEG-BAT-004",
    "timestampType": "SEG-BAT-011",
    "baseTimestamp": "SEG-BAT-012",
    "timestamp": "SEG-BAT-012",
    "maxTimestamp": "SEG-BAT-015",
    "deleteHorizonMs": "SEG-BAT-013",
    "lastOffset": "SEG-BAT-016",
    "nextOffset": "SEG-BAT-016",
    "lastSequence": "SEG-BAT-017",
    "producerEpoch": "SEG-BAT-020",
    "offset": "SEG-REC-012",
    "headers": "SEG-REC-010",
}
"""The rule of each field of a batch and its records."""
WITHOUT_TIME: Final = "SEG-MSG-008"
REPEATED: Final = "SEG-REC-010"
OF_MESSAGES: Final = "SEG-MSG-002"
READING: Final = frozenset({"decode", "read"})
"""Operations whose answers hold records."""


def shown_cause(result: Result, case: Case) -> str:
    """Return the cause that a wrong answer shows by itself: `TEXT` or a rule; empty where it shows none."""
    if result.raw is not Verdict.DIFFER or case.is_summed_up:
        return ""
    is_layout = case.requirements[0] in LAYOUTS
    if case.op == "encode":
        return _of_field(result.differences[0]) if is_layout and result.differences else ""
    if case.op not in READING or result.answer is None:
        return ""
    shown = [
        name
        for batch, expected, given in _records(case, result.answer)
        for name in _shown(batch, expected, given, is_layout=is_layout)
    ]
    return shown[0] if shown and all(shown) else ""


def _of_field(difference: str) -> str:
    """Return the rule of the field that a difference of an encoded batch is about."""
    name = difference.partition(":")[0].rpartition(".")[2].partition("[")[0]
    return FIELDS.get(name, "")


def _records(case: Case, answer: Json) -> Iterator[tuple[Json, Json, Json]]:
    """Yield each expected record with its batch, and the record given for it; nothing if their numbers differ."""
    expected = [(batch, record) for batch in _batches(case) for record in batch.get("records") or []]
    given_batches = answer.get("batches") or [{"records": answer.get("records") or []}]
    given = [record for batch in given_batches for record in batch.get("records") or []]
    data = [(batch, record) for batch, record in expected if not batch.get("isControl")]
    wanted = expected if len(expected) == len(given) else data
    if len(wanted) == len(given) or case.result == "invalid":
        yield from ((batch, record, other) for (batch, record), other in zip(wanted, given, strict=False))


def _batches(case: Case) -> list[Json]:
    expect = case.expect
    expect = expect["allowed"][0] if "allowed" in expect else expect
    return list(expect.get("batches") or [{"records": expect.get("records") or []}])


def possible_causes(case: Case) -> Iterator[str]:
    """Yield the rules that a wrong record of a case can show besides the case's own."""
    if case.op in READING and not case.is_summed_up:
        for batch in _batches(case):
            records = batch.get("records") or []
            if records and batch.get("timestampType") == "LogAppendTime":
                yield _by_magic(batch, "SEG-BAT-011", "SEG-MSG-015")
            elif records and batch.get("magic") == 0:
                yield WITHOUT_TIME
            if any(_has_repeated_header(record) for record in records):
                yield REPEATED
            if any(_has_nothing(record.get(name)) for record in records for name in ("key", "value")):
                yield _by_magic(batch, "SEG-REC-007", "SEG-MSG-007")


def _by_magic(batch: Json, rule: str, legacy: str) -> str:
    return legacy if batch.get("magic") in {0, 1} else rule


def _has_repeated_header(record: Json) -> bool:
    keys = [str(key) for key, _ in record.get("headers") or []]  # a long key is its size and digest
    return len(set(keys)) < len(keys)


def _has_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value)


def _shown(batch: Json, expected: Json, given: Json, *, is_layout: bool) -> Iterator[str]:
    """Yield what each difference of a record shows: a cause, or an empty text for none."""
    for name in ("offset", "timestamp", "key", "value", "headers"):
        one, other = expected.get(name), given.get(name)
        if name not in given or _text(one) == _text(other) or (name == "headers" and not one and not other):
            continue
        yield _known_cause(batch, name, one, other) or (_layout_cause(batch, name) if is_layout else "")


def _known_cause(batch: Json, name: str, one: Any, other: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the cause that two values of a field show in a case of any rule; empty where they show none."""
    if name == "timestamp":
        if batch.get("timestampType") == "LogAppendTime":
            return _by_magic(batch, "SEG-BAT-011", "SEG-MSG-015")
        return WITHOUT_TIME if batch.get("magic") == 0 else ""
    if name == "headers" and _has_repeated_header({"headers": one}) and not _has_repeated_header({"headers": other}):
        return REPEATED
    if name in {"key", "value"} and _has_nothing(one) and _has_nothing(other):
        return _by_magic(batch, "SEG-REC-007", "SEG-MSG-007")
    return TEXT if name != "offset" and _is_as_text(one, other) else ""


def _layout_cause(batch: Json, name: str) -> str:
    """Return the rule of a field, for a case that is about a whole batch or message."""
    if name == "offset":
        return {0: "SEG-MSG-011", 1: "SEG-MSG-012"}.get(batch.get("magic", 2), "SEG-REC-012")
    if batch.get("magic") in {0, 1}:
        return OF_MESSAGES if name == "timestamp" else ""
    return FIELDS.get(name, "")


def _text(value: Any) -> object:  # noqa: ANN401 - any JSON value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_as_text(expected: Any, found: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether bytes became what is left of them when they are read as UTF-8."""
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip(expected, found, strict=False)
        return len(expected) == len(found) and all(one == other or _is_as_text(one, other) for one, other in pairs)
    if not isinstance(expected, str) or not isinstance(found, str):
        return False
    try:
        data, other = bytes.fromhex(expected), bytes.fromhex(found)
    except ValueError:
        return False
    return other in {data.decode("utf-8", handling).encode() for handling in ("replace", "ignore")} - {data}
