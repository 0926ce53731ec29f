"""The adapter protocol, version 1: JSON lines, one answer for each request.

`schemas/protocol.json` describes every line. This module holds the names, the schema validators, and the parser of
lines from an adapter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Json: TypeAlias = dict[str, Any]

PROTOCOL_VERSION: Final = 1
OPS: Final = (
    "decode",
    "encode",
    "validate",
    "index",
    "lookup",
    "recover",
    "truncate",
    "parse",
    "read",
    "verify",
    "decide",
    "write",
    "retain",
    "compact",
    "position",
)
LIVE: Final = "live"
"""The operation that no case asks for: steps on a log in a directory that stays open, for power cuts."""
ENVELOPE: Final = (
    "seq",
    "ok",
    "notes",
    "reject.class",
    "reject.at",
    "reject.message",
    "reject.error",
    "reject.requirement",
)
"""Paths that an answer to any operation may have."""
MAX_BYTES_ON_WIRE: Final = 4096
"""Size from which keys and values may be sent as a digest."""


class ProtocolError(Exception):
    """A line from an adapter violates the protocol."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """The implementation under test.

    Attributes:
        name: its name.
        version: its version.
        language: the language that it is written in.
        homepage: its homepage.
        issues: address for reports of its defects.
        implements: Kafka release whose format and behaviour it implements; empty for the newest.
    """

    name: str
    version: str
    language: str
    homepage: str = ""
    issues: str = ""
    implements: str = ""


@dataclass(frozen=True, slots=True)
class Hello:
    """The greeting of an adapter.

    Attributes:
        implementation: implementation that it drives.
        ops: supported operations.
        features: features of the implementation; see `features`.
    """

    implementation: Implementation
    ops: tuple[str, ...]
    features: Json = field(default_factory=dict)


def hello_of(answer: Json) -> Hello:
    """Return the greeting in an answer to ``hello``.

    Raises:
        ProtocolError: the answer is no valid greeting.
    """
    found = answer.get("implementation")
    if answer.get("ok") is not True or not isinstance(found, dict):
        msg = f"the answer to hello has no ok and implementation: {shortened(answer)}"
        raise ProtocolError(msg)
    if answer.get("protocol") != PROTOCOL_VERSION:
        msg = f"the adapter speaks protocol {answer.get('protocol')!r}, this runner {PROTOCOL_VERSION}"
        raise ProtocolError(msg)
    names = ("name", "version", "language", "homepage", "issues", "implements")
    ops, features = answer.get("ops", []), answer.get("features", {})
    if not isinstance(ops, list) or not isinstance(features, dict):
        msg = "ops is a list and features an object"
        raise ProtocolError(msg)
    return Hello(
        Implementation(*(str(found.get(name, "")) for name in names)), tuple(str(name) for name in ops), features
    )


def read_answer(line: bytes, seq: int) -> Json:
    """Parse one line of an adapter.

    Raises:
        ProtocolError: the line is no answer, or belongs to another request.
    """
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        msg = f"standard output holds a line that is not JSON: {shortened(line)}"
        raise ProtocolError(msg) from None
    if not isinstance(answer, dict):
        msg = f"standard output holds a line that is no object: {shortened(line)}"
        raise ProtocolError(msg)
    if answer.get("seq") != seq:
        msg = f"the answer to request {seq} has seq {answer.get('seq')!r}"
        raise ProtocolError(msg)
    check_form(answer)
    return answer


def check_form(answer: Json) -> None:
    """Check that an answer is of one of the four kinds.

    Raises:
        ProtocolError: the answer has no result, reject, skip or error.
    """
    if isinstance(answer.get("skip"), dict) or isinstance(answer.get("error"), dict):
        return
    if answer.get("ok") is True or (answer.get("ok") is False and isinstance(answer.get("reject"), dict)):
        return
    msg = f"an answer has ok: true, or ok: false with reject, or skip, or error: {shortened(answer)}"
    raise ProtocolError(msg)


def shortened(value: object, limit: int = 200) -> str:
    """Return a value as text for a message."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def request_line(request: Json) -> bytes:
    """Return the line of a request."""
    return json.dumps(request, separators=(",", ":")).encode() + b"\n"


@cache
def _schema(name: str) -> Json:
    text = resources.files(__package__).joinpath("schemas", f"{name}.json").read_text(encoding="utf-8")
    schema: Json = json.loads(text)
    return schema


@cache
def validator(name: str, definition: str = "") -> Validator:
    """Return a validator of one of the schemas, or of one definition in it.

    Args:
        name: name of the schema: ``protocol``, ``case-file``, ``adapter`` or ``known-failures``.
        definition: name of a definition in it, such as ``answer-decode``; the whole schema by default.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - costs 100 ms, and most runs need none

    schema = _schema(name)
    if definition:
        schema = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}
    return Draft202012Validator(schema)


@cache
def untold_in(op: str) -> tuple[str, ...]:
    """Return the patterns of the paths that an answer to an operation may always have; a case may expect them.

    They stand in the schema of the answer, under ``untold``.
    """
    definitions = _schema("protocol")["$defs"]
    return (*ENVELOPE, *definitions.get(f"answer-{op}", {}).get("untold", ()))


@cache
def field_names(definition: str) -> frozenset[str]:
    """Return the names that the schema of an object has, such as those of a ``batch``."""
    return frozenset(_schema("protocol")["$defs"][definition]["properties"])


def schema_errors(value: object, name: str, definition: str = "") -> list[str]:
    """Return the violations of a schema by a value, in short form; empty if there are none."""
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - as above

    errors = sorted(validator(name, definition).iter_errors(value), key=lambda error: list(map(str, error.path)))
    return [_reported(best_match([_of_branch(error)]) or error) for error in errors]


def _of_branch(error: Any) -> Any:  # noqa: ANN401 - a ValidationError
    """Return the errors of the best matching of several forms, instead of one about the whole value.

    A form matches if all its constants fit; among those, the one with the fewest errors is taken.
    """
    if error.validator != "oneOf" or not error.context:
        return error
    forms: dict[Any, list[Any]] = {}
    for one in error.context:
        forms.setdefault(one.schema_path[0], []).append(one)

    nearest = min(forms.values(), key=lambda found: (any(one.validator == "const" for one in found), len(found)))
    return _of_branch(max(nearest, key=lambda one: len(one.absolute_path)))


def _reported(error: Any) -> str:  # noqa: ANN401 - a ValidationError
    field_path = "/".join(str(part) for part in error.absolute_path)
    return f"{field_path or 'the answer'}: {_rule_broken(error)}"


def _rule_broken(error: Any) -> str:  # noqa: ANN401 - a ValidationError
    """Return the violated rule of a schema, with names instead of the whole answer where possible."""
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        unknown = sorted(set(error.instance) - set(error.schema.get("properties", ())))
        return f"it has no fields {', '.join(unknown)}" if unknown else shortened(error.message)
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"{', '.join(missing)} is missing"
    return shortened(error.message)


def check_strictly(value: Json, definition: str) -> None:
    """Validate a line against its schema.

    Raises:
        ProtocolError: the line does not fit.
    """
    errors = schema_errors(value, "protocol", definition)
    if errors:
        msg = f"not as schema {definition} says: {'; '.join(errors[:3])}"
        raise ProtocolError(msg)
