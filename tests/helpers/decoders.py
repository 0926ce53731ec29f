"""The two decoders of entries, held against each other (the same values and errors)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_format.codec import decode, framing
from seglog_format.codec.reference import declared
from seglog_format.errors import FormatError, Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.model import Frame, RecordBatch, Tail
    from seglog_format.storage.byte_source import Readable

Outcome = tuple[list["RecordBatch"], "list[object]", "Tail | None"]


def reported(error: FormatError) -> object:
    """All that an error says, in a form that can be compared."""
    return error.__reduce__()[1]


def answer(call: Callable[[], object]) -> object:
    """Return what a call gives, or all that its error says."""
    try:
        return call()
    except FormatError as error:
        return reported(error)


def decode_by_declaration(data: bytes, at: Location | None = None, **options: Any) -> RecordBatch:  # noqa: ANN401 - passed on
    """Decode an entry by the declarations."""
    return decode.decode_first(declared(data), at or Location(), **options)


def decode_batch(data: bytes, **options: Any) -> RecordBatch:  # noqa: ANN401 - passed on
    """Decode an entry by both decoders, which have to agree; give the batch, or raise the error."""
    found = answer(lambda: decode_by_declaration(data, **options))
    assert found == answer(lambda: decode.decode_batch(data, **options)), data.hex()
    return decode.decode_batch(data, **options)


def entries(data: Readable) -> list[object]:
    """Every entry, or the error that refuses it, and what ends the walk."""
    found: list[object] = []
    frames = framing.walk(data, path="file")
    try:
        found.extend((frame.header, _decoded(frame)) for frame in frames)
    except FormatError as error:
        return [*found, reported(error)]
    return [*found, frames.tail]


def _decoded(frame: Frame) -> object:
    return answer(lambda: decode.decode_frame(frame, at=Location("file", frame.position)))


def assert_same_entries(data: bytes) -> list[object]:
    """Read a log by both decoders; return what both find."""
    plain, reference = entries(data), entries(declared(data))
    assert plain == reference, data.hex()
    return plain
