"""A case as lines of plain text, which a test file in any language holds and reads without a parser of JSON.

Each line is a word and what belongs to it. Bytes are hex; ``00*7+0a`` is seven times ``00``, then ``0a``; ``-`` is
null, ``.`` is empty, and ``sha256:SIZE:HEX`` stands for a key or value of more than 4,096 bytes. A line ``b`` is a
batch, a line ``r`` a record: a word for each field of `batch_fields` or `record_fields`, ``?`` where the case does not
state it; at the end of a line, ``?`` is left out. Headers of a record follow it as lines ``h``, key and value.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.protocol import MAX_BYTES_ON_WIRE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json

OPS: Final = ("decode", "encode")
USUAL: Final = ("offset", "timestamp", "key", "value")
"""Fields that every record has, in the order of a line."""
LARGEST_MADE: Final = 2**15
"""Maximum bytes of a log that is made from a recipe and written all the same."""
NULL: Final = "-"
EMPTY: Final = "."
UNSTATED: Final = "?"
OPTIONS: Final = ("limit", "topic")
ENCODER_CHOOSES: Final = ("position", "sizeInBytes", "crc")
REPEATED: Final = re.compile(rb"(.{1,16}?|.{251})\1{11,}", re.DOTALL)
"""At least twelve equal parts: short ones, or the 251 bytes that long values of the suite are made of."""


class LeftOutError(Exception):
    """A test file cannot hold a case; the text is the reason."""


def batch_fields(cases: Iterable[Case]) -> list[str]:
    """Return the fields of all batches in some cases, in the order in which they come first."""
    return _names(batch for case in cases for batch in _batches(case) if case.op in OPS)


def record_fields(cases: Iterable[Case]) -> list[str]:
    """Return the fields of all records in some cases, the usual ones first."""
    found = _names(one for case in cases for batch in _batches(case) for one in batch.get("records") or ())
    return [*USUAL, *(name for name in found if name not in {*USUAL, "headers"})]


def _names(holders: Iterable[Json]) -> list[str]:
    return [name for name in dict.fromkeys(name for one in holders for name in one) if name != "records"]


def _batches(case: Case) -> Iterator[Json]:
    if case.is_summed_up:
        return
    for answer in _answers(case):
        yield from answer.get("batches") or ()
    yield from case.request.get("batches") or ()


def _answers(case: Case) -> Sequence[Json]:
    if case.result == "undefined":
        return ()
    return case.expect["allowed"] if case.result == "acceptable" else (case.expect,)


def lines_of(case: Case, batch_names: Sequence[str], record_names: Sequence[str]) -> list[str]:
    """Return the lines of a case.

    Args:
        case: a case of `decode` or `encode`.
        batch_names: fields of a line ``b``.
        record_names: fields of a line ``r``.

    Raises:
        LeftOutError: its log is made from a recipe, or it asks for something that has no line.
    """
    if case.is_summed_up or (case.is_made and case.input_size > LARGEST_MADE):
        msg = "their logs are too large: they are made from recipes, with `seglog conform run --scale`"
        raise LeftOutError(msg)
    if case.op == "encode" and "allowed" in case.stored_expect:
        msg = "an encoder may write them in several ways, which `seglog conform run` judges one by one"
        raise LeftOutError(msg)
    table = _Lines(batch_names, record_names)
    lines = [f"case {case.op} {case.id}", f"rules {' '.join(case.requirements)}"]
    lines += [f"needs {' '.join(case.needs)}"] if case.needs else []
    lines += [f"why {_plain(case.why)}", *_request(case, table)]
    for answer in _answers(case):
        lines += _answer(case, answer, table)
    return lines


def _request(case: Case, table: _Lines) -> Iterator[str]:
    options = {name: value for name, value in case.request.get("options", {}).items() if name != "crc"}
    if unknown := sorted({*case.request, *options} - {"data", "batches", "options", *OPTIONS}):
        msg = f"they ask for {', '.join(unknown)}"
        raise LeftOutError(msg)
    yield from (f"{name} {value}" for name, value in options.items())
    if case.op == "decode":
        yield f"data {packed(bytes.fromhex(case.request['data']))}"
    else:
        yield from table.batches(case.request["batches"], whole=True)


def _answer(case: Case, answer: Json, table: _Lines) -> Iterator[str]:
    if "reject" in answer:
        yield "answer refuse"
        yield from table.batches(_deliverable(case, answer, table))
    elif case.op == "encode" and "data" in answer:
        yield "answer bytes"
        yield f"data {packed(bytes.fromhex(answer['data']))}"
    else:
        yield "answer read"
        yield from table.batches([_without_chosen(case, batch) for batch in answer.get("batches") or ()])
        if "consumed" in answer:
            tail = answer.get("tail")
            yield f"end {answer['consumed']} {NULL if tail is None else tail['at']}"


def _without_chosen(case: Case, batch: Json) -> Json:
    """Return a batch without the fields that depend on an encoder's compressor."""
    chosen = ENCODER_CHOOSES if case.op == "encode" else ()
    records = [{name: value for name, value in one.items() if name not in chosen} for one in batch.get("records") or ()]
    return {name: value for name, value in batch.items() if name not in chosen} | {"records": records}


def _deliverable(case: Case, answer: Json, table: _Lines) -> list[Json]:
    """Return batches with all records that a reader may deliver before it refuses; those of the damaged batch last."""
    from seglog_conformance.reference import leading_batches  # noqa: PLC0415 - the reference is needed for this alone

    before: list[Json] = answer.get("batches") or []
    if case.op != "decode":
        return before
    leading = leading_batches(case.request)
    one, other = (list(table.records(batches)) for batches in (before, leading))
    return leading if other[: len(one)] == one else before


class _Lines:
    """The lines of batches and records."""

    def __init__(self, batch_names: Sequence[str], record_names: Sequence[str]) -> None:
        self.batch_names = batch_names
        self.record_names = record_names

    def batches(self, batches: Iterable[Json], *, whole: bool = False) -> Iterator[str]:
        """Yield the lines of batches; ``whole`` keeps long keys and values, for an encoder."""
        for batch in batches:
            yield " ".join(["b", *(_word(batch.get(name, UNSTATED)) for name in self.batch_names)])
            for record in batch.get("records") or ():
                yield from self._record(record, whole=whole)

    def records(self, batches: Iterable[Json]) -> Iterator[tuple[str, ...]]:
        """Yield what every reader delivers of the records of batches."""
        for batch in batches:
            for record in batch.get("records") or ():
                first, *headers = self._record(record, whole=False)
                yield (*first.split(" ")[: 1 + len(USUAL)], *headers)

    def _record(self, record: Json, *, whole: bool) -> Iterator[str]:
        usual = [_word(record["offset"]), _word(record["timestamp"])]
        usual += [_bytes(record.get(name), whole=whole) for name in ("key", "value")]
        others = (_word(record.get(name, UNSTATED)) for name in self.record_names[len(USUAL) :])
        yield " ".join(["r", *usual, *others]).rstrip(f" {UNSTATED}")
        for key, value in record.get("headers") or ():
            yield f"h {_bytes(key, whole=whole)} {_bytes(value, whole=whole)}"


def packed(data: bytes) -> str:
    """Return bytes as hex, with repeated parts written once."""
    pieces, at = [], 0
    for found in REPEATED.finditer(data):
        pieces += [data[at : found.start()].hex()] if found.start() > at else []
        pieces.append(f"{found[1].hex()}*{len(found[0]) // len(found[1])}")
        at = found.end()
    pieces += [data[at:].hex()] if at < len(data) else []
    return "+".join(pieces) or EMPTY


def _bytes(value: Any, *, whole: bool) -> str:  # noqa: ANN401 - a JSON value
    if value is None:
        return NULL
    if isinstance(value, dict):
        return f"sha256:{value['bytes']}:{value['sha256']}"
    size = len(value) // 2
    if size > MAX_BYTES_ON_WIRE and not whole:
        return f"sha256:{size}:{hashlib.sha256(bytes.fromhex(value)).hexdigest()}"
    return value or EMPTY


def _word(value: Any) -> str:  # noqa: ANN401 - a JSON value
    """Return a value as one word: numbers and names as they are, others as JSON without spaces."""
    if value is None:
        return NULL
    if isinstance(value, str) and value:
        return _plain(value).replace(" ", "\\u0020")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).replace(" ", "\\u0020")


def _plain(text: str) -> str:
    """Return text that is safe in the string literals of every language."""
    return text.encode("ascii", "backslashreplace").decode().replace("\\", "/").replace('"', "'").replace("`", "'")
