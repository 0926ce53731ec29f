"""Checks of the offsets that whole clients request: stalls, jumps, and requests after an error."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.verdicts import Difference, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_conformance.protocol import Json

STILL: Final = 3
"""Number of successive requests for one offset that count as a stall."""

COMPARED: Final = ("position.positions",)
AFTER: Final = ("after.records", "after.position")
QUIET: Final = frozenset({Verdict.PASS, Verdict.SILENT, Verdict.DIFFER})
"""Verdicts on records for answers without an error."""


def compare_positions(expected: list[Any], found: list[Any]) -> Judgement:
    """Return the verdict on a consumer's next positions: a repeated one is a stall, any other wrong one a jump.

    A consumer may ask for the last position again and again: nothing follows.
    """
    reported = [str(offset) for offset in found]
    wanted = [str(offset) for offset in expected]
    if reported[: len(wanted)] == wanted and set(reported[len(wanted) :]) <= set(wanted[-1:]):
        return Judgement(Verdict.PASS, compared=COMPARED)
    difference = Difference("positions", wanted, reported)
    is_stall = len(reported) > 1 and reported[-1] == reported[-2] and reported[-1] != wanted[-1]
    return Judgement(Verdict.STALL if is_stall else Verdict.JUMP, str(difference), (difference,), COMPARED)


def with_positions(judgement: Judgement, expect: Json, answer: Json) -> Judgement:
    """Return a verdict adjusted to the requested offsets; unchanged if the client does not report them.

    Args:
        judgement: verdict on the delivered records.
        expect: the expected answer.
        answer: answer of the client.
    """
    asked = [int(offset) for offset in answer.get("positions") or ()]
    if not answer["ok"] or not asked or judgement.verdict not in QUIET:
        return judgement
    found = _stall(asked, judgement) if "reject" in expect else _moved(expect, asked, judgement)
    if found is None:
        return Judgement(
            judgement.verdict,
            judgement.detail,
            judgement.differences,
            (*judgement.compared, *COMPARED),
            judgement.branch,
        )
    verdict, detail = found
    return Judgement(verdict, detail, judgement.differences, (*judgement.compared, *COMPARED))


def after_error(judgement: Judgement, expect: Json, answer: Json) -> Judgement:
    """Return a verdict on a refusal adjusted to what the client did when it was polled again.

    By then Kafka's consumer has delivered all records before the damage. Its position is the first record that it
    cannot deliver, and it raises again. A client that continues after the damage loses records; a client that goes back
    delivers some records twice; and a client that keeps refusing valid records never delivers them.

    Args:
        judgement: verdict on the refusal.
        expect: expected answer, with the position of the first record that cannot be delivered.
        answer: answer of the client.
    """
    wanted, after = expect.get("after"), answer.get("after")
    if judgement.verdict is not Verdict.PASS or wanted is None or after is None:
        return judgement
    judgement = replace(judgement, compared=(*judgement.compared, *AFTER))
    handed_out = _offsets(answer.get("batches", ()))
    first, damaged = max(handed_out, default=-1) + 1, int(wanted["position"])
    for name, offset in _strays(first, damaged, after, answer.get("positions", ())):
        difference = Difference(name, damaged, offset)
        detail = f"after its error it goes {'back' if offset < first else 'on'}: {difference}"
        return replace(judgement, verdict=Verdict.JUMP, detail=detail, differences=(difference,))
    kept_back = set(_offsets(expect["batches"])) - {*handed_out, *_offsets([after])}
    if kept_back:
        detail = f"polled again, it raises again, and never delivers {len(kept_back)} valid records before the damage"
        return replace(judgement, verdict=Verdict.STALL, detail=detail)
    return judgement


def _offsets(batches: Sequence[Json]) -> list[int]:
    return [int(record["offset"]) for batch in batches if not batch.get("isControl") for record in batch["records"]]


def _strays(first: int, damaged: int, after: Json, asked: Sequence[Any]) -> Iterator[tuple[str, int]]:
    """Yield signs that a client's position is outside of two offsets, each with its offset.

    Its fetches only show that it went on: a client that has fetched the damage need not fetch it again.
    """
    for offset in _offsets([after]):
        if not first <= offset < damaged:
            yield "after.records", offset
    if "position" in after and not first <= int(after["position"]) <= damaged:
        yield "after.position", int(after["position"])
    for offset in map(int, asked[-1:]):
        if offset > damaged:
            yield "positions", offset


def _moved(expect: Json, asked: Sequence[int], judgement: Judgement) -> tuple[Verdict, str] | None:
    """Return a verdict on the positions for valid bytes: whether the client reached their end, and by which steps."""
    last = (expect.get("batches") or [expect])[-1]
    if "nextOffset" not in last:
        return None
    end = int(last["nextOffset"])
    if asked[-1] < end and _is_stuck(asked):
        return Verdict.STALL, f"it asks for offset {asked[-1]} again and again; the log ends at {end}"
    if judgement.verdict is Verdict.SILENT:
        return Verdict.JUMP, f"{judgement.detail}; it asked for {_reported(asked)}"
    back = next((later for one, later in pairwise(asked) if later < one), None)
    if back is not None:
        return Verdict.JUMP, f"it goes back to offset {back}: it asked for {_reported(asked)}"
    if asked[-1] != end and judgement.verdict is Verdict.PASS:
        return Verdict.JUMP, f"it asked for {_reported(asked)}; the log ends at {end}"
    return None


def _stall(asked: Sequence[int], judgement: Judgement) -> tuple[Verdict, str] | None:
    """Return a verdict on the positions for invalid bytes: whether the client retries forever without an error."""
    if judgement.verdict is Verdict.SILENT and _is_stuck(asked):
        return Verdict.STALL, f"it asks for offset {asked[-1]} again and again, and there is no error"
    return None


def _is_stuck(asked: Sequence[int]) -> bool:
    return len(asked) >= STILL and len(set(asked[-STILL:])) == 1


def _reported(asked: Sequence[int]) -> str:
    return ", ".join(map(str, asked[-6:]))
