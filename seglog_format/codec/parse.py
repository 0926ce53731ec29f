"""Parsing by declaration; errors of construct become `FormatError` with location and requirement."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from seglog_format.errors import CorruptRecordError, FormatError, Location
from seglog_format.schema.fields import CONSTRUCT_ERRORS, SchemaError

if TYPE_CHECKING:
    from construct import Construct


def parse(
    declaration: Construct,
    data: bytes | memoryview,
    at: Location,
    *,
    requirement: str,
    error: type[FormatError] = CorruptRecordError,
) -> Any:  # noqa: ANN401 - construct's containers are untyped; they end in codec/
    """Parse one structure at the start of some bytes.

    Args:
        declaration: from a schema module.
        data: bytes that start with the structure; more may follow.
        at: location of the bytes.
        requirement: id for errors at fields without a requirement.
        error: class of the error to raise.

    Raises:
        FormatError: of that class, with position and name of the invalid field.
    """
    try:
        return declaration.parse_stream(io.BytesIO(data))
    except CONSTRUCT_ERRORS as problem:
        raise explain(declaration, data, at, problem, requirement=requirement, error=error) from None


def explain(
    declaration: Construct,
    data: bytes | memoryview,
    at: Location,
    problem: Exception,
    *,
    requirement: str,
    error: type[FormatError] = CorruptRecordError,
) -> FormatError:
    """Return the `FormatError` for a failed parse, after a second parse with a traced copy that finds the field."""
    from seglog_format.schema.tracing import trace  # noqa: PLC0415 - only needed for invalid bytes

    failed = trace(declaration, data).failed
    position, name, ids = (failed.start, failed.name, failed.doc.requirements) if failed else (0, "", ())
    field = ".".join(part for part in (at.field, name) if part)
    where = at.at(field, position, len(data) - position)
    if isinstance(problem, SchemaError):
        return error(where, problem.requirement, expected=problem.expected, found=problem.found)
    left = max(len(data) - position, 0)
    return error(where, *(ids[:1] or (requirement,)), expected="more bytes", found=f"the end after {left}")
