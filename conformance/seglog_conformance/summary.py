"""Summaries of answers too long to store: the number of records, and a digest of each of their fields."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.protocol import MAX_BYTES_ON_WIRE
from seglog_conformance.verdicts import Difference, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_conformance.features import Mask
    from seglog_conformance.protocol import Json

FIELDS: Final = ("offset", "timestamp", "key", "value")


def summary(batches: Iterable[Json]) -> Json:
    """Return counts, and the SHA-256 of each field of all records, one value per line."""
    digests = {name: hashlib.sha256() for name in FIELDS}
    batch_count = record_count = 0
    for batch in batches:
        records = batch.get("records") or []
        batch_count += 1
        record_count += len(records)
        for name, digest in digests.items():
            digest.update("".join(f"{_text(record.get(name))}\n" for record in records).encode())
    return {
        "batches": batch_count,
        "records": record_count,
        **{name: digest.hexdigest() for name, digest in digests.items()},
    }


def _text(value: Any) -> str:  # noqa: ANN401 - a string, a number, null or a digest
    if value is None:
        return "-"
    if isinstance(value, dict):
        return f"{value['bytes']}:{value['sha256']}"
    text = str(value)
    if len(text) > 2 * MAX_BYTES_ON_WIRE:
        return f"{len(text) // 2}:{hashlib.sha256(bytes.fromhex(text)).hexdigest()}"
    return text


def compare_summary(expect: Json, answer: Json, mask: Mask) -> Judgement:
    """Return the verdict on an answer with an expected summary; an answer with all records is summarized first."""
    wanted = expect["summary"]["surfaced" if mask.has_control else "hidden"]
    found = answer.get("summary") or summary(_given(answer, mask))
    if "reject" in expect:
        return _refusal(wanted, found, answer)
    if not answer["ok"]:
        reject = answer.get("reject", {})
        return Judgement(Verdict.REJECTS_VALID, str(reject.get("message") or reject.get("class") or "refused"))
    names = ("records", *(name for name in FIELDS if name in mask.record_fields(dict.fromkeys(FIELDS))))
    names = (*names, "batches") if mask.has_batches else names
    differences = tuple(Difference(name, wanted[name], found[name]) for name in names if wanted[name] != found[name])
    if not differences:
        return Judgement(Verdict.PASS, compared=tuple(f"summary.{name}" for name in names))
    is_short = found["records"] < wanted["records"]
    return Judgement(Verdict.SILENT if is_short else Verdict.DIFFER, str(differences[0]), differences, names)


def _given(answer: Json, mask: Mask) -> list[Json]:
    batches = answer.get("batches") or []
    return batches if mask.has_control else [batch for batch in batches if not batch.get("isControl")]


def _refusal(wanted: Json, found: Json, answer: Json) -> Judgement:
    """Return the verdict on an answer that must refuse after so many valid records."""
    extra = found["records"] - wanted["records"]
    if extra > 0:
        return Judgement(Verdict.ACCEPTS_INVALID, f"{extra} records were delivered from the damage on")
    if answer["ok"]:
        return Judgement(Verdict.SILENT, "there is no error, and nothing from the damage on")
    differences = tuple(Difference(name, wanted[name], found[name]) for name in FIELDS if wanted[name] != found[name])
    if differences and not extra:
        return Judgement(Verdict.DIFFER, str(differences[0]), differences)
    return Judgement(Verdict.PASS, compared=("ok", "summary.records"))
