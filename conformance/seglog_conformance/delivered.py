"""The batches and records that an answer delivers, and those that a reader may deliver from damaged bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json


def sound_of(case: Case) -> list[Json]:
    """Return the batches of a log that a reader delivers if it skips damaged batches."""
    from seglog_conformance.reference import sound_batches  # noqa: PLC0415 - the reference is needed for this alone

    return sound_batches(case.request) if case.op == "decode" else []


def leading_of(case: Case) -> list[Json]:
    """Return the records before the damage, one by one."""
    from seglog_conformance.reference import leading_batches  # noqa: PLC0415 - the same

    return leading_batches(case.request) if case.op == "decode" else []


def records_in(batch: Json) -> list[Json]:
    """Return the records of a batch."""
    return list(batch.get("records") or [])


def batches_in(op: str, answer: Json) -> list[Json]:
    """Return the batches of an answer; the records of a read count as one."""
    if op == "read":
        return [{"records": answer.get("records") or []}]
    return list(answer.get("batches") or [])


def without_control(batches: list[Json]) -> list[Json]:
    """Return the batches that are not control batches."""
    return [batch for batch in batches if not batch.get("isControl")]


def header_order(pair: Any) -> tuple[str, str]:  # noqa: ANN401 - a pair of JSON values
    """Return the key by which headers are sorted if an implementation does not keep their order."""
    key, value = (*pair, None, None)[:2]
    return str(key), "" if value is None else f"={value}"
