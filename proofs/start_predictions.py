"""Predict what stock brokers do to damaged log directories when they start, then start them, and compare.

A seed lists the directories: partitions that brokers wrote, each with one change or damage. Those of `LISTED` were
committed before a broker started on one of them. `seglog doctor` says which of them keep a broker from starting or
become stray, `recover --like-broker` says which files the others have afterwards, and the reader says where the log
then begins and ends, where its last stable offset is, and what a consumer of committed records gets. All of this is
written to the journal before the broker runs, and so are two figures: how many of these first predictions were right,
and how many of those that the code of today makes. Partitions that should not keep a broker from starting are judged by
one start together; every other one gets a start of its own. Needs Java 17 and Maven.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_conformance.toolchains import child_processes

from proofs.damaging.kinds import DAMAGES
from proofs.damaging.sources import sources
from proofs.harness import GrowingFile, Outcome
from proofs.kafka.broker import KEPT, TOPIC_CONFIG, Broker
from proofs.kafka.oracle import CLUSTERS, Oracle, OracleError
from proofs.kafka.served import digest_of
from proofs.kafka.waiting import wait_for
from seglog_format import BrokerGeneration, RecoveryOptions, open_partition, recover
from seglog_format.codec.side_files import decode_producer_snapshot
from seglog_format.errors import Location, SeglogError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.types import Message, Partition, Record

    Change = Callable[[Path, random.Random], str]

CLEAN: Final = ".kafka_cleanshutdown"
META: Final = "meta.properties"
SETTINGS: Final = """\
log.segment.delete.delay.ms=3600000
log.initial.task.delay.ms=3600000
initial.broker.registration.timeout.ms=600000
broker.session.timeout.ms=120000
"""
"""What a broker gives up stays until it is compared; a busy machine does not matter."""
LIFETIME_SECONDS: Final = 3600
OPTIONS: Final = RecoveryOptions(like_broker=True, interval_bytes=4096, generation=BrokerGeneration.V4_1)
UNUSED: Final = re.compile("sparse|directory|foreign|link|pipe|forbid")
"""Damages that are none of a single partition directory, or that a broker, which runs as root, does not notice."""
EXCEPTION: Final = re.compile(r"(?:[a-z]+\.)+[A-Z]\w+(?:Exception|Error)\b.*")
NO_START: Final = "no start"
"""The kind of a statement of the doctor."""
JOURNAL: Final = Path("build/start-predictions.jsonl")
LISTED: Final = Path(__file__).with_name("start_predictions.jsonl")
"""A seed and a case in each line."""
PREDICTED: Final = "predicted"
FOUND: Final = "found"
"""Of lines of the journal."""
STRAY: Final = "a broker renames the directory to -stray"
"""What a statement of the doctor begins with."""
IN_ONE_START: Final = 75
ATTEMPTS: Final = 3
SINGLE: Final = 3
"""Starts on a single case after each start on many; the others come last."""
SIZES: Final = {".log": 1, ".index": 8, ".timeindex": 12, ".txnindex": 34}
"""Of an entry."""


class Case(NamedTuple):
    """A partition directory with a change.

    Attributes:
        number: by which it repeats.
        kind: of the change.
        name: of the directory.
        text: the change, in words.
        is_clean: whether the log directory was closed cleanly.
        recovery_point: as checkpointed.
        log_start: as checkpointed.
    """

    number: int
    kind: str
    name: str
    text: str
    is_clean: bool
    recovery_point: int
    log_start: int


def _renamed(suffix: str, *endings: str) -> Change:
    def rename(path: Path, dice: random.Random) -> str:
        stem = dice.choice(sorted(path.glob("*.log"))).stem
        for found in (path / f"{stem}{ending}" for ending in endings):
            if found.exists():
                found.rename(f"{found}{suffix}")
        return f"rename {stem}{endings} to {suffix}"

    return rename


def _without(ending: str) -> Change:
    def remove(path: Path, _dice: random.Random) -> str:
        gone = [each for each in sorted(path.iterdir()) if each.name.endswith(ending)]
        for each in gone:
            each.unlink()
        return f"remove {len(gone)} files"

    return remove


def _text(name: str, *texts: str) -> Change:
    def write(path: Path, dice: random.Random) -> str:
        text = dice.choice(texts)
        (path / name).write_text(text.format(topic=path.name[:-2]))
        return f"{name}: {text!r}"

    return write


def _resized(path: Path, dice: random.Random) -> str:
    log, change = max(path.glob("*.log")), dice.choice((-1, -30, -100, 1, 4, 17, 61, 4096))
    size = max(log.stat().st_size + change, 0)
    os.truncate(log, size)
    return f"{change:+} bytes at the end of {log.name}, zeros if more: {size}"


def _beside(*names: str) -> Change:
    def add(path: Path, dice: random.Random) -> str:
        target = path.parent / dice.choice(names).format(int(path.parent.name) + 200)
        shutil.copytree(path, target) if dice.randrange(2) else target.mkdir()
        return f"add {target.name}, {len(list(target.iterdir()))} files"

    return add


def _nothing(_path: Path, _dice: random.Random) -> str:
    return ""


CHANGES: Final[dict[str, Change]] = {
    "nothing changed": _nothing,
    "recovery point anywhere": _nothing,
    "log start inside": _nothing,
    "log start above the end": _nothing,
    "torn tail or zeros": _resized,
    "no offset indexes": _without(".index"),
    "no time indexes": _without(".timeindex"),
    "no transaction indexes": _without(".txnindex"),
    "no producer snapshots": _without(".snapshot"),
    "no leader epochs": _without("leader-epoch-checkpoint"),
    "finished replacement": _renamed(".swap", ".log", ".index", ".timeindex", ".txnindex"),
    "unfinished replacement": _renamed(".cleaned", ".log", ".index"),
    "log set aside": _renamed(".deleted", ".log"),
    "partition.metadata missing": _without(KEPT),
    "partition.metadata of another topic": _text(KEPT, "version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAQ"),
    "partition.metadata unreadable": _text(
        KEPT, "", "version: 0\n", "hello", "version: 1\ntopic_id: AAAAAAAAAAEAAAAAAAAAAQ"
    ),
    "directory that is no partition": _beside(
        "lost+found", "backup", "orders-x", ".snapshot", "-0", "p0-0.bak", "a-b-"
    ),
    "directory of no topic": _beside("unknown-{}", ".Trash-{}", "a b-{}", "p000-{}"),
    "directory being deleted": _beside("gone-{}.0123456789abcdef0123456789abcdef-delete"),
    META: _text(
        f"../{META}",
        "",
        "version=1\n",
        "version=2\nnode.id=1\ncluster.id=A\n",
        "version=0\nbroker.id=1\ncluster.id=A\n",
        "hello",
    ),
    "recovery points": _text(
        "../recovery-point-offset-checkpoint",
        *(TEXTS := ("", "0\n1\n", "1\n0\n", "hello\n", "0\n2\n{topic} 0 1\n", "0\n1\n{topic} 0 -1\n")),
    ),
    "log start offsets": _text("../log-start-offset-checkpoint", *TEXTS),
}
ALONE: Final = {META, "recovery points", "log start offsets"}
"""Kinds that concern every partition of a log directory."""
DAMAGING: Final = {each.__name__.strip("_"): each for each in DAMAGES if not UNUSED.search(each.__name__)}
KINDS: Final = (*CHANGES, *DAMAGING)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--kafka", nargs="+", default=["4.4", "3.9"], help="releases of the brokers, in turn")
    parser.add_argument("--cases", type=int, default=10 * len(KINDS), help="partition directories")
    parser.add_argument("--minutes", type=float, default=300, help="after these, nothing more is started")
    parser.add_argument(
        "--journal", type=Path, default=JOURNAL, help="what brokers did goes there, and is not asked again"
    )
    parser.add_argument(
        "--list", action="store_true", help=f"write the cases to {LISTED.name}, to be committed, and start nothing"
    )


def prove(options: argparse.Namespace) -> Outcome:
    """Try the directories, in groups with and without a clean shutdown, with brokers of each release in turn."""
    if options.list:
        return Outcome({"listed": write_list(options.seed, options.cases)})
    trials, deadline = Trials(options.seed, Journal(options.journal)), time.monotonic() + 60 * options.minutes
    with ExitStack() as closing:

        @cache
        def home_of(release: str) -> Home:
            root = closing.enter_context(tempfile.TemporaryDirectory(prefix="starts-"))
            kept = options.journal.absolute().with_suffix("") / release
            return Home(release, Path(root), kept, closing.enter_context(Oracle(release, project=CLUSTERS)))

        for turn, first in enumerate(range(0, options.cases, IN_ONE_START)):
            last = min(first + IN_ONE_START, options.cases)
            release = options.kafka[turn % len(options.kafka)]
            if time.monotonic() < deadline or trials.journal.holds(release, range(first, last)):
                trials.check(home_of(release), range(first, last), deadline)
                trials.check_alone(SINGLE, deadline)
        trials.check_alone(len(trials.alone), deadline)
    return trials.outcome(options.kafka)


def write_list(seed: int, count: int) -> int:
    """Write the list of the cases of a seed; return how many there are."""
    with tempfile.TemporaryDirectory(prefix="starts-") as root:
        stage = Stage(Path(root) / "staged", Path(root) / "logs")
        for index in range(IN_ONE_START):
            kept = stage.logs / f"p{index:03}-0" / KEPT
            kept.parent.mkdir(parents=True)
            kept.write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAQ", encoding="utf-8")
        lines = [json.dumps([seed, *case_of(seed, number, stage)]) for number in range(count)]
    LISTED.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return len(lines)


class Stage(NamedTuple):
    """Where cases are made; `logs` has the one file of each partition that a case keeps."""

    staged: Path
    logs: Path


class Home:
    """The log directory of a stopped broker, with an empty topic for each case.

    Attributes:
        logs: the log directory.
        scratch: directory for copies.
    """

    def __init__(self, release: str, root: Path, home: Path, oracle: Oracle) -> None:
        self.release, self.scratch, self.oracle = release, root, oracle
        self.staged, self.logs = root / "staged", home / "logs"
        if (self.logs / CLEAN).exists():
            return  # of an earlier run
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        broker = Broker(release, home, project=CLUSTERS, settings=SETTINGS)
        names = [f"p{number:03}" for number in range(IN_ONE_START)]
        topics = {name: {"partitions": 1, "replication": 1, "config": TOPIC_CONFIG} for name in names}
        with broker.running():
            oracle.must("create", bootstrap=broker.address, topics=topics)
            wait_for(
                "the partitions are there", lambda: all((self.logs / f"{each}-0" / KEPT).exists() for each in names)
            )

    def names(self, case: Case) -> list[str]:
        """Return the names of the files and directories that a case puts into a log directory."""
        return sorted(path.name for path in (self.staged / str(case.number)).iterdir())

    def copy(self, name: str, cases: Iterable[Case]) -> Path:
        """Return a copy of the log directory, in which cases are in the place of partitions."""
        logs = self.scratch / name / "logs"
        shutil.rmtree(logs.parent, ignore_errors=True)
        shutil.copytree(self.logs, logs)
        given = list(cases)
        for case in given:
            shutil.rmtree(logs / case.name)
        for file, field in (("recovery-point", "recovery_point"), ("log-start", "log_start")):
            lines = [f"{case.name[:-2]} 0 {getattr(case, field)}" for case in given]
            (logs / f"{file}-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
        for case in given:
            shutil.copytree(self.staged / str(case.number), logs, symlinks=True, dirs_exist_ok=True)
        if not given[0].is_clean:
            (logs / CLEAN).unlink()
        return logs


class Journal:
    """What was first predicted, and what brokers then did, a line each.

    A run goes on where the last one ended, and judges all of it again: predictions are made by the code of today,
    without a look at the journal.
    """

    def __init__(self, path: Path) -> None:
        self._file = GrowingFile(path)
        self._predicted: dict[str, Any] = {}
        self._found: dict[str, Any] = {}
        for key, kind, said in self._file.lines():
            (self._predicted if kind == PREDICTED else self._found)[json.dumps(key)] = said

    def found(self, home: Home, case: Case) -> dict[str, Any] | list[str] | None:
        """Return the outcome of a case, its exceptions if the broker did not start; None if it was not tried."""
        return self._found.get(json.dumps([home.release, *case]))

    def holds(self, release: str, numbers: range) -> bool:
        """Return whether one of some cases was tried."""
        return any(key[0] == release and key[1] in numbers for key in map(json.loads, self._found))

    def predicted(self, home: Home, case: Case) -> dict[str, Any] | str:
        """Return what was predicted of a case before the first start on it."""
        return self._predicted[json.dumps([home.release, *case])]

    def predict(self, home: Home, case: Case, predicted: dict[str, Any] | str) -> None:
        """Add a prediction, unless there is one of the case."""
        if json.dumps([home.release, *case]) not in self._predicted:
            self._note(self._predicted, home, case, PREDICTED, predicted)

    def note(self, home: Home, case: Case, found: dict[str, Any] | list[str]) -> None:
        """Add an outcome."""
        self._note(self._found, home, case, FOUND, found)

    def _note(self, known: dict[str, Any], home: Home, case: Case, kind: str, said: object) -> None:
        key = [home.release, *case]
        known[json.dumps(key)] = said
        self._file.add([key, kind, said])


class Trials:
    """Makes cases, predicts, starts brokers, and counts what was right."""

    def __init__(self, seed: int, journal: Journal) -> None:
        self.seed, self.journal = seed, journal
        self.alone: list[tuple[Home, Case]] = []
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: dict[str, Counter[str]] = defaultdict(Counter)
        self.misses: list[str] = []
        self.starts = self.refused = self.left = self.listed = self.right_at_first = 0
        self.list = {tuple(line) for line in map(json.loads, LISTED.read_text(encoding="utf-8").splitlines())}

    def check(self, home: Home, numbers: Iterable[int], deadline: float) -> None:
        """Predict what becomes of some cases, then start a broker on those that should not keep it from starting."""
        cases = [case_of(self.seed, number, home) for number in numbers]
        predicted = self._predict(home, [case for case in cases if case.kind not in ALONE])
        together = [case for case in predicted if not isinstance(predicted[case], str)]
        while left := [case for case in together if self.journal.found(home, case) is None]:
            if time.monotonic() >= deadline:
                break
            self._start(home, left, predicted)
        self.left += len(left)
        for case in (case for case in together if case not in left):
            self._compare(home, case, predicted[case])
        self.alone += [(home, case) for case in cases if case not in together]
        random.Random(self.seed).shuffle(self.alone)

    def check_alone(self, count: int, deadline: float) -> None:
        """Start a broker on single cases, so many at most; those of the journal take no start."""
        left = []
        for home, case in reversed(self.alone):
            is_known = self.journal.found(home, case) is not None
            if is_known or (count > 0 and time.monotonic() < deadline):
                predicted = self._predict(home, [case])
                if not is_known:
                    self._start(home, [case], predicted)
                    count -= 1
                self._compare(home, case, predicted[case])
            else:
                left.append((home, case))
        self.alone = left[::-1]

    @staticmethod
    def _predict(home: Home, cases: list[Case]) -> dict[Case, Any]:
        """Return why a broker does not start on a case, or what it makes of it."""
        logs = home.copy("predicted", cases)
        said = statements(logs)
        refused = {case: found[0] for case in cases if (found := refusals(said, home, case))}
        return refused | {case: prediction(logs, case, home, said) for case in cases if case not in refused}

    def _start(self, home: Home, cases: list[Case], predicted: dict[Case, Any]) -> None:
        """Start a broker on cases, and note what it makes of them, or which of them keep it from starting."""
        for case in cases:
            self.journal.predict(home, case, predicted[case])
        logs = home.copy("started", cases)
        broker, answers = Broker(home.release, logs.parent, project=CLUSTERS, logs=logs, settings=SETTINGS), {}
        self.starts += 1
        is_running = False
        with suppress(OracleError), broker.running(LIFETIME_SECONDS):
            is_running = True
            for case in cases:
                answers[case.name] = served(home, broker, case)
        if is_running:
            for case in cases:
                self.journal.note(home, case, outcome(logs, case, home, answers[case.name]))
            return
        errors = exceptions(broker, home)[:3]
        said = "".join(errors)
        found = [case for case in cases if len(cases) == 1 or any(name in said for name in home.names(case))]
        if not found:
            raise OracleError(said or broker.output.read_text(errors="replace")[-3000:])
        for case in found:
            self.journal.note(home, case, errors or ["no exception"])

    def _compare(self, home: Home, case: Case, predicted: dict[str, Any] | str) -> None:
        """Compare a prediction, a text if no broker should start, with what a broker did: a list if it did not."""
        found = self.journal.found(home, case)
        assert found is not None
        if isinstance(found, list):
            self.refused += 1
            self.reasons[case.kind].update(found[:1])
        wrong = faults(predicted, found)
        self.listed += (self.seed, *case) in self.list
        self.right_at_first += not faults(self.journal.predicted(home, case), found)
        self.counts[case.kind]["right"] += not wrong
        self.counts[case.kind]["count"] += 1
        if wrong:
            state = "clean" if case.is_clean else "unclean"
            where = f"Kafka {home.release}, case {case.number}, {state}: {case.kind}: {case.text}"
            self.misses.append(f"{where}: {'; '.join(wrong)}"[:600])
            print(self.misses[-1], flush=True)

    def outcome(self, releases: list[str]) -> Outcome:
        """Return the figures."""
        count, right = (sum(each[name] for each in self.counts.values()) for name in ("count", "right"))
        kinds = {kind: dict(self.counts[kind]) for kind in KINDS if kind in self.counts}
        facts = {
            "directories": count,
            "listedBefore": self.listed,
            "right": right,
            "rightAtFirst": self.right_at_first,
            "notJudged": self.left + len(self.alone),
            "brokersEnded": self.refused,
            "starts": self.starts,
            "kinds": kinds,
            "exceptions": {kind: dict(self.reasons[kind]) for kind in KINDS if kind in self.reasons},
            "misses": self.misses,
        }
        return Outcome(facts, [], {"kafka": ", ".join(CLUSTERS.releases[each] for each in releases)})


def served(home: Home, broker: Broker, case: Case) -> dict[str, Any]:
    """Return what a consumer gets; on a busy machine a partition may be without a leader for a while."""
    asked = {"topic": case.name[:-2], "partition": 0, "isolation": "read_committed", "seconds": 10}
    answer: dict[str, Any] = {}
    for _ in range(ATTEMPTS):
        answer = home.oracle.ask("served", bootstrap=broker.address, **asked)
        if "begin" in answer or answer.get("error") != "TimeoutException":
            break
    return answer


def exceptions(broker: Broker, home: Home) -> list[str]:
    """Return the lines with exceptions of a broker, each once, without the path of its log directory."""
    output = broker.output.read_text(encoding="utf-8", errors="replace").replace(str(home.scratch), "")
    return list(dict.fromkeys(found[:200] for found in EXCEPTION.findall(output)))


def case_of(seed: int, number: int, home: Home | Stage) -> Case:
    """Make a case: groups of it are with and without a clean shutdown."""
    turn, index = divmod(number, IN_ONE_START)
    return made(seed, number, home, f"p{index:03}-0", is_clean=turn % 4 in {1, 2})


def made(seed: int, number: int, home: Home | Stage, name: str, *, is_clean: bool) -> Case:
    """Make a case: a partition that a broker wrote, changed once."""
    dice = random.Random(f"{seed} {number}")
    kind = KINDS[number % len(KINDS)]
    root, outside = home.staged / str(number), home.staged / f"{number}-outside"
    path = root / name
    outside.mkdir(parents=True)
    source = dice.choice(usable())
    path.mkdir(parents=True)
    for file, data in source.files.items():
        (path / file).write_bytes(data)
    shutil.copyfile(home.logs / name / KEPT, path / KEPT)
    with open_partition(path) as partition:
        start, end = partition.log_start_offset, partition.log_end_offset
    point = dice.choice((0, start, end, dice.randint(start, end)))
    if kind == "recovery point anywhere":
        point = dice.randint(0, end + 10)
    elif kind == "log start inside":
        start = dice.randint(start, end)
    elif kind == "log start above the end":
        start = end + dice.randint(1, 100)
    text = CHANGES[kind](path, dice) if kind in CHANGES else DAMAGING[kind](root, outside, dice)
    return Case(number, kind, name, f"{source.case}/{source.name}: {text}", is_clean, point, start)


@cache
def usable() -> list[Any]:
    """Return the partitions that are no metadata log: a broker of this release has its own.

    Those of the repository come first, wherever it lies, so that a seed means the same cases everywhere.
    """
    found = [source for source in sources() if not source.name.startswith(("__cluster_metadata", "@metadata"))]
    return sorted(found, key=lambda source: source.case.startswith("authentic/"))


def statements(logs: Path) -> list[dict[str, Any]]:
    """Return what `seglog doctor` says of a log directory."""
    command = (sys.executable, "-P", "-m", "seglog_format.cli", "doctor", "--json", str(logs))
    written = child_processes.run(command, directory=logs, capture_output=True, text=True, check=False).stdout
    return [json.loads(line) for line in written.splitlines()]


def about(said: list[dict[str, Any]], home: Home, case: Case) -> list[dict[str, Any]]:
    """Return the statements about what a case put into a log directory."""
    logs = home.scratch / "predicted" / "logs"
    return [
        each
        for each in said
        if Path(each["file"]).relative_to(logs).parts[:1] in {(name,) for name in home.names(case)}
    ]


def refusals(said: list[dict[str, Any]], home: Home, case: Case) -> list[str]:
    """Return the statements that a broker does not start because of a case."""
    return [each["what"] for each in about(said, home, case) if each["kind"] == NO_START]


def prediction(logs: Path, case: Case, home: Home, said: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a start makes of a case: its directories and files, and what a consumer then gets."""
    own = about(said, home, case)
    strays = {Path(each["file"].removeprefix(f"{logs}/")).parts[0] for each in own if each["what"].startswith(STRAY)}
    found: dict[str, Any] = {"strays": sorted(strays)}
    if case.name in strays:
        return found | {"begin": 0, "end": 0}
    path = logs / case.name
    try:
        for planned in range(2):  # the second plan, which is not carried out, is that of what the first one left
            if case.is_clean:
                (logs / CLEAN).write_text('{"version":0,"brokerEpoch":1}')
            plan = recover(path, options=OPTIONS)
            log_end = (plan if planned else plan.apply()).plan.log_end_offset
    except SeglogError as error:
        return {"plan": f"none: {error}"}
    is_forgotten = any("forgets producer" in each["what"] for each in own)
    with open_partition(path) as partition:
        found |= {"begin": partition.log_start_offset, "log_end": log_end}
        stored = next((each for each in partition.listing.snapshots if each.base_offset == log_end), None)
        is_open = partition.transactions.open_offsets and not is_forgotten
        if max(partition.log_end_offset, partition.log_start_offset) < log_end:
            found["unread"] = f"an index says that the log ends at {log_end}: no fetch above the last record succeeds"
        if partition.transactions.damage is None:
            found["end"] = min(partition.last_stable_offset, log_end) if is_open else log_end
        elif stored is not None:
            found["end"] = min(open_in(stored.path), default=log_end)
            is_forgotten = True  # the reader does not decide; a broker goes by the snapshot and the indexes
        records = delivered(partition) if is_forgotten else committed(partition)
        end = found.get("end", log_end)
        found["records"], found["sha256"] = digest_of(_below(end, records, partition.log_start_offset, found))
    return found | {"files": files_of(path)}


def _below(
    end: int, records: Iterable[Record | Message], reached: int, found: dict[str, Any]
) -> Iterator[Record | Message]:
    """Yield the records below an offset, and note damage before it."""
    try:
        for each in records:
            if each.offset >= end:
                return
            reached = each.offset + 1
            yield each
    except SeglogError as error:
        if reached < end:
            found["unread"] = str(error)


def open_in(snapshot: Path) -> list[int]:
    """Return the first offset of each transaction that is open by a producer snapshot."""
    producers = decode_producer_snapshot(snapshot.read_bytes(), Location(str(snapshot))).producers
    return [each.current_txn_first_offset for each in producers if each.current_txn_first_offset >= 0]


def committed(partition: Partition) -> Iterator[Record | Message]:
    """Yield the committed records; damage that shows before the first one is raised with it."""
    yield from partition.records(isolation="read_committed", on_gap=lambda _gap: None)


def delivered(partition: Partition) -> Iterator[Record | Message]:
    """Yield the records that a consumer of committed records gets where a broker knows of no open transaction."""
    listed = [each for segment in partition.segments for each in getattr(segment.transaction_index, "entries", ())]
    for batch in partition.batches():
        header = batch.header
        is_listed = getattr(header, "is_transactional", False) and any(
            each.producer_id == header.producer_id and each.first_offset <= header.base_offset < each.last_offset
            for each in listed
        )
        if not getattr(header, "is_control", False) and not is_listed:
            yield from (each for each in batch.records if each.offset >= partition.log_start_offset)


def outcome(logs: Path, case: Case, home: Home, answer: dict[str, Any]) -> dict[str, Any]:
    """Return what a broker made of a partition."""
    renamed = {path.name[:-39] for path in logs.iterdir() if path.name.endswith("-stray")}
    points = dict(
        line.rsplit(" ", 1) for line in (logs / "recovery-point-offset-checkpoint").read_text().splitlines()[2:]
    )
    found = {
        "strays": sorted(renamed.intersection(home.names(case))),
        **{name: answer.get(name) for name in ("begin", "end", "records", "sha256")},
        "log_end": int(points.get(f"{case.name[:-2]} 0", -1)),
    }
    if "error" in answer:
        found["unread"] = f"{answer['error']}: {answer['message']}"
    return found | {"files": files_of(logs / case.name)}


def files_of(path: Path) -> dict[str, str]:
    """Return size and digest of logs, and of indexes without the zeros and parts of an entry that a stop cuts off."""
    found = {}
    for file in sorted(path.iterdir()):
        kind = next((kind for kind in SIZES if f"{kind}." in f"{file.name}."), "")
        if kind and file.is_file():
            data = file.read_bytes()
            data = data if kind == ".log" else data[: len(data) // SIZES[kind] * SIZES[kind]].rstrip(b"\0")
            if kind == ".log" or not file.name.endswith(".deleted"):  # indexes of logs that are given up are of no use
                found[file.name] = f"{len(data)} {hashlib.sha256(data).hexdigest()[:8]}"
    return found


def faults(predicted: dict[str, Any] | str, found: dict[str, Any] | list[str]) -> list[str]:
    """Return what is wrong with a prediction, a text if no broker should start; a list says that none did."""
    if isinstance(found, list):
        return [] if isinstance(predicted, str) else [f"a start was predicted, and the broker says {found}"]
    if isinstance(predicted, str):
        return [f"no start was predicted ({predicted}), and the broker starts"]
    return differences(predicted, found)


def differences(predicted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Return in which points a prediction is wrong."""
    lines = []
    for name, value in predicted.items():
        if name == "files":
            changed = {file for file in value.keys() | found[name].keys() if value.get(file) != found[name].get(file)}
            lines += [f"{file}: predicted {value.get(file)}, found {found[name].get(file)}" for file in sorted(changed)]
        elif name == "unread":
            lines += [] if name in found else [f"read to the end, predicted {value}"]
        elif found.get(name) != value:
            lines.append(f"{name}: predicted {value}, found {found.get(name)}")
    error = found.get("unread", "")
    if error and "unread" not in predicted and not error.startswith("TimeoutException"):
        lines.append(error)  # a consumer that waits for records above the last one got all of them
    return lines
