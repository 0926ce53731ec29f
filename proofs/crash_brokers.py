"""Start whole stock brokers on the disk states that a power cut may leave of their own log directories.

A broker of each release runs three times on a file system that records every operation: it is formatted, writes to two
log directories, rolls, compacts, removes, moves a partition, ends transactions, stops and is killed. By a seed, one
state of each kind (release, step, profile, what was lost) is drawn and listed before a stock broker starts on any. What
two starts show, and not one on the same cut with nothing lost, is a finding. A later run goes on with the same list.
Brokers also stop on ext4 and xfs that then lose power. Needs Java 17, Maven and FUSE; the disks need root.
"""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from seglog_conformance.crash.history import Naming, Resize, Write
from seglog_conformance.crash.profiles import PROFILES, Cut
from seglog_conformance.crash.recording import missing
from seglog_conformance.crash.run import MEMORY
from seglog_conformance.crash.workload import ANSWERED

from proofs.broker_histories import (
    COMPACT,
    DISKS,
    GROUP,
    KEYS,
    OPENED,
    RELEASES,
    RETAINED,
    STOP,
    TOPICS,
    Recorded,
    on_disk,
    record,
    started_on,
)
from proofs.crash_disks import missing as missing_disks
from proofs.harness import GrowingFile, Outcome
from proofs.kafka.oracle import CLUSTERS, REPOSITORY, Oracle
from seglog_format import Severity, verify
from seglog_format.errors import SeglogError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from seglog_conformance.crash.history import History, Operation
    from seglog_conformance.crash.profiles import Changes
    from seglog_conformance.crash.states import Disk, State

MEASURES: Final = ("conformance/seglog_conformance/crash",)
HASH: Final = re.compile(r"\d{20}|-?\.?[0-9a-f]{32}|-\d{10}(?=[.-])|-\d+(?=\.checkpoint\.part)")
STARTS: Final = tuple(
    REPOSITORY / path
    for path in (
        "proofs/broker_histories.py",
        "fixtures/make/lines.py",
        "conformance/seglog_conformance/crash/history.py",
        "conformance/seglog_conformance/crash/states.py",
    )
)
SHOWN: Final = 3
NO_START, UNREADABLE = "does not start", "cannot be read"
LEADS: Final = {"truncate topic .index", "truncate topic .timeindex", "mapped topic .timeindex", "write topic .log"}
"""Losses after a clean end that Kafka's storage classes did not survive."""
EXPOSING: Final = re.compile("loses|never written|aborted|hole|twice|another offset|begins too late|group")
"""Kinds of findings that lose or expose data: what was lost stays in the journal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--releases", nargs="+", default=list(RELEASES), help="releases of Kafka")
    parser.add_argument("--count", type=int, default=500, help="how many states, controls not counted")
    parser.add_argument("--histories", type=int, default=2, help="how many histories of each release")
    parser.add_argument("--disks", nargs="*", default=list(DISKS), help="file systems that are shut down")
    parser.add_argument("--seconds", type=float, default=1e9, help="no start after so many")
    parser.add_argument("--journal", type=Path, default=Path("build/crash-brokers"), help="directory of what is known")


def prove(options: argparse.Namespace) -> Outcome:
    """Record what is not recorded, list the states if there is no list, and start brokers where there is no answer."""
    if reason := missing():
        return Outcome({}, [reason])
    end, journal = time.monotonic() + options.seconds, Journal(options.journal)
    histories = {}
    for number in range(options.seed, options.seed + options.histories):
        for release in options.releases:
            history = Recorded(release, number, options.journal)
            if not history.truth_path.exists():
                record(history)
            histories[history.name] = history
    listed = journal.listed(lambda: drawn(histories.values(), options.seed))[: options.count]
    if not missing_disks():
        for key in (f"disk {release} {name}" for release in options.releases for name in options.disks):
            if key not in journal.disks:
                journal.add(key, on_disk(*key.split()[1:], options.journal))
    examine(listed, histories, journal, end)
    return Outcome(facts_of(listed, journal, histories), [], {"kafka": ", ".join(options.releases)})


def examine(rows: list[dict[str, Any]], histories: dict[str, Recorded], journal: Journal, end: float) -> None:
    """Start brokers on states without an answer, as long as there is time.

    Where the control does not start or cannot be read either, little can be found: no other state of the cut is tried.
    What other code than this started is asked again: findings at first, all else at the end.
    """
    with Examiner(histories) as started:
        for row in sorted(rows, key=lambda row: _urgency(journal.answers.get(key_of(row)))):
            if time.monotonic() > end:
                return
            control, answer = journal.controls.get(_cut_of(row)), journal.answers.get(key_of(row))
            is_usual = control and {NO_START, UNREADABLE} & set(wrong_with(control, row, histories))
            if not is_usual and (answer is None or answer.get("code") != CODE):
                journal.add(row, started.answer(row, journal))


def _urgency(answer: dict[str, Any] | None) -> int:
    """Return which states come first: findings of other code, states without an answer, other answers of that code."""
    return 1 if answer is None else 2 if not answer.get("findings") or answer.get("code") == CODE else 0


class Journal:
    """The list of states, and what brokers did on them, in a directory."""

    def __init__(self, directory: Path) -> None:
        self._list, self._found = directory / "listed.json", GrowingFile(directory / "found.jsonl")
        self.answers: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.controls: dict[str, dict[str, Any]] = {}
        self.disks: dict[str, dict[str, Any]] = {}
        for key, answer in self._found.lines():
            self._take(key, answer)

    def listed(self, draw: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the list; it is written once."""
        if not self._list.exists():
            self._list.write_text(json.dumps(draw(), indent=0), encoding="utf-8")
        return list(json.loads(self._list.read_text("utf-8")))

    def add(self, key: dict[str, Any] | str, answer: dict[str, Any]) -> None:
        """Add what a broker did on a state, a control, or what a file system left."""
        self._take(key, answer)
        self._found.add([key, answer])

    def _take(self, key: dict[str, Any] | str, answer: dict[str, Any]) -> None:
        if isinstance(key, dict):
            self.answers[key_of(key)] = answer
        else:
            (self.disks if key.startswith("disk ") else self.controls)[key] = answer


# States


def drawn(histories: Iterable[Recorded], seed: int) -> list[dict[str, Any]]:
    """Return states that differ in kind, those of the releases in turn: leads come first, then new kinds of losses."""
    by_release: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for history in histories:
        by_release[history.release] += _states_of(history, random.Random(f"{seed} {history.name}"))
    orders = []
    for release, rows in by_release.items():
        random.Random(f"{seed} {release}").shuffle(rows)
        turns: Counter[str] = Counter()
        keyed = []
        for row in rows:
            turns[row["kind"]] += 1
            keyed.append((turns[row["kind"]] * (row["kind"] not in LEADS or row["step"] != STOP), row))
        orders.append([row for _, row in sorted(keyed, key=lambda pair: pair[0])])
    return [row for turn in zip_longest(*orders) for row in turn if row is not None]


def _states_of(history: Recorded, dice: random.Random) -> list[dict[str, Any]]:
    rows, seen, operations = [], set(), history.history
    disks = {profile: history.disk(profile) for profile in PROFILES}
    by_step: defaultdict[str, list[int]] = defaultdict(list)
    last = 0
    for number, event in operations.markers:
        if event["is"] == ANSWERED and event["do"] != "look":
            by_step[event["do"]] += [number + 1, dice.randint(last + 1, number)]
        last = number
    cuts = [(dice.choice(numbers), step) for step, numbers in by_step.items()]
    cuts += [(by_step[STOP][0], STOP)]
    for number, step in cuts:
        cut = disks["posix"].cut(number)
        whole = disks["posix"].state(cut)
        control = whole.digest
        for kind, wanted in _losses(operations, cut.candidates, dice):
            profile = dice.choice(list(PROFILES))
            state = disks[profile].state(cut, wanted)
            if state.digest == control or (step, profile, kind) in seen or state.digest in seen:
                continue
            seen |= {(step, profile, kind), state.digest}
            rows.append(
                {
                    "history": history.name,
                    "cut": number,
                    "step": step,
                    "kind": kind,
                    "profiles": legal(cut, state.changes),
                    "changes": sorted(state.changes),
                    "lost": [operations.text(each) for each in sorted(state.changes)],
                }
            )
    return rows


def legal(cut: Cut, changes: Changes) -> list[str]:
    """Return the profiles under which a state is legal."""
    return [name for name, nearest in PROFILES.items() if nearest(cut, changes) == changes]


def _losses(history: History, candidates: Iterable[int], dice: random.Random) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield one loss of each kind: a single operation, all of a file or directory, everything."""
    single: defaultdict[str, list[frozenset[int]]] = defaultdict(list)
    of_node: defaultdict[object, set[int]] = defaultdict(set)
    for number in candidates:
        operation = history.operations[number]
        single[kind_of(history, number)].append(frozenset({number}))
        of_node[getattr(operation, "node", getattr(operation, "directories", None))].add(number)
    for numbers in of_node.values():
        if len(numbers) > 1:
            verb, _, file = kind_of(history, max(numbers)).partition(" ")
            names = isinstance(history.operations[max(numbers)], Naming)
            single[f"names beside {verb} {file}" if names else f"all of {file}"].append(frozenset(numbers))
    if single:
        single["everything"].append(frozenset(number for numbers in of_node.values() for number in numbers))
    for kind, sets in sorted(single.items()):
        yield kind, dice.choice(sets)


def kind_of(history: History, number: int) -> str:
    """Return what an operation does, and to which kind of file."""
    text, operation = history.texts[number], history.operations[number]
    path = next(word for word in reversed(text.split()) if word.startswith("/"))
    return f"{_verb(text, operation)} {_class(path)}"


def _verb(text: str, operation: Operation) -> str:
    match operation:
        case Write(is_mapped=True):
            return "mapped"
        case Resize(by_write=True):
            return "length"
        case Write() | Naming() | Resize():
            return text.partition(" ")[0]
        case _:
            raise AssertionError(text)


def _class(path: str) -> str:
    _, _, *inside = path.split("/")
    if not inside:
        return "log directory"
    if len(inside) == 1 and "." not in inside[0] and "-checkpoint" not in inside[0]:
        inside.append("")
    if len(inside) == 1 and not re.search(r"-\d+\.[0-9a-f]{32}-", inside[0]):
        return f"root {inside[0]}"
    topic, name = inside[0], inside[-1] if len(inside) > 1 else ""
    group = "metadata" if topic.startswith("__cluster") else "internal" if topic.startswith("__") else "topic"
    group += "-future" if topic.endswith("-future") else "-deleted" if topic.endswith("-delete") else ""
    return f"{group} {HASH.sub('', name) or 'directory'}"


# Starting and judging


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what makes a state: its history, the cut and the changes; not what a model says of it."""
    return row["history"], row["cut"], *row["changes"]


def code_digest() -> str:
    """Return a digest of the code that makes states and starts brokers on them, without its comments."""
    total = hashlib.sha256()
    for path in (*STARTS, *sorted((CLUSTERS.path / "src").rglob("*.java"))):
        text = path.read_text("utf-8")
        total.update((ast.dump(ast.parse(text)) if path.suffix == ".py" else text).encode())
    return total.hexdigest()[:16]


CODE: Final = code_digest()


def wrong_with(answer: dict[str, Any], row: dict[str, Any], histories: dict[str, Recorded]) -> dict[str, str]:
    """Return what is wrong with the first start of an answer or control, by the rules of now if the answer has it."""
    if "first" in answer:
        return complaints(histories[row["history"]], answer["first"], row["cut"])
    found: dict[str, str] = answer["wrong"]
    return found


def _row_of(key: str) -> dict[str, Any]:
    history, _, cut = key.partition(" ")
    return {"history": history, "cut": int(cut)}


def _cut_of(row: dict[str, Any]) -> str:
    return f"{row['history']} {row['cut']}"


class Examiner:
    """Starts brokers on states."""

    def __init__(self, histories: dict[str, Recorded]) -> None:
        self._histories = histories
        self._oracles: dict[str, Oracle] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for oracle in self._oracles.values():
            oracle.close()

    def answer(self, row: dict[str, Any], journal: Journal) -> dict[str, Any]:
        """Return what starts on a state showed, and what is wrong on it and not on its control.

        What a second start does not show does not count. A control whose state has nothing wrong is not needed.
        """
        history = self._histories[row["history"]]
        disk = history.disk("posix")
        cut, key = disk.cut(row["cut"]), _cut_of(row)
        state = disk.state(cut, frozenset(row["changes"]))
        found = self._looked(history, disk, state)
        wrong = wrong_with(found, row, self._histories)
        if wrong and journal.controls.get(key, {}).get("code") != CODE:
            journal.add(key, self._looked(history, disk, disk.state(cut)))
        if wrong:
            usual = wrong_with(journal.controls[key], row, self._histories)
            wrong = {kind: text for kind, text in wrong.items() if kind not in usual}
        if wrong:
            found["again"] = self._looked(history, disk, state)["first"]
            again = complaints(history, found["again"], row["cut"])
            wrong = {kind: text for kind, text in wrong.items() if kind in again}
        return found | {"findings": wrong}

    def _looked(self, history: Recorded, disk: Disk, state: State) -> dict[str, Any]:
        if history.clients not in self._oracles:
            self._oracles[history.clients] = Oracle(history.clients, project=CLUSTERS)
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="seglog-brokers-", dir=MEMORY if MEMORY.is_dir() else None) as name:
            logs, home = Path(name, "logs"), Path(name, "home")
            logs.mkdir()
            disk.write(state, logs)
            oracle = self._oracles[history.clients]
            seen, errors = started_on(history, home, logs, oracle, history.kept / "zookeeper")
            seen["verify"] = findings(logs)
        return {"code": CODE, "first": seen, "errors": errors, "seconds": round(time.monotonic() - started, 1)}


def findings(logs: Path) -> dict[str, str]:
    """Return the errors that `seglog verify` finds, one of each requirement."""
    found = {}
    for root in sorted(path for path in logs.iterdir() if path.is_dir()):
        with suppress(SeglogError):
            for each in verify(root):
                if each.severity is Severity.ERROR:
                    found.setdefault(each.requirement, str(each).replace(str(logs), ""))
    return found


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


# Report


def facts_of(listed: list[dict[str, Any]], journal: Journal, histories: dict[str, Recorded]) -> dict[str, Any]:
    """Return the counts, and the kinds of findings; which profiles allow a state is asked of the model of now."""
    examined = [
        (
            row | {"profiles": legal(Cut(histories[row["history"]].history, row["cut"]), frozenset(row["changes"]))},
            answer,
        )
        for row in listed
        if (answer := journal.answers.get(key_of(row)))
    ]
    by_release: defaultdict[str, Counter[str]] = defaultdict(Counter)
    kinds: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row, answer in examined:
        release = histories[row["history"]].release
        by_release[release].update(
            {"states": 1, "with findings": bool(answer["findings"]), "of other code": answer.get("code") != CODE}
        )
        for kind in answer["findings"]:
            kinds[release, kind].append(row)
    formats = {_cut_of(row) for row in listed if row["step"] == "format"}  # half of one is no start
    for key in journal.controls:
        by_release[key.partition("-")[0]]["controls"] += 1
    return {
        "listed": len(listed),
        "listDigest": hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16],
        "states": len(examined),
        "kinds": len(
            {(histories[row["history"]].release, row["step"], *row["profiles"], row["kind"]) for row, _ in examined}
        ),
        "byRelease": {release: dict(counts) for release, counts in sorted(by_release.items(), reverse=True)},
        "wrongWithoutLoss": [
            {"release": key.partition("-")[0], "wrong": sorted(wrong), "errors": found["errors"][:2]}
            for key, found in sorted(journal.controls.items(), reverse=True)
            if key not in formats and (wrong := wrong_with(found, _row_of(key), histories))
        ],
        "disks": {key.removeprefix("disk "): found for key, found in sorted(journal.disks.items(), reverse=True)},
        "operations": {name: len(history.history) for name, history in histories.items()},
        "findings": [
            {
                "release": release,
                "kind": kind,
                "states": len(rows),
                "profiles": dict(Counter(name for row in rows for name in row["profiles"])),
                **(
                    {"disclosure": "withheld"}
                    if EXPOSING.search(kind)
                    else {"lost": sorted({row["kind"] for row in rows})}
                ),
            }
            for (release, kind), rows in sorted(kinds.items())
        ],
    }
