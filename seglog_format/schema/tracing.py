"""Traced copies of declarations: the same parse, with the span of every field and the position of an error.

Tracing is slow, so it is only done on demand: for ``seglog inspect``, error messages and documentation.
"""

from __future__ import annotations

import copy
import io
from dataclasses import dataclass, field
from functools import lru_cache
from threading import get_ident
from typing import Any

from construct import Array, Construct, ConstructError, Container, GreedyRange, Renamed, RepeatUntil, Subconstruct

from seglog_format.schema.fields import CONSTRUCT_ERRORS, Doc, SchemaError


@dataclass(frozen=True, slots=True)
class Span:
    """The range of bytes of one field.

    Attributes:
        name: dotted path within the structure, such as ``headers[1].key``.
        start: first byte, counted from the start of the structure.
        end: byte after the last one.
        value: as parsed; None if parsing stopped inside.
        doc: the field's documentation, with its requirement ids.
        depth: 0 for a field of the structure itself.
        failed: parsing stopped at or inside this field.
    """

    name: str
    start: int
    end: int
    value: object
    doc: Doc
    depth: int
    failed: bool = False


@dataclass(slots=True)
class Trace:
    """The result of a traced parse.

    Attributes:
        spans: fields in the order in which they start.
        value: the parsed container, or None when parsing stopped.
        error: why it stopped, or None.
    """

    spans: list[Span] = field(default_factory=list)
    value: Any = None
    error: ConstructError | SchemaError | None = None

    @property
    def failed(self) -> Span | None:
        """The innermost field at which parsing stopped."""
        stopped = [span for span in self.spans if span.failed]
        return stopped[-1] if stopped else None


class _Traced(Subconstruct):
    """Records the span of the named field that it wraps."""

    def __init__(self, subcon: Renamed, recorder: _Recorder) -> None:
        super().__init__(subcon)
        self.name = subcon.name
        self.docs = subcon.docs
        self.flagbuildnone = subcon.flagbuildnone
        self.recorder = recorder

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return self.recorder.record(
            self.name, self.docs, stream, lambda: self.subcon._parsereport(stream, context, path)
        )


class _Element(Subconstruct):
    """Numbers the elements of an array."""

    def __init__(self, subcon: Construct, recorder: _Recorder) -> None:
        super().__init__(subcon)
        self.recorder = recorder

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        index = context.get("_index")
        return self.recorder.inside(f"[{index}]", lambda: self.subcon._parsereport(stream, context, path))


class _Recorder:
    """Collects spans while a traced copy parses."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.path: list[str] = []

    def record(self, name: str, docs: object, stream: Any, parse: Any) -> Any:
        if not name:
            return parse()
        start, slot = stream.tell(), len(self.spans)
        dotted = ".".join([*self.path, name]).replace(".[", "[")
        doc = docs if isinstance(docs, Doc) else Doc(str(docs or ""))
        depth = sum(not part.startswith("[") for part in self.path)
        self.spans.append(Span(dotted, start, start, None, doc, depth, failed=True))
        value = self.inside(name, parse)
        self.spans[slot] = Span(dotted, start, stream.tell(), value, doc, depth)
        return value

    def inside(self, part: str, parse: Any) -> Any:
        self.path.append(part)
        try:
            return parse()
        finally:
            self.path.pop()


def _copy(node: Construct, recorder: _Recorder) -> Construct:
    """Copy the declaration, with every named field and every array element wrapped."""
    twin = copy.copy(node)
    for attribute in ("subcon", "thensubcon", "elsesubcon", "countsubcon", "lengthfield", "countfield", "length"):
        child = getattr(node, attribute, None)
        if isinstance(child, Construct):
            setattr(twin, attribute, _copy(child, recorder))
    if isinstance(getattr(node, "subcons", None), list):
        twin.subcons = [_copy(child, recorder) for child in node.subcons]
    if isinstance(getattr(node, "cases", None), dict):
        twin.cases = {key: _copy(child, recorder) for key, child in node.cases.items()}
        twin.default = _copy(node.default, recorder)
    if isinstance(node, Array | GreedyRange | RepeatUntil):
        twin.subcon = _Element(twin.subcon, recorder)
    if isinstance(node, Renamed) and node.name and node.docs:
        return _Traced(twin, recorder)
    return twin


@lru_cache(maxsize=256)
def _traced_copy(declaration: Construct, _thread: int) -> tuple[Construct, _Recorder]:
    """Return a traced copy for repeated use by one thread only, since it holds the spans of the current parse."""
    recorder = _Recorder()
    return _copy(declaration, recorder), recorder


def trace(declaration: Construct, data: bytes | memoryview) -> Trace:
    """Parse with a traced copy.

    Args:
        declaration: from a schema module.
        data: bytes that start with the structure; more may follow.

    Returns:
        Spans of all documented fields; with an error, up to and including the field at which it stopped.
    """
    twin, recorder = _traced_copy(declaration, get_ident())
    recorder.spans, recorder.path = [], []
    result = Trace(recorder.spans)
    try:
        result.value = twin._parsereport(io.BytesIO(data), _context(), "(parsing)")
    except CONSTRUCT_ERRORS as error:
        result.error = error
    return result


def _context() -> Any:
    context = Container()
    context._parsing, context._building, context._sizing = True, False, False
    context._params = context
    return context
