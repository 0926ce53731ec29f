"""The bytes of a case with their fields, as the schemas trace them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.decode import decode_frame
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location, RefusedError
from seglog_format.inspection.entries import entry_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json
    from seglog_format.inspection.entries import Field

MAX_BYTES: Final = 4096
MAX_ANNOTATED: Final = 1 << 15
MAX_FIELDS: Final = 400
MAX_DECOMPRESSED: Final = 1 << 16
MAX_FILES: Final = 6
MAX_TEXT: Final = 40


class Words:
    """Table of distinct words, each stored once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        """Return the number of a word."""
        return self._numbers.setdefault(word, len(self._numbers))

    @property
    def table(self) -> list[str]:
        """Return all words, by number."""
        return list(self._numbers)


def annotated(case: Case, words: Words) -> list[Json]:
    """Return every run of bytes in a request, with the fields of those that are logs.

    Args:
        case: case with the request.
        words: table for names and documentation.
    """
    return [block for title, data in _inputs(case.request) for block in _blocks(title, data, words)]


def _inputs(request: Json) -> Iterator[tuple[str, bytes]]:
    if request.get("data"):
        yield "data", bytes.fromhex(request["data"])
    for name, data in list(request.get("files", {}).items())[:MAX_FILES]:
        yield name, bytes.fromhex(data)


def _blocks(title: str, data: bytes, words: Words) -> Iterator[Json]:
    if not data:
        return
    is_log = title == "data" or title.endswith(".log")
    if not is_log or len(data) > MAX_ANNOTATED or _is_bomb(data):
        yield _block(title, data, (), (), words)
        return
    blocks, _ = entry_blocks(memoryview(data), name=title, start=0, count=None)
    for number, block in enumerate(blocks):
        name = title if number == 0 else f"{title}: {block.title}"
        yield _block(name, bytes(block.data), block.fields, block.problems, words)


def _is_bomb(data: bytes) -> bool:
    """Return whether a batch in the bytes decompresses to more than a page should hold."""
    try:
        for frame in walk(data):
            try:
                decode_frame(frame, at=Location(), limit=MAX_DECOMPRESSED)
            except RefusedError:
                return True
            except FormatError:
                continue
    except FormatError:
        return False
    return False


def _block(title: str, data: bytes, fields: Any, problems: Any, words: Words) -> Json:  # noqa: ANN401 - sequences
    shown = data[:MAX_BYTES]
    return {
        "title": title,
        "size": len(data),
        "hex": shown.hex(),
        "problems": list(problems),
        "fields": [_field(field, words) for field in fields[:MAX_FIELDS] if field.start < len(shown)],
    }


def _field(field: Field, words: Words) -> list[Any]:
    """Return name, start, size, depth, documentation, state (1 group, 2 wrong), value and note of a field."""
    doc = f"{field.doc} [{', '.join(field.requirements)}]" if field.requirements else field.doc
    state = int(field.is_group) + 2 * field.failed
    size = field.end - field.start
    return [
        words.number(field.name),
        field.start,
        size,
        field.depth,
        words.number(doc),
        state,
        _value(field),
        field.note,
    ]


def _value(field: Field) -> str:
    value = field.value
    if isinstance(value, bytes | bytearray | memoryview):
        text = bytes(value).hex()
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
    return "null" if value is None else str(value)
