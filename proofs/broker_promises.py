"""What is wrong with a broker that started on a state: what its clients got, and what had been acknowledged before."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_conformance.crash.workload import ANSWERED

from proofs.broker_histories import COMPACT, GROUP, KEYS, OPENED, RETAINED, STOP, TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proofs.broker_histories import Recorded

SHOWN: Final = 3
NO_START, UNREADABLE = "does not start", "cannot be read"


class Promised(NamedTuple):
    """What had been acknowledged before a cut.

    Attributes:
        flushed: topic and token of what was acknowledged as being on the disk.
        group: the position of the group, if it is on the disk; -1 for none.
        begins: the highest first offset of each topic.
        created: whether the topics have to be there.
    """

    flushed: set[tuple[str, str]]
    group: int
    begins: dict[str, int]
    created: bool


def promised(history: Recorded, number: int) -> Promised:
    """Return what had been acknowledged before a cut.

    A stop flushes no topic that could not be read before it: its log directory had failed.
    """
    tokens: set[tuple[str, str]] = set()
    flushed: set[tuple[str, str]] = set()
    group = kept = -1
    created = is_kept = False
    failed: set[str] = set()
    looks = history.truth
    begins = looks[-1]
    for at, event in history.history.markers:
        if event["do"] == "look" and at >= number:
            begins = looks[event["look"]]
            break
        if at >= number or event["is"] != ANSWERED:
            continue
        if event["do"] == "look":
            failed = {topic for topic in TOPICS if "error" in looks[event["look"]][topic]["read_uncommitted"]}
        if "token" in event:
            tokens.add((event["topic"], event["token"]))
        if event["do"] == "commit":
            group = event["offset"]
        created |= event["do"] == "create"
        if history.flushes or event["do"] == STOP:
            flushed |= {each for each in tokens if history.flushes or each[0] not in failed}
            kept, is_kept = group, created
    first = {
        topic: begins[topic]["read_uncommitted"].get("begin", looks[-1][topic]["read_uncommitted"]["begin"])
        for topic in TOPICS
    }
    return Promised(flushed, kept, first, is_kept)


def complaints(history: Recorded, seen: dict[str, Any], number: int) -> dict[str, str]:
    """Return what is wrong with a start, by kind."""
    if not seen["starts"]:
        return {NO_START: seen["error"][-300:]}
    found: dict[str, str] = {}
    promise = promised(history, number)
    if "error" in seen:
        found["does not stop"] = seen["error"][-300:]
    for topic in TOPICS:
        for kind, text in _of_topic(history, topic, seen.get("topics", {}).get(topic, {}), promise):
            found.setdefault(kind, f"{topic}: {text}")
    at = seen.get("groups", {}).get(GROUP, {}).get("plain-0", -1)
    if at < promise.group:
        found["group's position is lost"] = f"{at}, and {promise.group} was acknowledged as flushed"
    return found | {f"verify {requirement}": text for requirement, text in seen["verify"].items()}


def _of_topic(history: Recorded, topic: str, seen: dict[str, Any], promise: Promised) -> Iterator[tuple[str, str]]:
    plain, committed = seen.get("read_uncommitted", {}), seen.get("read_committed", {})
    for each in (plain, committed):
        if "error" in each and promise.created:
            yield UNREADABLE, each["error"]
    truth = {row[0]: row[2] for look in history.truth for row in look[topic]["read_uncommitted"]["records"]}
    rows = plain.get("records", [])
    there = {row[0]: row[2] for row in rows}
    offsets_of = defaultdict(set)
    for offset, value in truth.items():
        offsets_of[value].add(offset)
    tokens = {event.get("token") for _, event in history.history.markers}
    for offset, _, value in rows:
        if topic == COMPACT and value not in offsets_of and value.split()[0] in tokens:
            continue  # compaction had removed it before any look
        if value not in offsets_of:
            yield "never written", f"{value!r} at offset {offset}"
        elif offset not in offsets_of[value]:
            yield "at another offset", f"{value!r} at offset {offset}, written at {sorted(offsets_of[value])[:SHOWN]}"
    if len(there) < len(rows) or [row[0] for row in rows] != sorted(there):
        yield "twice or out of order", f"{len(rows)} records at {len(there)} offsets"
    if "end" not in plain:
        return
    yield from _of_lost(topic, plain, truth, there, promise)
    yield from _of_committed(history, topic, plain, committed)
    yield from _of_lookups(topic, seen, rows, plain)


def _of_lost(
    topic: str, plain: dict[str, Any], truth: dict[int, str], there: dict[int, str], promise: Promised
) -> Iterator[tuple[str, str]]:
    begin, last = plain["begin"], max(there, default=-1)
    if begin > promise.begins[topic]:
        yield "begins too late", f"{begin}, and {promise.begins[topic]} at most is right"
    newest = {_record_key(value): offset for offset, value in sorted(there.items())}
    for offset, value in sorted(truth.items()):
        is_replaced = topic == COMPACT and newest.get(_record_key(value), -1) > offset
        if offset in there or offset < promise.begins[topic] or is_replaced:
            continue
        if (topic, value.split()[0]) in promise.flushed:
            yield "loses what was flushed", f"{value!r} at offset {offset}; the log has {begin} to {plain['end']}"
        elif offset < last and offset >= begin:
            yield "hole", f"{value!r} at offset {offset}; the log has {begin} to {plain['end']}"


def _record_key(value: str) -> int:
    return int(number) % KEYS if (number := value.rsplit(maxsplit=1)[-1]).isdigit() else -1


def _of_committed(
    history: Recorded, topic: str, plain: dict[str, Any], committed: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    if "end" not in committed:
        return
    rows = committed["records"]
    ended = {row[0] for look in history.truth for row in look[topic]["read_committed"]["records"]}
    if more := [row for row in rows if row[0] not in ended and topic != COMPACT]:
        yield "delivers what was aborted", f"{more[:SHOWN]}"
    uncommitted = [row for row in plain["records"] if row[0] in ended and row[0] < committed["end"]]
    if less := [row for row in uncommitted if row not in rows]:
        yield "read_committed leaves out", f"{less[:SHOWN]}"
    if topic != OPENED and committed["end"] < plain["end"]:
        yield "read_committed stops", f"at {committed['end']} of {plain['end']}"


def _of_lookups(
    topic: str, seen: dict[str, Any], rows: list[list[Any]], plain: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    there = {row[0] for row in rows}
    for time_ms, offset in seen.get("times", []):
        wanted = next(row[0] for row in rows if row[1] >= time_ms)
        if offset != wanted and not (0 <= offset < wanted and offset not in there):
            yield "time lookup", f"{offset}, and {wanted} is right"
    if "refused" in seen:
        yield "refuses appends", seen["refused"]
    elif "next" in seen and not (
        seen["next"] == plain["end"] or (seen["next"] > plain["end"] and topic in {"transactional", OPENED})
    ):
        yield "next offset", f"{seen['next']}, and the log ended at {plain['end']}"
    if topic != RETAINED and seen.get("later", -1) > plain["begin"]:
        yield "begins too late", f"a while after the start, {seen['later']} instead of {plain['begin']}"
