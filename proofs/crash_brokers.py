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
import shutil
import subprocess
import tempfile
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from seglog_conformance.crash.history import Naming, Resize, Write
from seglog_conformance.crash.profiles import PROFILES, Cut
from seglog_conformance.crash.recording import missing
from seglog_conformance.crash.run import MEMORY, Result, failure_of, write_failure
from seglog_conformance.crash.workload import ANSWERED, WorkloadError
from seglog_conformance.toolchains import child_processes

from proofs.broker_histories import DISKS, RELEASES, STOP, Recorded, on_disk, record, started_on
from proofs.broker_promises import NO_START, UNREADABLE, complaints
from proofs.crash_disks import missing as missing_disks
from proofs.harness import GrowingFile, Outcome
from proofs.kafka.oracle import CLUSTERS, REPOSITORY, TOOL_CHAIN, Oracle, OracleError
from seglog_format import Severity, verify
from seglog_format.errors import SeglogError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from seglog_conformance.crash.history import History, Operation
    from seglog_conformance.crash.profiles import Changes
    from seglog_conformance.crash.run import Failure, Options
    from seglog_conformance.crash.states import Disk, State

MEASURES: Final = ("conformance/seglog_conformance/crash",)
HASH: Final = re.compile(r"\d{20}|-?\.?[0-9a-f]{32}|-\d{10}(?=[.-])|-\d+(?=\.checkpoint\.part)")
STARTS: Final = {
    "proofs/broker_histories.py": ("Recorded", "started_on", "SETTINGS", "SECONDS", "PAUSE_MS"),
    "fixtures/make/lines.py": ("Cluster", "SETTINGS", "KRAFT", "ZOOKEEPER", "JAVA"),
    "conformance/seglog_conformance/crash/history.py": (),
    "conformance/seglog_conformance/crash/states.py": ("_state", "content", "_tree", "write", "_walk"),
}
"""What makes states and starts brokers on them, by the path of the module; nothing for all of it."""
DISK, SHRUNK = "disk", "shrunk"
"""How the keys of a journal begin that are no cuts."""
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
        for key in (f"{DISK} {release} {name}" for release in options.releases for name in options.disks):
            if key not in journal.disks:
                journal.add(key, on_disk(*key.split()[1:], options.journal))
    examine(listed, histories, journal, end)
    shrink(listed, histories, journal, end)
    for name, failure in failures_of(histories, journal).items():
        target = options.journal / "found" / name.replace(" ", "-")
        shutil.rmtree(target, ignore_errors=True)
        write_failure(failure, target)
    return Outcome(facts_of(listed, journal, histories), [], {"kafka": ", ".join(options.releases)})


def broker_result(
    release: str, seed: int, options: Options, directory: Path, on_states: Callable[[int], None]
) -> Result:
    """Judge a broker on states of one history: the proof behind `seglog conform crash --broker`.

    Args:
        release: of Kafka.
        seed: number of the history.
        options: profile, size of a piece, and number of states.
        directory: where the history and the answers stay.
        on_states: called with the number of states so far.

    Raises:
        WorkloadError: there is no such release, Java or Maven is missing, or the broker or its clients fail.
        RecordingError: nothing can be recorded on this machine.
    """
    if release not in RELEASES:
        msg = f"no broker of Kafka {release}: there are {', '.join(RELEASES)}"
        raise WorkloadError(msg)
    if absent := [program for program in TOOL_CHAIN if child_processes.find_program(program) is None]:
        msg = f"a broker needs Java 17 and Maven; missing: {', '.join(absent)}"
        raise WorkloadError(msg)
    try:
        history = Recorded(release, seed, directory)
        history.piece = options.piece
        if not history.truth_path.exists():
            record(history)
        histories, journal = {history.name: history}, Journal(history.kept / f"{options.profile}-{options.piece}")
        listed = journal.listed(lambda: drawn([history], seed))
        rows = [row for row in listed if options.profile in row["profiles"]][: options.states]
        for count, row in enumerate(rows):
            on_states(count)
            examine([row], histories, journal, float("inf"))
        shrink(rows, histories, journal, float("inf"))
    except (OracleError, RuntimeError, subprocess.SubprocessError) as error:
        msg = f"Kafka {release}: {str(error).partition(chr(10))[0]}"
        raise WorkloadError(msg) from error
    failures = [*failures_of(histories, journal).values()]
    answers = [answer for row in rows if (answer := journal.answers.get(key_of(row)))]
    counts = {"histories": 1, "states": len(answers), "failures": sum(len(each["findings"]) for each in answers)}
    return Result(Counter(counts), failures)


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


def shrink(rows: list[dict[str, Any]], histories: dict[str, Recorded], journal: Journal, end: float) -> None:
    """Shrink a state of each kind of finding, lost orders and release, as long as there is time.

    Each set of lost orders comes first with the newest release, and only then with other kinds and releases.
    """
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (-len(row["profiles"]), len(row["changes"]), row["cut"])):
        history = histories[row["history"]]
        for kind in journal.answers.get(key_of(row), {}).get("findings", ()):
            orders = " ".join(sorted(orders_of(history.history, row)))
            found.setdefault(f"{SHRUNK} {history.release} {kind}: {orders}", (kind, row))
    turns: Counter[str] = Counter()
    keyed = []
    for key in sorted(found, key=lambda key: (" verify " not in key, key), reverse=True):
        turns[orders := key.partition(": ")[2]] += 1
        keyed.append((turns[orders], key))
    with Examiner(histories) as started:
        for _, key in sorted(keyed, key=lambda pair: pair[0]):
            kind, row = found[key]
            if time.monotonic() > end:
                return
            if journal.shrunk.get(key, {}).get("code") != CODE:
                journal.add(key, {"code": CODE, "kind": kind, "row": started.shrunk(row, kind, journal)})


def failures_of(histories: dict[str, Recorded], journal: Journal) -> dict[str, Failure]:
    """Return the findings that are shrunk, by release, kind and order: of each, the state with the fewest losses."""
    failures = {}
    for found in sorted(journal.shrunk.values(), key=lambda found: -len(found["row"]["changes"])):
        row, kind, history = found["row"], found["kind"], histories.get(found["row"]["history"])
        answer = journal.answers[key_of(row)]
        if history is None or kind not in answer["findings"]:
            continue
        disk = history.disk("posix")
        state = disk.state(disk.cut(row["cut"]), frozenset(row["changes"]))
        origin, said = (history.number, row["profiles"][-1]), (kind, answer["findings"][kind])
        control = journal.controls[_cut_of(row)]["first"]
        name = f"{history.release} {kind} {' '.join(sorted(orders_of(history.history, row)))}"
        failures[name] = failure_of(disk, state, origin, said, answer["first"], control)
    return failures


class Journal:
    """The list of states, and what brokers did on them, in a directory."""

    def __init__(self, directory: Path) -> None:
        self._list, self._found = directory / "listed.json", GrowingFile(directory / "found.jsonl")
        self.answers: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.controls: dict[str, dict[str, Any]] = {}
        self.disks: dict[str, dict[str, Any]] = {}
        self.shrunk: dict[str, dict[str, Any]] = {}
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
            {DISK: self.disks, SHRUNK: self.shrunk}.get(key.partition(" ")[0], self.controls)[key] = answer


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
            rows.append(row_of(history, state, step) | {"kind": kind})
    return rows


class Order(NamedTuple):
    """What has to be on the disk before something else.

    Attributes:
        losses: the kinds of operations whose loss breaks it.
        first: what comes first.
        then: what comes then.
        rule: of the specification, if it has one.
    """

    losses: re.Pattern[str]
    first: str
    then: str
    rule: str = ""


ORDERS: Final = {
    "index": Order(
        re.compile(r"topic\S* \.(time)?index$"),
        "the indexes of a segment that has ended, with their length",
        "the next segment, and the clean-shutdown file",
        "SEG-FLS-009",
    ),
    "bootstrap": Order(
        re.compile(r"root bootstrap\.checkpoint"), "the content of `bootstrap.checkpoint`", "the end of the format"
    ),
    "root": Order(
        re.compile(r"log directory$|^\w+ root "),
        "the name of a log directory, and those in it",
        "the end of the format",
    ),
    "metadata": Order(
        re.compile(r"^(mkdir|create|rename) metadata"), "the names of the metadata log", "what a broker acknowledges"
    ),
    "partition": Order(
        re.compile(r"^mkdir (topic|internal)"), "the name of a partition directory", "what a flush acknowledges in it"
    ),
    "segment": Order(
        re.compile(r"^(create|rename) (topic|internal)"),
        "the names of the files of a segment",
        "what a flush acknowledges in it",
        "SEG-FLS-012",
    ),
    "marker": Order(
        re.compile(r"^(write|length) (topic|internal)\S* \.log$"),
        "the end marker of a transaction",
        "the record that the transaction is complete",
    ),
}
"""Orders of syncs, the one that counts first; the loss of what comes first alone made findings."""


def orders_of(history: History, row: dict[str, Any]) -> set[str]:
    """Return the orders that the losses of a state break."""
    kinds = [kind_of(history, number) for number in row["changes"]]
    return {next((name for name, order in ORDERS.items() if order.losses.search(kind)), "other") for kind in kinds}


def row_of(history: Recorded, state: State, step: str) -> dict[str, Any]:
    """Return how a state is listed."""
    changes = sorted(state.changes)
    return {
        "history": history.name,
        "cut": state.cut.number,
        "step": step,
        "kind": kind_of(history.history, changes[-1]) if changes else "nothing",
        "profiles": legal(state.cut, state.changes),
        "changes": changes,
        "lost": [history.history.text(each) for each in changes],
    }


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
    for path, names in STARTS.items():
        tree = ast.parse((REPOSITORY / path).read_text("utf-8"))
        defined = [node for node in ast.walk(tree) if _defined(node) in names] if names else [tree]
        total.update("".join(map(ast.dump, defined)).encode())
    for source in sorted((CLUSTERS.path / "src").rglob("*.java")):
        total.update(source.read_bytes())
    return total.hexdigest()[:16]


def _defined(node: ast.AST) -> str:
    return str(getattr(node, "name", getattr(getattr(node, "target", None), "id", "")))


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

    def shrunk(self, row: dict[str, Any], kind: str, journal: Journal) -> dict[str, Any]:
        """Return the state with the shortest history and the fewest losses that still shows a kind of finding.

        It stays legal under the profile that promises most among those of the state.
        """
        history = self._histories[row["history"]]
        cut = Cut(history.history, row["cut"])
        disk = history.disk(legal(cut, frozenset(row["changes"]))[-1])
        found = row

        def still_shows(state: State) -> bool:
            nonlocal found
            other = row_of(history, state, row["step"])
            if key_of(other) not in journal.answers:
                journal.add(other, self.answer(other, journal))
            if is_shown := kind in journal.answers[key_of(other)]["findings"]:
                found = other
            return is_shown

        def still_shows_at(number: int) -> bool:
            before = frozenset(each for each in state.changes if each < number)
            return still_shows(disk.state(disk.cut(number), before))

        state = disk.shrunk(disk.state(cut, frozenset(row["changes"])), still_shows)
        numbers = [at + 1 for at, event in history.history.markers if event["is"] == ANSWERED]
        shorter = [each for each in numbers if min(state.changes) < each < row["cut"]]
        bisect_left(shorter, True, key=still_shows_at)  # noqa: FBT003
        if found["cut"] < row["cut"]:
            disk.shrunk(disk.state(disk.cut(found["cut"]), frozenset(found["changes"])), still_shows)
        return found

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
    for row, answer in examined:
        counts = {"states": 1, "with findings": bool(answer["findings"]), "of other code": answer.get("code") != CODE}
        by_release[histories[row["history"]].release].update(counts)
    formats = {_cut_of(row) for row in listed if row["step"] == "format"}  # half of one is no start
    for key in journal.controls:
        by_release[key.partition("-")[0]]["controls"] += 1
    found = list(_findings(examined, journal, histories))
    return {
        "listed": len(listed),
        "listDigest": hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16],
        "code": CODE,
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
        "orders": {
            name: {"first": order.first, "then": order.then, "rule": order.rule}
            for name, order in ORDERS.items()
            if any(name in one["orders"] for one in found)
        },
        "findings": found,
    }


def _findings(
    examined: list[tuple[dict[str, Any], dict[str, Any]]], journal: Journal, histories: dict[str, Recorded]
) -> Iterator[dict[str, Any]]:
    """Yield the kinds of findings of each release, and the orders whose breach alone shows each, if that is known.

    What is shrunk has the fewest losses. An order that loses or exposes data in one kind of finding has its operations
    left out of all of them.
    """
    groups: defaultdict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    least: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row, answer in examined:
        history = histories[row["history"]]
        for kind in answer["findings"]:
            orders = " ".join(sorted(orders_of(history.history, row)))
            smaller = journal.shrunk.get(f"{SHRUNK} {history.release} {kind}: {orders}", {"row": row})["row"]
            group = history.release, kind, " ".join(sorted(orders_of(history.history, smaller)))
            groups[group].append(row)
            if group not in least or len(smaller["changes"]) < len(least[group]["changes"]):
                least[group] = smaller
    exposing = {orders for _, kind, orders in groups if EXPOSING.search(kind)}
    for (release, kind, orders), rows in sorted(groups.items(), reverse=True):
        row = least[release, kind, orders]
        cut = Cut(histories[row["history"]].history, row["cut"])
        is_exposing = exposing & {orders, *orders.split()}
        yield {
            "release": release,
            "kind": kind,
            "orders": orders.split(),
            "states": len(rows),
            "profiles": dict(Counter(name for each in rows for name in each["profiles"])),
            "least": {
                "operations": row["cut"],
                "lost": len(row["changes"]),
                "profiles": legal(cut, frozenset(row["changes"])),
                "seed": histories[row["history"]].number,
            },
            **({"disclosure": "withheld"} if is_exposing else {"lost": row["lost"]}),
        }
