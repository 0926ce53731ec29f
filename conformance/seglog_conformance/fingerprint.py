"""A fingerprint of a wrong answer, which a list of known failures holds besides the verdict.

A listed case that fails in another way is a new failure. The fingerprint therefore covers everything that the suite can
compare: records and batches with their fields and order, whether there was an error, and for consumers that stall or
jump the requested offsets. It covers neither texts of errors nor fields that depend on a compressor.
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
"""Number of hexadecimal digits."""
LEFT_OUT: Final = frozenset({"seq", "reject", "positions", "after", "skip", "error"})
FOLLOWS: Final = frozenset({"crc"})
"""Fields that depend on the rest of a batch, including times from a clock."""
DAY_MS: Final = 86_400_000
"""Largest distance from now at which a time counts as taken from a clock: no case has such times."""
NOW: Final = "now"
WITH_POSITIONS: Final = frozenset({Verdict.STALL, Verdict.JUMP})


def fingerprint(answer: Json | None, verdict: Verdict, op: str, features: Json) -> str:
    """Return the fingerprint of an answer; empty if there is none.

    Args:
        answer: the answer as received.
        verdict: verdict on the answer.
        op: operation of the request.
        features: features of the implementation: if it does not keep the order of headers, order is ignored.
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
    """Return the distinct requested offsets: all of them for a stall or jump, else the last one.

    The requests after an error depend on the load of the client.
    """
    asked = [offset for offset, _ in groupby(map(str, answer.get("positions") or ()))]
    if not answer.get("ok"):
        return []
    return asked if verdict in WITH_POSITIONS else asked[-1:]


def _decoded(answer: Json) -> Json:
    """Return the encoded batches as the reference reads them, without fields that depend on a compressor."""
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
    """Return a value with the same text for every time from the encoder's clock, and without sums over such times."""
    if isinstance(value, list):
        return [_without_clock(item, now_ms) for item in value]
    if isinstance(value, dict):
        found = {name: _without_clock(item, now_ms) for name, item in value.items()}
        if "baseTimestamp" in found and isinstance(found.get("records"), list):
            found["records"] = [_without_delta(record, found["baseTimestamp"] == NOW) for record in found["records"]]
        return {name: found[name] for name in found if name not in FOLLOWS or NOW not in found.values()}
    is_now = isinstance(value, str) and value.isdecimal() and abs(int(value) - now_ms) < DAY_MS
    return NOW if is_now else value


def _without_delta(record: Json, is_base_now: bool) -> Json:  # noqa: FBT001 - one of the two times
    """Return a record without its delta if that is the distance between a time from a clock and one that is not."""
    is_stable = (record.get("timestamp") == NOW) is is_base_now
    return {name: value for name, value in record.items() if is_stable or name != "timestampDelta"}


def _sorted_headers(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        return [_sorted_headers(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: sorted(item, key=str) if name == "headers" and isinstance(item, list) else _sorted_headers(item)
        for name, item in value.items()
    }
