"""Features of an implementation, which decide about the cases that apply and the fields that can be compared."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_conformance.protocol import Json

USUAL_RECORD_FIELDS: Final = ("offset", "timestamp", "key", "value", "headers")
"""Fields that every library reports; more are compared if ``recordFields`` lists them."""


DUTIES: Final = frozenset({"crc"})
"""Features that readers must have, whether or not they list them: cases are asked even without these."""

ASSUMED: Final = frozenset({"provesIndexes"})
"""Features assumed unless an implementation denies them. No MUST depends on these alone."""


def missing_feature(needs: Iterable[str], features: Json) -> str | None:
    """Return the first feature that a case needs and an implementation lacks.

    ``codec:gzip`` is present when ``codec`` is ``gzip``, a list that holds it, or true. A feature may exclude data that
    an implementation does not report, never a check that it does not make: all testees get the cases about checksums.
    """
    return next((need for need in needs if need not in DUTIES and not has_feature(need, features)), None)


def has_feature(need: str, features: Json) -> bool:
    """Return whether a feature is present."""
    name, colon, wanted = need.partition(":")
    value = features.get(name, name in ASSUMED)
    if not colon or value is True:
        return bool(value) and value != "none"
    if isinstance(value, list):
        return wanted in {str(item) for item in value}
    return isinstance(value, str | int) and str(value) == wanted


def accident(answer: Json, features: Json) -> str:
    """Return the error of a refusal that a library did not mean; empty if it did, or if nothing is known about that.

    Args:
        answer: the answer; its ``reject.error`` is the full name of the error's type.
        features: in ``errors``, the patterns of the library's own errors, and of others that it raises on purpose.
    """
    error = "" if answer["ok"] else str(answer["reject"].get("error") or "")
    declared = features.get("errors")
    if not error or not isinstance(declared, list) or any(fnmatchcase(error, str(pattern)) for pattern in declared):
        return ""
    return error


def reported(expect: Json, features: Json) -> Json:
    """Return an expected answer without data that an implementation does not report.

    These are file names, fields of entries, and the index entry at which a lookup began.
    """
    found = expect if features.get("names") else {name: value for name, value in expect.items() if name != "names"}
    if features.get("indexEntry") is False and isinstance(found.get("found"), dict):
        found = {**found, "found": {name: value for name, value in found["found"].items() if name != "entry"}}
    if not isinstance(features.get("appended"), list) or "entries" not in found:
        return found
    return {**found, "entries": [_reported_entry(entry, features) for entry in found["entries"]]}


def _reported_entry(entry: Json, features: Json) -> Json:
    """Return the reported fields of an entry and of its records."""
    found = {name: value for name, value in entry.items() if name in features["appended"]}
    mask = Mask(features)
    if "batches" in found:
        found["batches"] = [
            {**batch, "records": _reported_records(batch["records"], mask)} for batch in found["batches"]
        ]
    return found


def _reported_records(records: list[Json], mask: Mask) -> list[Json]:
    return [{name: one[name] for name in mask.record_fields(one) if name in one} for one in records]


class Mask:
    """The fields of batches and records that are compared for one implementation.

    Attributes:
        has_control: whether records of control batches are delivered.
        header_order: headers are compared in order (``ordered``), as a set (``unordered``), or not at all (``none``).
        has_tail: whether bytes after the last whole batch are reported.
    """

    def __init__(self, features: Json) -> None:
        self._meta = features.get("batchMeta", False)
        self._record_fields = frozenset(features.get("recordFields", USUAL_RECORD_FIELDS))
        self.has_control = features.get("control") == "surfaced"
        self.header_order = str(features.get("headers", "ordered"))
        self.has_tail = bool(features.get("partialTail", False))

    @property
    def has_batches(self) -> bool:
        """Return whether batches are reported separately; else only the sequence of records is compared."""
        return bool(self._meta)

    def batch_fields(self, expected: Json) -> list[str]:
        """Return the fields of an expected batch that can be compared."""
        if not self._meta:
            return []
        known = None if self._meta is True else frozenset(self._meta)
        return [name for name in expected if name != "records" and (known is None or name in known)]

    def record_fields(self, expected: Json) -> list[str]:
        """Return the fields of an expected record that can be compared; headers also if none are expected."""
        names = [name for name in expected if name in self._record_fields and name != "headers"]
        return [*names, "headers"] if self.header_order != "none" and "headers" in self._record_fields else names


EVERYTHING: Final[dict[str, Any]] = {
    "magic": [0, 1, 2],
    "codec": ["none", "gzip", "snappy", "lz4", "zstd"],
    "crc": True,
    "control": "surfaced",
    "headers": "ordered",
    "batchMeta": True,
    "recordFields": [
        "offset",
        "timestamp",
        "key",
        "value",
        "headers",
        "innerMagic",
        "crc",
        "isValid",
        "sequence",
        "control",
        "coordinatorEpoch",
        "decoded",
        "invalid",
        "attributes",
        "timestampDelta",
        "offsetDelta",
    ],
    "bytesKeys": True,
    "partialTail": True,
}
"""Features of an implementation that reports everything."""

_RECORDS: Final = tuple(f"*records[*].{name}" for name in ("crc", "isValid", "innerMagic", "sequence"))
_OF_BATCHES: Final = ("position", "sizeInBytes", "crc", "lastSequence")
_OF_PRODUCERS: Final = ("baseSequence", "partitionLeaderEpoch", "producerEpoch", "producerId")
UNTOLD_OF_MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "decode": ("consumed", *(f"batches[*].{name}" for name in (*_OF_BATCHES, *_OF_PRODUCERS)), *_RECORDS),
    "read": ("nextOffset", *_RECORDS),
    "lookup": ("found.entry", "found.position", "found.baseOffset", "found.timestamp"),
    "recover": ("names", "files.*.snapshot", "files.leader-epoch-checkpoint"),
}
"""Paths of answers that a model leaves open: values that only an encoder knows, and what the operation has besides."""
