"""What whole clients asked for, beside what they handed out: standing still, and leaving out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.verdicts import Difference, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_conformance.protocol import Json

STILL: Final = 3
"""So often in a row has a consumer asked for an offset that stands still."""

COMPARED: Final = ("position.positions",)
QUIET: Final = frozenset({Verdict.PASS, Verdict.SILENT, Verdict.DIFFER})
"""What an answer without an error comes to, as far as records go."""


def judge_positions(expected: list[Any], found: list[Any]) -> Judgement:
    """What a consumer asks for next: again and again the same is a stall, anything else that is wrong a jump."""
    told = [str(offset) for offset in found]
    wanted = [str(offset) for offset in expected]
    if told[: len(wanted)] == wanted:
        return Judgement(Verdict.PASS, compared=COMPARED)
    difference = Difference("positions", wanted, told)
    is_stall = len(told) > 1 and told[-1] == told[-2] and told[-1] != wanted[-1]
    return Judgement(Verdict.STALL if is_stall else Verdict.JUMP, str(difference), (difference,), COMPARED)


def with_positions(judgement: Judgement, expect: Json, answer: Json) -> Judgement:
    """A judgement on records, in the light of what the client asked for; of one that does not tell, as it is.

    Args:
        judgement: on what was handed out.
        expect: the expected answer.
        answer: of a client.
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


def _moved(expect: Json, asked: Sequence[int], judgement: Judgement) -> tuple[Verdict, str] | None:
    """Where bytes have to be read: whether the client came to their end, and by which steps."""
    batches = expect.get("batches") or []
    end = int(batches[-1]["nextOffset"]) if batches and "nextOffset" in batches[-1] else None
    if end is None:
        return None
    if asked[-1] < end and _stands_still(asked):
        return Verdict.STALL, f"it asks for offset {asked[-1]} again and again; the log ends at {end}"
    if judgement.verdict is Verdict.SILENT:
        return Verdict.JUMP, f"{judgement.detail}; it asked for {_told(asked)}"
    back = next((later for one, later in pairwise(asked) if later < one), None)
    if back is not None:
        return Verdict.JUMP, f"it goes back to offset {back}: it asked for {_told(asked)}"
    if asked[-1] != end and judgement.verdict is Verdict.PASS:
        return Verdict.JUMP, f"it asked for {_told(asked)}; the log ends at {end}"
    return None


def _stall(asked: Sequence[int], judgement: Judgement) -> tuple[Verdict, str] | None:
    """Where bytes have to be refused: whether the client tries again without end, and says nothing."""
    if judgement.verdict is Verdict.SILENT and _stands_still(asked):
        return Verdict.STALL, f"it asks for offset {asked[-1]} again and again, and there is no error"
    return None


def _stands_still(asked: Sequence[int]) -> bool:
    return len(asked) >= STILL and len(set(asked[-STILL:])) == 1


def _told(asked: Sequence[int]) -> str:
    return ", ".join(map(str, asked[-6:]))
