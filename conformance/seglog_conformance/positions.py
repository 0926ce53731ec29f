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


def compare_positions(expected: list[Any], found: list[Any]) -> Judgement:
    """Return what a consumer asks for next: again and again the same is a stall, anything else that is wrong a jump."""
    reported = [str(offset) for offset in found]
    wanted = [str(offset) for offset in expected]
    if reported[: len(wanted)] == wanted:
        return Judgement(Verdict.PASS, compared=COMPARED)
    difference = Difference("positions", wanted, reported)
    is_stall = len(reported) > 1 and reported[-1] == reported[-2] and reported[-1] != wanted[-1]
    return Judgement(Verdict.STALL if is_stall else Verdict.JUMP, str(difference), (difference,), COMPARED)


def with_positions(judgement: Judgement, expect: Json, answer: Json) -> Judgement:
    """Return a judgement on records, in the light of what the client asked for; of one that does not tell, as it is.

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
    """Return where bytes have to be read: whether the client came to their end, and by which steps."""
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
    """Return where bytes have to be refused: whether the client tries again without end, and says nothing."""
    if judgement.verdict is Verdict.SILENT and _is_stuck(asked):
        return Verdict.STALL, f"it asks for offset {asked[-1]} again and again, and there is no error"
    return None


def _is_stuck(asked: Sequence[int]) -> bool:
    return len(asked) >= STILL and len(set(asked[-STILL:])) == 1


def _reported(asked: Sequence[int]) -> str:
    return ", ".join(map(str, asked[-6:]))
