"""Let Kafka's own classes write, cut back and compact random logs, and keep what they leave as cases of the suite.

``python -m authoring.record_scenarios`` writes ``conformance/authoring/recorded_scenarios.json``, which `make_cases` turns into cases; each holds
what was done and every file that Kafka left. Needs Java 17 and Maven. The same seed gives the same requests. The newest
release gets them as well; where its files differ, both answers are kept, and the case allows both. With ``--changed``
only scenarios are asked that are new or have changed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "conformance"))

from seglog_conformance.registry import Builder, listed  # noqa: E402
from seglog_conformance.testee import Allowance, Kind, Testee  # noqa: E402
from seglog_conformance.values import differences  # noqa: E402

from authoring.casefile import hexed  # noqa: E402
from authoring.recorded_scenarios import KEPT, digest  # noqa: E402
from authoring.scenario_cases import scenarios  # noqa: E402
from proofs.fuzz.random_logs import START_MS  # noqa: E402
from proofs.kafka.compaction import KeyedMaker  # noqa: E402 - the path is set first
from seglog_format.codec.build import with_offset  # noqa: E402
from seglog_format.codec.framing import walk  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from authoring.scenarios import Scenario

Json = dict[str, Any]

OLDEST: Final = "kafka-storage@4.1.1"
NEWEST: Final = "kafka-storage@4.4.0"
WRITES: Final = range(40)
COMPACTIONS: Final = range(40)
ALLOWANCE: Final = Allowance(seconds=60)
CONTROL_BIT: Final = 0x20
KEY_COUNTS: Final = (3, 6, 12)
SNAPSHOT_COUNT: Final = slice(6, 10)
EPOCH: Final = 1 << 20
"""Of a leader: above those of all batches."""


class SmallMaker(KeyedMaker):
    """Makes entries with short values and few headers, which make small cases."""

    key_count = 6
    value_sizes = (0, 1, 20)
    headers = ((b"h", b"1"),)
    header_percent = 5


# Logs that are written


def random_write(seed: int) -> Json:
    """Return what happens to a partition: settings that roll segments soon, and what a leader or a follower appends."""
    dice = random.Random(f"life {seed}")  # noqa: S311 - repeats with its seed
    is_leader = bool(seed % 2)
    config = {
        "segment.bytes": str(dice.choice((600, 1500, 1 << 20))),
        "index.interval.bytes": str(dice.choice((0, 100, 300, 4096))),
        "segment.index.bytes": str(dice.choice((48, 100, 1000)) if is_leader else 4000),
        "segment.ms": str(dice.choice((2_000, 10_000, 7 * 86_400_000))),
        "message.timestamp.type": dice.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        "flush.messages": str(dice.choice((1, 5, 1 << 40))),
        "retention.ms": str(dice.choice((-1, 3_000))),
        "retention.bytes": str(dice.choice((-1, 1000))),
    }
    maker = SmallMaker(dice, has_gaps=not is_leader, has_log_append_time=not is_leader, has_compression=seed % 3 == 0)
    steps = [step for _ in range(dice.choice((6, 15, 25))) for step in _random_steps(maker, is_leader=is_leader)]
    return {"files": {}, "config": config, "now": str(START_MS), "steps": steps}


def _random_steps(maker: SmallMaker, *, is_leader: bool) -> Iterator[Json]:
    dice = maker.dice
    if maker.happens(8):
        yield {"do": dice.choice(("roll", "flush", "look", "retain"))}
    if is_leader:
        data = with_offset(maker.entry(), 0, -1)
        origin = "coordinator" if data[22] & CONTROL_BIT else "client"
        yield {
            "do": "append",
            "records": data.hex(),
            "origin": origin,
            "leaderEpoch": maker.leader_epoch,
            "now": str(maker.time_ms),
        }
    else:
        entries = b"".join(maker.entry() for _ in range(dice.choice((1, 1, 2, 4))))
        yield {
            "do": "append",
            "as": "follower",
            "records": entries.hex(),
            "leaderEpoch": EPOCH,
            "now": str(maker.time_ms),
        }


def expected_write(request: Json, answer: Json) -> Json:
    """Return the expected answer to a write: offsets, and every file that is compared."""
    steps = [_reported(step) for step in answer["steps"]]
    offsets = {name: answer[name] for name in ("nextOffset", "logStartOffset")}
    return {"steps": steps, **offsets, "files": changed_files(request, answer["files"])}


def _reported(step: Json) -> Json:
    if "reject" in step:
        return {"reject": {"class": step["reject"]["class"]}}
    return {**step, "files": changed_files({"files": {}}, step["files"])} if "files" in step else step


def changed_files(request: Json, files: dict[str, str]) -> dict[str, str | None]:
    """Return the files that are compared, with their bytes; None for files that were removed.

    Three kinds are not compared: an empty transaction index, which is as good as none; a snapshot of several producers,
    whose entries may have any order; and a snapshot inside a segment, taken when the log was opened, which not every
    implementation does.
    """
    newest = max((name for name in files if name.endswith(".snapshot")), default="")
    reported: dict[str, str | None] = dict.fromkeys(sorted(request["files"].keys() - files.keys()))
    for name, data in files.items():
        is_free = name.endswith(".txnindex") and not data
        count = int.from_bytes(bytes.fromhex(data)[SNAPSHOT_COUNT]) if name.endswith(".snapshot") else 0
        is_inside = name.endswith(".snapshot") and name != newest and f"{name[:20]}.log" not in files
        if not is_free and not is_inside and count <= 1:
            reported[name] = data
    return reported


# Logs that are compacted


def random_compactions(kafka: Testee, seed: int) -> Iterator[tuple[Json, Json]]:
    """Yield a log of few keys, and one or two passes over it; requests and answers."""
    dice = random.Random(f"compaction life {seed}")  # noqa: S311 - repeats with its seed
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(dice.choice((400, 900, 2500))),
        "segment.index.bytes": str(dice.choice((60, 1000, 1000))),
        "index.interval.bytes": str(dice.choice((0, 100, 4096))),
        "delete.retention.ms": str(dice.choice((0, 1000, 5000, 86_400_000))),
        "min.compaction.lag.ms": str(dice.choice((0, 0, 500, 5000))),
    }
    maker = SmallMaker(dice, has_gaps=dice.choice((True, False)), has_compression=False)
    maker.key_count = dice.choice(KEY_COUNTS)
    files, modified, end = _written(kafka, maker, config)
    cleaner_offset: str | None = None
    now_ms = maker.time_ms
    for _ in range(dice.choice((1, 1, 2))):
        now_ms += dice.choice((1, 1000, 5000, 10_000, 100_000_000))
        request = _random_pass(dice, (files, modified, end), config, now_ms, cleaner_offset)
        answer = asked(kafka, "compact", request)
        if answer is None:
            return
        yield request, answer
        files, modified = answer["files"], answer["modified"]
        cleaner_offset = answer.get("endOffset", cleaner_offset)


def _written(kafka: Testee, maker: SmallMaker, config: Json) -> tuple[Json, Json, int]:
    """Return a log that Kafka writes, when each segment was written, and where the log ends."""
    dice = maker.dice
    old_count, old_magic = dice.choice((0, 0, 0, 5)), dice.choice((0, 1))
    entries = [maker.message(old_magic) for _ in range(old_count)]
    entries += [maker.entry() for _ in range(dice.choice((8, 16, 30)))]
    steps = [{"do": "append", "as": "follower", "records": one.hex(), "leaderEpoch": EPOCH} for one in entries]
    answer = asked(kafka, "write", {"files": {}, "config": config, "now": str(START_MS), "steps": steps})
    assert answer is not None
    modified_ms, modified = START_MS, {}
    for name in answer["files"]:
        if name.endswith(".log"):
            modified_ms += dice.choice((0, 100, 1000, 3000))
            modified[name] = str(modified_ms)
    return answer["files"], modified, int(answer["nextOffset"])


def _random_pass(
    dice: random.Random, log: tuple[Json, Json, int], config: Json, now_ms: int, cleaner_offset: str | None
) -> Json:
    """Return a pass over a log: its files, when they were written, and where it ends."""
    files, modified, end = log
    logs = sorted(name for name in files if name.endswith(".log"))
    bases = [int(name[:20]) for name in logs]
    has_transactions = any(
        getattr(frame.header, "is_transactional", False) for name in logs for frame in walk(bytes.fromhex(files[name]))
    )
    options: Json = {"modified": modified}
    # After a restart a broker does not know any more which transactions have ended above its high watermark.
    if dice.randrange(2) and not has_transactions:
        options["highWatermark"] = str(dice.choice(bases))
    start = dice.choice((cleaner_offset, None, None, str(dice.randrange(end + 1))))
    if start is not None:
        options["cleanerOffset"] = start
    if dice.randrange(3) == 0:
        options["mostKeys"] = dice.choice((2, 5))
    return {"files": files, "config": config, "now": str(now_ms), "options": options}


def expected_compaction(request: Json, answer: Json) -> Json:
    """Return the expected answer to a compaction: how far it went, and every file that is compared."""
    offsets = {name: answer[name] for name in ("firstDirtyOffset", "endOffset") if name in answer}
    expect = {**offsets, "files": changed_files(request, answer["files"]), "deleted": answer["deleted"]}
    closed = sorted(answer["modified"])[:-1]
    if "batches" in answer:  # compressed bytes are another compressor's
        logs = {name: [_batch(one) for one in batches] for name, batches in answer["batches"].items()}
        kept = {
            name: data
            for name, data in expect["files"].items()
            if data is None or not name.endswith((".log", ".index"))
        }
        expect |= {"batches": logs, "files": kept}
    return {**expect, "modified": {name: answer["modified"][name] for name in closed}}


def _batch(batch: Json) -> Json:
    """Return a batch without the fields that depend on the compressor, and without empty lists of headers."""
    reported = {
        name: value for name, value in batch.items() if name not in {"position", "sizeInBytes", "crc", "records"}
    }
    records = [{name: value for name, value in one.items() if value or name != "headers"} for one in batch["records"]]
    return {**reported, "records": records}


# Kafka


def asked(kafka: Testee, op: str, request: Json) -> Json | None:
    """Return Kafka's answer; None where its classes fail.

    Raises:
        RuntimeError: the adapter failed.
    """
    reply = kafka.ask({"seq": 1, "op": op, **request}, ALLOWANCE)
    if reply.kind is not Kind.ANSWER or reply.answer is None:
        msg = f"{op}: {reply}"
        raise RuntimeError(msg)
    if not reply.answer.get("ok"):
        print(f"{op}: left out: {reply.answer}")
        return None
    return reply.answer


def expected_retention(request: Json, answer: Json) -> Json:
    """Return the expected answer to retention: removed segments, and every file that is compared."""
    reported = {name: answer[name] for name in ("segments", "logStartOffset", "nextOffset", "deleted")}
    files = changed_files(request, answer["files"])
    # A file without a `.deleted` name was removed when the log was opened, not by retention.
    kept = {name: data for name, data in files.items() if data is not None or f"{name}.deleted" in answer["deleted"]}
    return {**reported, "files": kept}


def completed(kafka: Testee, request: Json, over: dict[str, bytes | None]) -> Json:
    """Return a request with the files that a broker leaves after it has opened and closed the log; some are replaced."""
    if not request["files"]:
        return request
    opening = {"files": request["files"], "config": request["config"], "now": request["now"], "steps": []}
    answer = asked(kafka, "write", opening)
    assert answer is not None
    left = {name: data for name, data in answer["files"].items() if name not in over}
    return {**request, "files": {**left, **hexed({name: data for name, data in over.items() if data is not None})}}


EXPECTED: Final[dict[str, Callable[[Json, Json], Json]]] = {
    "write": expected_write,
    "retain": expected_retention,
    "compact": expected_compaction,
}


def left(op: str, request: Json, answer: Json, newest: Testee) -> Json:
    """Return what is expected after an answer, and what the newest release leaves if that is something else."""
    later = asked(newest, op, request)
    expect = EXPECTED[op](request, answer)
    newer = expect if later is None else EXPECTED[op](request, later)
    contradicts = any(True for _ in differences(expect, newer))
    return {"expect": expect, **({"newer": newer} if contradicts else {})}


def changed(kafka: Testee, newest: Testee, kept: list[Json]) -> Iterator[Json]:
    """Yield every scenario, with what Kafka left; asked only if it is new or has changed."""
    before = {row["name"]: row for row in kept}
    for scenario in scenarios():
        row = before.get(scenario.name, {"digest": ""})
        if row["digest"] == digest(scenario.request):
            yield row
        else:
            yield from answered(kafka, newest, [scenario])
    yield from (row for row in kept if "request" in row)


def recorded(kafka: Testee, newest: Testee) -> Iterator[Json]:
    """Yield every scenario, with what Kafka left."""
    yield from answered(kafka, newest, scenarios())
    yield from drawn(kafka, newest)


def answered(kafka: Testee, newest: Testee, asked_for: Iterable[Scenario]) -> Iterator[Json]:
    """Yield some scenarios, with what Kafka left."""
    for scenario in asked_for:
        request = completed(kafka, scenario.request, dict(scenario.over))
        answer = asked(kafka, scenario.op, request)
        if answer is not None:
            known_by = {"digest": digest(scenario.request), "files": request["files"]}
            found = left(scenario.op, request, answer, newest)
            yield {"name": scenario.name, "op": scenario.op, **known_by, **found}


def drawn(kafka: Testee, newest: Testee) -> Iterator[Json]:
    """Yield the random ones, with what Kafka left."""
    for seed in WRITES:
        request = random_write(seed)
        answer = asked(kafka, "write", request)
        if answer is not None:
            found = left("write", request, answer, newest)
            yield {"name": f"write-life-{seed}", "op": "write", "request": request, **found}
    for seed in COMPACTIONS:
        for number, (request, answer) in enumerate(random_compactions(kafka, seed)):
            name = f"compact-life-{seed}-{number}"
            yield {"name": name, "op": "compact", "request": request, **left("compact", request, answer, newest)}


def main() -> int:
    """Record all scenarios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--changed", action="store_true", help="ask only scenarios that are new or have changed")
    is_partial = parser.parse_args().changed
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["scenarios"] if is_partial else []
    with closing(Builder().testee(listed(OLDEST))) as kafka, closing(Builder().testee(listed(NEWEST))) as newest:
        versions = [testee.start().implementation.version for testee in (kafka, newest)]
        found = list(changed(kafka, newest, kept) if is_partial else recorded(kafka, newest))
    source = f"recorded from kafka-storage {versions[0]}"
    document = {"source": source, "newest": versions[1], "scenarios": found}
    KEPT.write_text(json.dumps(document, indent=0) + "\n", encoding="utf-8")
    print(f"{len(found)} scenarios, {KEPT.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
