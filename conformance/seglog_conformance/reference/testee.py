"""The reference as something that answers requests."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from seglog_conformance.features import EVERYTHING
from seglog_conformance.protocol import PROTOCOL_VERSION
from seglog_conformance.reference.appends import validate
from seglog_conformance.reference.decisions import decide
from seglog_conformance.reference.directories import lookup, read, recover, truncate, verify
from seglog_conformance.reference.lives import compact, retain, write
from seglog_conformance.reference.logs import decode, encode, index
from seglog_conformance.reference.small_files import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json

OPERATIONS: Final[dict[str, Callable[[Json], Json]]] = {
    "decode": decode,
    "encode": encode,
    "validate": validate,
    "index": index,
    "lookup": lookup,
    "recover": recover,
    "truncate": truncate,
    "parse": parse,
    "read": read,
    "verify": verify,
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
}


class Reference:
    """Answers every request through `seglog_format`."""

    def hello(self) -> Json:
        """What the reference says of itself."""
        implementation = {
            "name": "seglog-format",
            "version": version("seglog-format"),
            "language": "Python",
        }
        return {
            "ok": True,
            "protocol": PROTOCOL_VERSION,
            "implementation": implementation,
            "ops": list(OPERATIONS),
            "features": FEATURES,
        }

    def answer(self, request: Json) -> Json:
        """The answer to one request."""
        operation = OPERATIONS.get(request["op"])
        return {"skip": {"feature": f"op:{request['op']}"}} if operation is None else operation(request)
