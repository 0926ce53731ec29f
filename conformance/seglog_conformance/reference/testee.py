"""The reference as an object that answers requests."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from seglog_conformance.features import EVERYTHING
from seglog_conformance.protocol import LIVE, PROTOCOL_VERSION
from seglog_conformance.reference.appends import validate
from seglog_conformance.reference.decisions import decide
from seglog_conformance.reference.directories import lookup, read, recover, truncate, verify
from seglog_conformance.reference.live import OPTIONAL, LiveLog
from seglog_conformance.reference.logs import decode, encode, index
from seglog_conformance.reference.scenarios import compact, retain, write
from seglog_conformance.reference.small_files import parse
from seglog_format.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json

BY_ENGINE: Final[dict[str, Callable[[Json, Engine], Json]]] = {
    "decode": decode,
    "encode": encode,
    "index": index,
    "lookup": lookup,
    "recover": recover,
    "parse": parse,
    "read": read,
    "verify": verify,
}
"""Operations whose bytes the engine reads or writes."""
OTHERS: Final[dict[str, Callable[[Json], Json]]] = {
    "validate": validate,
    "truncate": truncate,
    "decide": decide,
    "write": write,
    "retain": retain,
    "compact": compact,
}
FEATURES: Final = {
    **EVERYTHING,
    "policy": ["read", "append", "replicate"],
    "appended": True,
    "config": True,
    "decoded": True,
    "topic": True,
    "names": True,
    "keepsInterval": True,
    "plan": True,
    "checkpoints": True,
    "trustIndexes": True,
    "decide": ["roll", "retain", "compact"],
    "powerCuts": True,
    "diskErrors": True,
    "together": True,
    "scheduled": True,
    "generations": True,
    "random": True,
    "duplicates": True,
    "producersFromLog": True,
    "cleanShutdown": True,
    "quorumState": True,
    "sizes": True,
    "logDirectory": True,
    "parse": True,
    "limit": True,
    "requirements": True,
    "specialTimestamps": True,
    "earliestLocal": True,
    "strictAppend": True,
    "strictEncode": ["order", "range"],
    "strictFrames": True,
    "verifiedRead": True,
    "logStartOffset": True,
    "readAll": True,
    "abortedLookup": True,
    "newestSnapshot": True,
    "logState": True,
    "leaderEpochs": True,
    "applicationRecords": True,
    "recordAttributes": True,
    "recovery": ["like-brokers", "by-the-text"],
    "live": OPTIONAL,
    "tiered": True,
}


class Reference:
    """Answers every request through `seglog_format`.

    Args:
        engine: ``reference`` or ``plain``.
    """

    def __init__(self, engine: Engine = Engine.REFERENCE) -> None:
        self._engine = engine
        self._live = LiveLog()

    def hello(self) -> Json:
        """Return the description of the reference."""
        implementation = {
            "name": "seglog-format" if self._engine is Engine.REFERENCE else f"seglog-format, {self._engine}",
            "version": version("seglog-format"),
            "language": "Python",
        }
        return {
            "ok": True,
            "protocol": PROTOCOL_VERSION,
            "implementation": implementation,
            "ops": [*BY_ENGINE, *OTHERS, LIVE],
            "features": FEATURES,
        }

    def answer(self, request: Json) -> Json:
        """Return the answer to one request."""
        if (by_engine := BY_ENGINE.get(request["op"])) is not None:
            return by_engine(request, self._engine)
        if request["op"] == LIVE:
            return self._live.answer(request)
        operation = OTHERS.get(request["op"])
        return {"skip": {"feature": f"op:{request['op']}"}} if operation is None else operation(request)
