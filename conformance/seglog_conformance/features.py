"""What an implementation can do and tell: which cases make sense for it, and which fields can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_conformance.protocol import Json

USUAL_RECORD_FIELDS: Final = ("offset", "timestamp", "key", "value", "headers")
"""What every library tells; more is compared where ``recordFields`` says so."""


DUTIES: Final = frozenset({"crc"})
"""What a reader has to do whether or not it says so: to leave it out is no reason for leaving cases out."""

ASSUMED: Final = frozenset({"provesIndexes"})
"""What an implementation does unless it says that it does not. No rule that must be kept rests on these alone."""


def missing_feature(needs: Iterable[str], features: Json) -> str | None:
    """Return the first feature that a case needs and an implementation does not have.

    ``codec:gzip`` is there when ``codec`` is ``gzip``, a list that holds it, or true. A feature may leave out what an
    implementation does not tell, never a check that it does not make: cases about checksums are asked of everyone.
    """
    return next((need for need in needs if need not in DUTIES and not has_feature(need, features)), None)


def has_feature(need: str, features: Json) -> bool:
    """Tell whether one feature is there."""
    name, colon, wanted = need.partition(":")
    value = features.get(name, name in ASSUMED)
    if not colon or value is True:
        return bool(value) and value != "none"
    if isinstance(value, list):
        return wanted in {str(item) for item in value}
    return isinstance(value, str | int) and str(value) == wanted


def reported(expect: Json, features: Json) -> Json:
    """Return an expected answer without what an implementation does not tell: names of files, fields of entries."""
    found = expect if features.get("names") else {name: value for name, value in expect.items() if name != "names"}
    if not isinstance(features.get("appended"), list) or "entries" not in found:
        return found
    return {**found, "entries": [_reported_entry(entry, features) for entry in found["entries"]]}


def _reported_entry(entry: Json, features: Json) -> Json:
    """Return the fields of an entry that are reported, and of its records those that are."""
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
    """Which fields of batches and records are compared for one implementation.

    Attributes:
        has_control: records of control batches are handed out.
        header_order: headers are compared in order (``ordered``), as a set (``unordered``), or not at all (``none``).
        has_tail: what follows the last whole batch is told.
    """

    def __init__(self, features: Json) -> None:
        self._meta = features.get("batchMeta", False)
        self._record_fields = frozenset(features.get("recordFields", USUAL_RECORD_FIELDS))
        self.has_control = features.get("control") == "surfaced"
        self.header_order = str(features.get("headers", "ordered"))
        self.has_tail = bool(features.get("partialTail", False))

    @property
    def has_batches(self) -> bool:
        """Batches are told apart; else only the run of records is compared."""
        return bool(self._meta)

    def batch_fields(self, expected: Json) -> list[str]:
        """Return the fields of an expected batch that can be compared."""
        if not self._meta:
            return []
        known = None if self._meta is True else frozenset(self._meta)
        return [name for name in expected if name != "records" and (known is None or name in known)]

    def record_fields(self, expected: Json) -> list[str]:
        """Return the fields of an expected record that can be compared; headers also where none are expected."""
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
"""Features of an implementation that tells all there is."""
