"""Ratios of our speed to the best of the others, and to the limits of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from works import GROWING, LOOKUPS, OURS, OWN, SECOND_CORE, TARGETS, TRUSTING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from works import Target

SHARE_OF_LIMIT: Final = 0.85
"""Share of a limit that replaces a target beyond that limit."""
NOISE: Final = 1.05
"""Factor by which a contender may exceed a limit, because it was measured at a better moment."""
LOOKUP_SECONDS: Final = {"lookup-warm": 30e-6, "lookup-cold": 100e-6, "time-warm": 30e-6, "time-cold": 100e-6}
"""Maximum seconds of a lookup, by work; one that opens the partition each time trusts its indexes."""
GROWTH: Final = 1.2
GROWTH_SECONDS: Final = 10e-6
"""Maximum growth of its time in the larger set of `works.GROWING`: a factor and a sum of seconds."""
OUR_NAMES: Final = ("seglog-format", "seglog verify")


def ratios(results: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each target whose work was measured.

    Args:
        results: rows of `session.Row.reported` and `wholes`.
        limits: megabytes a second, by name; ``codec`` has one for each set.
    """
    found = [row for target in TARGETS if (row := _row(target, results, limits)) is not None]
    return [*found, *_lookups(results)]


def other_processors(earlier: Mapping[str, Any] | None, processor: str) -> list[dict[str, Any]]:
    """Return the latest ratios of each other kind of processor, with the conditions of their runs.

    A ratio of one kind of processor says little about another, so a new run replaces only those of its own kind.

    Args:
        earlier: the report that the new run replaces; None if there is none.
        processor: name of the processor of the new run.
    """
    if earlier is None:
        return []
    replaced = {"made": earlier["made"], "ratios": earlier["ratios"]}
    known = [replaced, *earlier.get("otherProcessors", [])]
    return [each for each in known if each["made"]["machine"]["processor"] != processor]


def _lookups(results: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the ratios of lookups to their maximum times, by processor time where it is known."""
    for work, most in LOOKUP_SECONDS.items():
        contender = (TRUSTING if work.endswith("cold") else OURS).name
        ours = [row for row in results if (row["work"], row["contender"]) == (work, contender) and "median" in row]
        taken = {row["data"]: float(row.get("processorSeconds", row["median"])) for row in ours}
        kind, _, state = work.partition("-")
        title = f"{'trusted ' * (state == 'cold')}lookup{' by time' * (kind == 'time')}, {state}"
        for data in LOOKUPS:
            if data in taken:
                yield at_most_once(f"{title}, time", data, taken[data] / most, f"{most * 1e6:.0f} us")
        small, large = GROWING
        if {small, large} <= taken.keys():
            allowed = GROWTH * taken[small] + GROWTH_SECONDS
            yield at_most_once(f"{title}, growth", large, taken[large] / allowed, f"1.2 x {small} + 10 us")


def at_most_once(title: str, data: str, ratio: float, against: str) -> dict[str, Any]:
    """Return the row of a figure that was divided by the most that is allowed."""
    found = {"title": title, "data": data, "atMost": 1.0, "ratio": round(ratio, 3), "against": against}
    return {**found, "met": ratio <= 1}


def at_least(title: str, data: str, ratio: float, least: float, against: str) -> dict[str, Any]:
    """Return the row of a ratio of speeds."""
    found = {"title": title, "data": data, "atLeast": least, "ratio": round(ratio, 3), "against": against}
    return {**found, "met": ratio >= least}


def _row(target: Target, results: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> dict[str, Any] | None:
    named = {"title": target.title, "data": target.data, "atMost" if target.is_time else "atLeast": target.least}
    mine = [row for row in results if _is_mine(target, row)]
    if not mine:
        return None
    rivals = list(_rivals(target, results))
    if "median" not in mine[0] or not rivals:
        return {**named, "note": mine[0].get("note", "no other contender")}
    if target.by_processor:
        least = min(rivals, key=_processor_seconds)
        return at_least(
            target.title, target.data, _processor_seconds(least) / _processor_seconds(mine[0]), target.least,
            f"{least['contender']}, by processor time",
        )  # fmt: skip
    best = max(rivals, key=_speed)
    ratio = _speed(best) / _speed(mine[0]) if target.is_time else _speed(mine[0]) / _speed(best)
    limit = _limit(target, limits, _speed(best))
    if limit is not None and NOISE * limit < max(_speed(mine[0]), _speed(best)):
        limit = None  # a limit that a contender exceeds by far is wrong
    needed = _needed(target, _speed(best), limit)
    row = {**named, "ratio": round(ratio, 3), "against": best["contender"]}
    if "processorSeconds" in mine[0] and "processorSeconds" in best:
        taken = mine[0]["processorSeconds"] / best["processorSeconds"]
        row["processorRatio"] = round(taken if target.is_time else 1 / taken, 3)
    if limit is not None:
        row["shareOfLimit"] = round(_speed(mine[0]) / limit, 3)
    if needed != target.least:
        row["limited"] = round(needed, 3)
    return {**row, "met": ratio <= needed if target.is_time else ratio >= needed}


def _is_mine(target: Target, row: Mapping[str, Any]) -> bool:
    names = {"verify": OUR_NAMES[1]}
    same = (row["work"], row["data"]) == (target.work, target.data)
    return same and row["contender"] == names.get(target.work, target.ours)


def _rivals(target: Target, results: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for row in results:
        if (row["work"], row["data"]) != (target.against, target.data) or "median" not in row:
            continue
        if target.rivals == (OWN,):
            if row["contender"] == OURS.name:
                yield row
        elif not row["contender"].startswith(OUR_NAMES) and (not target.rivals or row["contender"] in target.rivals):
            yield row


def _speed(row: Mapping[str, Any]) -> float:
    return 1 / float(row["median"])


def _processor_seconds(row: Mapping[str, Any]) -> float:
    return float(row.get("processorSeconds", row["median"]))


def _limit(target: Target, limits: Mapping[str, Any], rival: float) -> float | None:
    """Return a limit in logs a second, as `_speed`; None if there is none, or if it was not measured."""
    if target.limit == SECOND_CORE:
        gain = limits.get("twoCores", {}).get(target.data)
        return None if gain is None else float(gain["times"]) * rival
    found = limits.get("logsPerSecond", {}).get(target.limit, {})
    value: float | None = found.get(target.data)
    return value


def _needed(target: Target, rival: float, limit: float | None) -> float:
    if limit is None or target.least * rival <= limit:
        return target.least
    return SHARE_OF_LIMIT * limit / rival
