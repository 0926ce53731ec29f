"""The two decoders of entries, held against each other: the same values, and the same errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_format.codec import decode, framing
from seglog_format.codec.reference import decode as by_declaration
from seglog_format.codec.reference import framing as by_declaration_framing
from seglog_format.errors import FormatError, Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.model import Frame, Tail
    from seglog_format.record_model import RecordBatch

Outcome = tuple[list["RecordBatch"], "list[object]", "Tail | None"]


def told(error: FormatError) -> object:
    """All that an error says, in a form that can be compared."""
    return error.__reduce__()[1]


def answer(call: Callable[[], object]) -> object:
    """What a call gives, or all that its error says."""
    try:
        return call()
    except FormatError as error:
        return told(error)


def decode_batch(data: bytes, **options: Any) -> RecordBatch:  # noqa: ANN401 - passed on
    """Decode an entry by both decoders, which have to agree; give the batch, or raise the error."""
    found = answer(lambda: by_declaration.decode_batch(data, **options))
    assert found == answer(lambda: decode.decode_batch(data, **options)), data.hex()
    return decode.decode_batch(data, **options)


def entries(walk: Callable[..., framing.FrameWalk], decoded: Callable[..., RecordBatch], data: bytes) -> list[object]:
    """Every entry, or the error that refuses it, and what ends the walk."""
    found: list[object] = []
    frames = walk(data, path="file")
    try:
        found.extend((frame.header, _decoded(decoded, frame)) for frame in frames)
    except FormatError as error:
        return [*found, told(error)]
    return [*found, frames.tail]


def _decoded(decoded: Callable[..., RecordBatch], frame: Frame) -> object:
    return answer(lambda: decoded(frame, at=Location("file", frame.position)))


def assert_same_entries(data: bytes) -> list[object]:
    """Read a log by both decoders; return what both find."""
    plain = entries(framing.walk, decode.decode_frame, data)
    reference = entries(by_declaration_framing.walk, by_declaration.decode_frame, data)
    assert plain == reference, data.hex()
    return plain
