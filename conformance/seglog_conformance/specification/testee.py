"""The algorithms of the specification as an object that answers requests."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from seglog_algorithms.damage import Damage

from seglog_conformance.features import EVERYTHING
from seglog_conformance.protocol import PROTOCOL_VERSION
from seglog_conformance.specification import cleaning
from seglog_conformance.specification.answers import rejection
from seglog_conformance.specification.appends import validate
from seglog_conformance.specification.batches import decode
from seglog_conformance.specification.reading import index, lookup, read
from seglog_conformance.specification.recovering import recover, truncate
from seglog_conformance.specification.small_files import parse
from seglog_conformance.specification.writing import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json

OPERATIONS: Final[dict[str, Callable[[Json], Json]]] = {
    "compact": cleaning.compact,
    "decide": cleaning.decide,
    "decode": decode,
    "index": index,
    "lookup": lookup,
    "parse": parse,
    "read": read,
    "recover": recover,
    "retain": cleaning.retain,
    "truncate": truncate,
    "validate": validate,
    "write": write,
}
"""Operations that the algorithms do. One may raise `Damage`, which refuses the request."""
ABILITIES: Final = (
    "abortedLookup",
    "appended",
    "duplicates",
    "generations",
    "logDirectory",
    "random",
    "scheduled",
    "checkpoints",
    "config",
    "earliestLocal",
    "keepsInterval",
    "leaderEpochs",
    "limit",
    "logState",
    "logStartOffset",
    "names",
    "plan",
    "producersFromLog",
    "readAll",
    "requirements",
    "specialTimestamps",
    "strictAppend",
    "strictFrames",
    "tiered",
    "topic",
    "trustIndexes",
    "verifiedRead",
)
"""Features that are only present or absent."""
FEATURES: Final = {
    **EVERYTHING,
    **dict.fromkeys(ABILITIES, True),
    "decide": ["roll", "retain", "compact"],
    "policy": ["read", "append", "replicate"],
    "recordFields": ["offset", "timestamp", "key", "value", "headers", "attributes"],
    "recovery": ["like-brokers", "by-the-text"],
}


class Specification:
    """Answers every request through `seglog_algorithms`."""

    def hello(self) -> Json:
        """Return the description of the algorithms."""
        implementation = {"name": "the specification", "version": version("seglog-format"), "language": "Python"}
        return {
            "ok": True,
            "protocol": PROTOCOL_VERSION,
            "implementation": implementation,
            "ops": [*OPERATIONS],
            "features": FEATURES,
        }

    def answer(self, request: Json) -> Json:
        """Return the answer to one request."""
        operation = OPERATIONS.get(request["op"])
        if operation is None:
            return {"skip": {"feature": f"op:{request['op']}"}}
        try:
            return operation(request)
        except Damage as damage:
            return rejection(damage)
