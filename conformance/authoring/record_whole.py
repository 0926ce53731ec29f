"""Ask Kafka's own classes for everything that an answer may have beside what a case expects.

An answer is compared whole. Many cases are about one fact, and expect only that; an answer has more: other files,
offsets, checkpoints. ``python -m authoring.record_whole`` writes ``conformance/authoring/recorded_whole.json``, which
`make_cases` puts into the cases: ``also``, what such a member has to be if an answer has it, and ``untold``, the paths
about which nothing is known. A member is in ``also`` only if every asked release of Kafka that tells it agrees with the
reference, or if it follows from the text (`by_the_text`); never because the reference alone says so. Needs Java 17 and
Maven. With ``--changed`` only cases are asked that are new or have changed since.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from contextlib import closing
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "conformance"))

from seglog_conformance.cases import Case, load_cases  # noqa: E402 - the path is set first
from seglog_conformance.features import missing_feature  # noqa: E402
from seglog_conformance.protocol import untold_in  # noqa: E402
from seglog_conformance.reference.testee import Reference  # noqa: E402
from seglog_conformance.registry import Builder, listed  # noqa: E402
from seglog_conformance.releases import release_key  # noqa: E402
from seglog_conformance.testee import Allowance, Kind  # noqa: E402
from seglog_conformance.values import extras, same  # noqa: E402
from seglog_conformance.verdicts import MISSING  # noqa: E402

from authoring.asked import digest  # noqa: E402
from authoring.recorded_whole import KEPT, kept_rows  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Json = dict[str, Any]

RELEASES: Final = ("kafka-storage@4.4.0", "kafka-storage@4.1.1", "kafka-storage@3.9.1", "kafka-storage@2.8.2")
TELLING: Final = frozenset({"powerCuts", "names", "plan", "checkpoints", "logDirectory", "duplicates"})
"""Features of those who tell more; what others tell of such a case counts as well."""
ALLOWANCE: Final = Allowance(seconds=60)
APART: Final = frozenset({"decode", "encode"})
"""Operations whose cases name every field, or leave it to the protocol's list."""
BESIDE: Final = frozenset({"seq", "ok", "reject"})
COMPRESSOR: Final = frozenset({"data", "crc", "sizeInBytes", "position"})
"""Members that depend on the compressor."""
SNAPSHOT_COUNT: Final = slice(6, 10)
CHECKPOINTS: Final = {
    "recoveryPoint": "recovery-point-offset-checkpoint",
    "logStartOffset": "log-start-offset-checkpoint",
    "highWatermark": "replication-offset-checkpoint",
    "cleanerOffset": "cleaner-offset-checkpoint",
}
DEFAULTS: Final = "decisions/config-defaults"


# What follows from the text


def by_the_text(case: Case, known: Json) -> Json:
    """Return members of an answer that follow from the request, from what is expected, and from what Kafka answers.

    Recovery, truncation, retention and compaction leave the checkpoint files of other matters as they are; a log that is
    closed has its end in the checkpoints of recovery point and high watermark; only a shutdown writes its mark.

    Args:
        case: the case.
        known: members that are expected, or that Kafka answers.
    """
    if case.op == "parse":
        return _settings() if case.request["kind"] == "config" else {}
    if case.op not in {"recover", "truncate", "retain", "compact", "write"}:
        return {}
    found: Json = {"checkpoints": _checkpoints(case, known)}
    if known.get("files"):
        found["names"] = sorted(name for name, data in known["files"].items() if data is not None)
    if case.op == "recover" and known.get("files"):
        sizes = [
            sum(len(data) // 2 for name, data in files.items() if data and _is_log(name))
            for files in (case.request["files"], known["files"])
        ]
        found["truncatedBytes"] = max(sizes[0] - sizes[1], 0)
    if case.op in {"retain", "compact"}:
        found["isClean"] = bool(case.request.get("options", {}).get("cleanShutdown"))
    if case.op == "write":
        found |= _after_steps(case, known)
    return found


def _before(case: Case) -> dict[str, str | None]:
    """Return the checkpoint files of the request."""
    options = case.request.get("options", {})
    files = {
        name: f"0\n1\ntopic 0 {options[option]}\n".encode().hex() if option in options else None
        for option, name in CHECKPOINTS.items()
    }
    return {**files, **{name: data for name, data in options.get("checkpoints", {}).items() if name in files}}


def _checkpoints(case: Case, known: Json) -> Json:
    files, start = _before(case), known.get("logStartOffset")
    if case.op == "compact" and known.get("groups") and "endOffset" in known:
        files[CHECKPOINTS["cleanerOffset"]] = _checkpoint(known["endOffset"])
    if case.op == "write" and "nextOffset" in known:
        end = _checkpoint(known["nextOffset"])
        files |= dict.fromkeys((CHECKPOINTS["recoveryPoint"], CHECKPOINTS["highWatermark"]), end)
    bases = sorted(
        int(name[:20]) for name, data in (known.get("files") or {}).items() if data is not None and _is_log(name)
    )
    if case.op in {"write", "retain"} and start is not None and bases and (case.op == "write" or int(start) > bases[0]):
        is_listed = int(start) > bases[0]
        files[CHECKPOINTS["logStartOffset"]] = _checkpoint(start) if is_listed else b"0\n0\n".hex()
    return files


def _is_log(name: str) -> bool:
    return bool(re.fullmatch(r"[0-9]{20}\.log", name))


def _checkpoint(offset: object) -> str:
    return f"0\n1\ntopic 0 {offset}\n".encode().hex()


def _after_steps(case: Case, known: Json) -> Json:
    """Return what a closed log and its steps are besides: it was shut down, and no step does that."""
    looks = [
        {"isClean": False, "checkpoints": _before(case)} if one["do"] == "look" else {} for one in case.request["steps"]
    ]
    found: Json = {"isClean": True, "steps": looks}
    transactional = any("records" in one and _has_transactions(one["records"]) for one in case.request["steps"])
    if not case.request["files"] and not transactional and "nextOffset" in known:
        found["lastStableOffset"] = known["nextOffset"]
    return found


BASE_OFFSET: Final = slice(0, 8)
LEADER_EPOCH: Final = slice(12, 16)
LAST_OFFSET_DELTA: Final = slice(23, 27)
BATCH_LENGTH: Final = slice(8, 12)
OVERHEAD: Final = 12
OF_A_LOG: Final = frozenset({"append", "together", "roll", "flush", "cut", "schedule", "retain", "delete", "look"})


def written_log(case: Case) -> Json:
    """Return what the text says of a new log after steps that no class of Kafka was asked: its offsets and its bytes.

    A leader gives the next offsets and writes its epoch, which no checksum covers; a follower keeps the bytes. The text
    leaves open the other files and their names (an index may have more entries, and a snapshot may be missing), the
    recovery points of the steps, and in which order several appends at once are written.
    """
    steps = case.request["steps"]
    if case.request["files"] or not {one["do"] for one in steps} <= OF_A_LOG:
        return {}
    logs, end, found = {0: b""}, 0, list[Json]()
    for step, expected in zip(steps, case.expect.get("steps") or [{} for _ in steps], strict=True):
        found.append({})
        if step["do"] == "together":
            end += len(step["records"])
        elif step["do"] == "roll":
            logs[end], found[-1] = b"", {"baseOffset": str(end)}
        elif step["do"] == "retain":
            logs = {base: data for base, data in logs.items() if str(base) not in expected["segments"]}
            found[-1] = {"logStartOffset": str(min(logs))}
        elif step["do"] == "append" and "reject" not in expected:
            first, end, data = _appended(step, end)
            base = first if expected.get("rolled") else max(logs)
            logs[base] = logs.get(base, b"") + data
            found[-1] = {"firstOffset": str(first), "lastOffset": str(end - 1), "isDuplicate": False}
    files = {f"{base:020}.log": data.hex() for base, data in logs.items()}
    is_ordered = not any(one["do"] == "together" for one in steps)
    whole = {"steps": found, "nextOffset": str(end), "logStartOffset": str(min(logs))}
    return {**whole, "files": files} if is_ordered else whole


def _appended(step: Json, end: int) -> tuple[int, int, bytes]:
    """Return the first offset of an append, the offset after it, and the bytes that are written."""
    data, at = bytearray.fromhex(step["records"]), 0
    is_leader = step.get("as", "leader") == "leader"
    first = end if is_leader else int.from_bytes(data[BASE_OFFSET])
    while at < len(data):
        batch = data[at : at + OVERHEAD + int.from_bytes(data[at:][BATCH_LENGTH])]
        if is_leader:
            batch[BASE_OFFSET] = end.to_bytes(8)
            batch[LEADER_EPOCH] = int(step.get("leaderEpoch", 0)).to_bytes(4)
        data[at : at + len(batch)] = batch
        end = int.from_bytes(batch[BASE_OFFSET]) + int.from_bytes(batch[LAST_OFFSET_DELTA]) + 1
        at += len(batch)
    return first, end, bytes(data)


def _has_transactions(records: str | Sequence[str]) -> bool:
    """Return whether some bytes may hold a transactional batch: whether a first batch of magic 2 has its bit."""
    texts = [records] if isinstance(records, str) else records
    return any(bytes.fromhex(text)[22] & 0x10 for text in texts if len(text) > 2 * 22)


@cache
def _defaults() -> Json:
    found: Json = next(case for case in load_cases() if case.id == DEFAULTS).expect["object"]
    return found


def _settings() -> Json:
    """Return the defaults of settings, which the first case of settings expects, in all other such cases."""
    return {"object": dict(_defaults())}


def _without(value: Json, name: str) -> Json:
    """Return an object without a member."""
    return {other: item for other, item in value.items() if other != name}


def _merged(one: Json, other: Json) -> Json:
    """Return two answers as one; both tell of each step."""
    steps = [{**first, **second} for first, second in zip(one.get("steps", ()), other.get("steps", ()), strict=False)]
    return {**one, **other, **({"steps": steps} if steps else {})}


# Members that are not expected


class Sorting:
    """Sorts the members of an answer that a case does not expect.

    Attributes:
        also: members that are known.
        untold: paths of members that are not.
    """

    def __init__(self, case: Case) -> None:
        self.also: Json = {}
        self.untold: dict[str, None] = {}
        self._known = untold_in(case.op)
        self._is_compressed = any(need.startswith("codec:") for need in case.needs) or bool(
            case.request.get("options", {}).get("batches")
        )

    def walk(self, expected: object, answers: Sequence[Any], text: object, path: tuple[str | int, ...] = ()) -> None:
        """Sort what the answers have beside the expected value; the first answer is the reference's."""
        if isinstance(expected, dict):
            for name in dict.fromkeys(name for one in answers if isinstance(one, dict) for name in one):
                held = [one.get(name, MISSING) if isinstance(one, dict) else MISSING for one in answers]
                may = text.get(name, MISSING) if isinstance(text, dict) else MISSING
                if name in expected:
                    self.walk(expected[name], held, may, (*path, name))
                else:
                    self._sort(held, may, (*path, name))
        elif isinstance(expected, list):
            for number, item in enumerate(expected):
                held = [one[number] if isinstance(one, list) and number < len(one) else MISSING for one in answers]
                may = text[number] if isinstance(text, list) and number < len(text) else MISSING
                self.walk(item, held, may, (*path, number))

    def _sort(self, held: Sequence[Any], text: object, path: tuple[str | int, ...]) -> None:
        values = [one for one in held if one is not MISSING and one is not None]
        written = _written(path)
        if not values or not list(extras({written: values[0]}, (), self._known)):
            return
        witnesses = [one for one in (*held[1:], text) if one is not MISSING]
        values = [*values, *witnesses]
        if self._is_free(path, values[0]):
            self.untold[_pattern(path)] = None
        elif witnesses and all(_is_same(values[0], one) for one in values[1:]):
            self._put(path, values[0])
        elif witnesses and all(isinstance(one, dict) for one in values):
            self._put(path, {})
            self.walk({}, held, text, path)
        elif witnesses and _are_objects(values):
            self._put(path, [{} for _ in values[0]])
            self.walk([{} for _ in values[0]], held, text, path)
        else:
            self.untold[_pattern(path)] = None

    def _is_free(self, path: tuple[str | int, ...], value: object) -> bool:
        """Return whether a member may have several right values: entries of producers in any order, compressed bytes."""
        name = str(path[-1])
        if name.endswith(".snapshot") and isinstance(value, str):
            return int.from_bytes(bytes.fromhex(value)[SNAPSHOT_COUNT]) > 1
        return self._is_compressed and (name in COMPRESSOR or name.endswith((".log", ".index")))

    def _put(self, path: tuple[str | int, ...], value: object) -> None:
        holder: Any = self.also
        for part, following in pairwise(path):
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(part, int):
                holder += [type(empty)() for _ in range(part + 1 - len(holder))]
                holder = holder[part]
            else:
                holder = holder.setdefault(part, empty)
        if isinstance(path[-1], int):
            holder += [{} for _ in range(path[-1] + 1 - len(holder))]
        holder[path[-1]] = value


def _are_objects(values: Iterable[Any]) -> bool:
    rows = list(values)
    return all(isinstance(one, list) and len(one) == len(rows[0]) for one in rows) and all(
        isinstance(item, dict) for one in rows for item in one
    )


def _is_same(one: object, other: object) -> bool:
    return same(one, other) or one == other


def _written(path: Iterable[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]


def _pattern(path: Iterable[str | int]) -> str:
    return re.sub(r"\[\d+\]", "[*]", _written(path))


# Kafka


def row_of(case: Case, answers: Sequence[Json | None]) -> Json:
    """Return what is kept for a case: the reference's answer comes first, then Kafka's; None for no answer."""
    given = [{name: value for name, value in (one or {}).items() if name not in BESIDE} for one in answers]
    sorting = Sorting(case)
    known: Json = {}
    for one in (*given[:0:-1], case.expect):
        known |= {**one, "files": {**known.get("files", {}), **one["files"]}} if one.get("files") else one
    written: Json = {}
    if not any(given[1:]):
        known.pop("files", None)  # those expected are not all
        written = written_log(case) if case.op == "write" else {}
    text = _merged(written, by_the_text(case, {**_without(written, "files"), **known}))
    for expected in case.expect["allowed"] if case.result == "acceptable" else [case.expect]:
        if "reject" not in expected:
            sorting.walk({name: value for name, value in expected.items() if name != "branch"}, given, text)
    return {"also": sorting.also, "untold": sorted(sorting.untold)}


def asked(cases: Sequence[Case], name: str) -> dict[str, Json]:
    """Return the answers of one release, without refusals and cases that it is not asked, such as younger ones."""
    found, release = {}, release_key(name.partition("@")[2])
    with closing(Builder().testee(listed(name))) as kafka:
        hello = kafka.start()
        for number, case in enumerate(cases):
            needs = set(case.needs) - TELLING
            is_younger = release_key(case.since) > release
            if case.op in hello.ops and not is_younger and not missing_feature(needs, hello.features):
                reply = kafka.ask({"seq": number, "op": case.op, **case.request}, ALLOWANCE)
                if reply.kind is not Kind.ANSWER:
                    kafka.start()
                elif reply.answer and reply.answer.get("ok"):
                    found[case.id] = reply.answer
        print(f"{name}: {len(found)} answers", flush=True)
    return found


def recorded(cases: Sequence[Case]) -> dict[str, Json]:
    """Return what is kept for each case that does not expect everything."""
    reference = Reference()
    ours = {case.id: reference.answer({"op": case.op, **case.request}) for case in cases}
    kafkas = [asked(cases, name) for name in RELEASES]
    answers = {case.id: [ours[case.id], *(found.get(case.id) for found in kafkas)] for case in cases}
    rows = {case.id: row_of(case, answers[case.id]) for case in cases}
    return {name: row for name, row in rows.items() if row["also"] or row["untold"]}


def main() -> int:
    """Ask, and write down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--changed", action="store_true", help="ask only what is new or has changed since")
    parser.add_argument("--case", action="append", default=[], help="ask only this one; may be repeated")
    given = parser.parse_args()
    is_partial = given.changed or given.case
    texts = [path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "conformance" / "cases").glob("*.json"))]
    digests = {case["id"]: digest(case) for text in texts for case in json.loads(text)["cases"]}
    cases = [case for case in load_cases() if case.op not in APART and case.result in {"valid", "acceptable"}]
    cases = [case for case in cases if case.family_name != "generated"]  # these are kept as they were drawn
    kept = {name: row for name, row in kept_rows().items() if digests.get(name) == row["digest"]} if is_partial else {}
    kept = {name: row for name, row in kept.items() if name not in given.case}
    rows = recorded([case for case in cases if case.id not in kept])
    kept |= {name: {"digest": digests[name], **row} for name, row in rows.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in sorted(kept.items())]
    text = ",\n".join(lines)
    KEPT.write_text(f'{{"asked": {json.dumps(RELEASES)}, "cases": {{\n{text}\n}}}}\n', encoding="utf-8")
    print(f"{len(kept)} cases; run make_cases now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
