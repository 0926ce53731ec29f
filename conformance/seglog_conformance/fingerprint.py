"""A fingerprint of an answer that is wrong: what a list of known failures holds beside the verdict.

A case that fails as listed and in another way than before is a new failure. So whatever the suite could compare is in
the fingerprint: records and batches with their fields and order, whether there was an error, and of consumers that
stand still or leave out what they asked for. Texts of errors are not, nor what a compressor decides.
"""

from __future__ import annotations

import hashlib
import json
import time
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

SIZE: Final = 12
"""Hexadecimal digits that are kept."""
LEFT_OUT: Final = frozenset({"seq", "reject", "positions", "after", "skip", "error"})
FOLLOWS: Final = frozenset({"crc"})
"""What follows from the rest of a batch, and from a clock where one is in it."""
DAY_MS: Final = 86_400_000
"""A time so near to now was taken from a clock: no case asks for one."""
NOW: Final = "now"
WITH_POSITIONS: Final = frozenset({Verdict.STALL, Verdict.JUMP})


def fingerprint(answer: Json | None, verdict: Verdict, op: str, features: Json) -> str:
    """Return the fingerprint of an answer; empty where none came.

    Args:
        answer: as it came.
        verdict: on it.
        op: that was asked.
        features: of the implementation: headers that it keeps in no order count without their order.
    """
    if answer is None:
        return ""
    if op == "encode" and answer.get("ok"):
        answer = _decoded(answer)
    kept = {name: value for name, value in answer.items() if name not in LEFT_OUT}
    if positions := _positions(answer, verdict):
        kept["positions"] = positions
    if verdict is Verdict.JUMP and "after" in answer:
        kept["after"] = [record["offset"] for record in answer["after"]["records"]]
    if features.get("headers") == "unordered":
        kept = _sorted_headers(kept)
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:SIZE]


def _positions(answer: Json, verdict: Verdict) -> list[str]:
    """Return what a client asked for, each once in a row: where it went wrong there all, else where it came to.

    What it asks for after an error depends on how busy it is.
    """
    asked = [offset for offset, _ in groupby(map(str, answer.get("positions") or ()))]
    if not answer.get("ok"):
        return []
    return asked if verdict in WITH_POSITIONS else asked[-1:]


def _decoded(answer: Json) -> Json:
    """Return what was encoded as the reference reads it, without sizes and sums that a compressor decides."""
    from seglog_conformance.compare import UNSTABLE  # noqa: PLC0415 - the reference is needed for encoders alone
    from seglog_conformance.reference import decode  # noqa: PLC0415 - the same

    try:
        found = decode({"data": str(answer.get("data", ""))})
    except ValueError:
        return answer
    is_compressed = any(batch.get("codec") != "none" for batch in found.get("batches", ()))
    left_out = UNSTABLE if is_compressed else FOLLOWS
    batches = [{name: batch[name] for name in batch if name not in left_out} for batch in found.get("batches", ())]
    return {"ok": found["ok"], "batches": _without_clock(batches, time.time_ns() // 1_000_000)}


def _without_clock(value: Any, now_ms: int) -> Any:  # noqa: ANN401 - any JSON value
    """Return what an encoder wrote, with the same text for every time from its clock, and no sum over such a time."""
    if isinstance(value, list):
        return [_without_clock(item, now_ms) for item in value]
    if isinstance(value, dict):
        found = {name: _without_clock(item, now_ms) for name, item in value.items()}
        return {name: found[name] for name in found if name not in FOLLOWS or NOW not in found.values()}
    is_now = isinstance(value, str) and value.isdecimal() and abs(int(value) - now_ms) < DAY_MS
    return NOW if is_now else value


def _sorted_headers(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        return [_sorted_headers(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: sorted(item, key=str) if name == "headers" and isinstance(item, list) else _sorted_headers(item)
        for name, item in value.items()
    }
