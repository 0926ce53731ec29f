"""Judge our writer and Kafka's storage classes, on a recording file system, on the states that power cuts may leave.

The faults of `proofs/power/plants.toml` come first: each is planted into the process until it is noticed. Then the
writer itself must keep every promise on so many distinct states, its histories in turn under each way of losing: POSIX
by sectors and by pages, ext4 as it is mounted by default, and xfs. What Kafka's classes do on theirs is counted; only
KAFKA-20979 has to be found in 4.3.0, and not in 4.4.0. Of what is not known in public the report has the kinds and
their counts; the journal has what was lost, and the number of a history repeats it.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import closing
from functools import partial
from itertools import count as numbers_from
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.crash.history import PAGE, SECTOR, Resize
from seglog_conformance.crash.promises import ZEROS, look
from seglog_conformance.crash.recording import missing, recording
from seglog_conformance.crash.run import Options, examine, process_of
from seglog_conformance.crash.states import Disk
from seglog_conformance.crash.workload import CALLED, Workload, WorkloadError
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.registry import Builder, listed
from seglog_conformance.toolchains import child_processes

from proofs.harness import GrowingFile, Outcome
from proofs.power.plants import NOT_NOTICED, Plant, plants
from proofs.report_facts import ROOT, tree_digest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from seglog_conformance.crash.history import Operation
    from seglog_conformance.crash.run import Failure

WAYS: Final = (("posix", SECTOR), ("posix", PAGE), ("ext4-ordered", PAGE), ("xfs", PAGE))
STATES_OF_A_PLANT: Final = 400
"""So many states of one history at most: more histories find a fault sooner than more states do."""
MEASURES: Final = (
    "seglog_format",
    "conformance/seglog_conformance/crash",
    "conformance/seglog_conformance/reference",
    "conformance/adapters/kafka-storage",
)
DIGITS: Final = 16
"""So many hex digits tell states apart."""
REFERENCE: Final = "seglog_conformance.reference"
WRITER: Final = "reference"
KAFKA: Final = "kafka-storage"
RELEASES: Final = ("4.4.0", "4.3.0", "4.1.1", "3.9.1", "2.8.2")
KNOWN: Final = {"4.4.0": False, "4.3.0": True}
"""Whether a release has KAFKA-20979: lengths of indexes that are not on the disk when the clean end is."""
KNOWN_HISTORIES: Final = 4
KAFKA_STATES: Final = 1000
"""So many states of one history of Kafka's classes at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--count", type=int, default=100_000, help="how many distinct states of our writer")
    parser.add_argument("--kafka-count", type=int, default=20_000, help="how many of Kafka's classes, all releases")
    parser.add_argument("--releases", nargs="+", default=list(RELEASES), help="releases of Kafka's classes")
    parser.add_argument("--histories", type=int, default=60, help="how many histories at most for each fault")
    parser.add_argument("--only", help="faults whose names hold this text; empty for none")
    parser.add_argument("--seconds", type=float, default=1e9, help="no history begins after so many")
    parser.add_argument("--journal", default="build/crash-states.jsonl", help="file to which each history goes at once")
    parser.add_argument("--workers", type=int, default=2, help="processes that judge")


def prove(options: argparse.Namespace) -> Outcome:
    """Judge the writer with each fault until it is noticed, and all without one on states: they go on where they ended.

    The journal has a line for each fault and for each history. Lines of other code than today's do not count.
    """
    if reason := missing():
        return Outcome({}, [reason])
    end, journal = time.monotonic() + options.seconds, Journal(Path(options.journal))
    expected = [plant for plant in plants() if plant.noticed_by != NOT_NOTICED]
    chosen = [plant for plant in expected if options.only is None or (options.only and options.only in plant.name)]
    wanted = {WRITER: options.count}
    wanted |= {f"{KAFKA}@{each}": options.kafka_count // len(options.releases) for each in options.releases}
    for each in wanted:
        if len(journal.states[each]) < wanted[each]:
            process_of(listed(each), Builder())  # builds it, once for all processes
    with child_processes.process_pool(options.workers) as pool:
        pending = [plant for plant in chosen if plant.name not in journal.plants]
        for plant, found in zip(
            pending, pool.map(partial(noticed, first=options.seed, most=options.histories), pending), strict=True
        ):
            journal.add({"plant": plant.name, "found": found})
        for release in (each for each in options.releases if each not in journal.known):
            histories = range(options.seed, options.seed + KNOWN_HISTORIES)
            answers = sum(pool.map(partial(known_answer, release), histories), Counter())
            journal.add({"known": release, "found": answers})
        seeds = {each: journal.seeds(each, options.seed) for each in wanted}
        while time.monotonic() < end and (
            todo := [each for each in wanted if len(journal.states[each]) < wanted[each]]
        ):
            names = list(islice(cycle(todo), max(len(todo), options.workers)))
            for line in pool.map(line_of, names, [next(seeds[each]) for each in names]):
                journal.add(line)
    concerned = [each for each in wanted if each != WRITER or journal.states[each]]
    facts: dict[str, Any] = {
        "plants": {plant.name: journal.plants.get(plant.name) for plant in chosen},
        "distinctStates": len(journal.states[WRITER]),
        "distinctStatesOfKafka": sum(len(journal.states[each]) for each in concerned if each != WRITER),
        "implementations": {each: {"wanted": wanted[each], **journal.counts(each)} for each in concerned},
        "KAFKA-20979": {release: journal.known[release] for release in options.releases if release in journal.known},
        "findings": [line for each in concerned if each != WRITER for line in journal.findings(each)],
    }
    failures = [f"{name}: not noticed" for name, found in facts["plants"].items() if found is None]
    failures += [f"{each}: {', '.join(wrong)}" for each in concerned if (wrong := journal.wrong(each))]
    return Outcome(facts, failures)


class Journal:
    """What runs of this code have found, in a file of lines.

    Attributes:
        plants: what noticed a fault, by its name.
        histories: counts and failures, by the implementation and the number of the history.
        states: digests of all states, by the implementation.
        known: what Kafka's classes do after the loss of KAFKA-20979, by release.
    """

    def __init__(self, path: Path) -> None:
        self.plants: dict[str, dict[str, object] | None] = {}
        self.known: dict[str, dict[str, int]] = {}
        self.histories: dict[tuple[str, int], dict[str, Any]] = {}
        self.states: defaultdict[str, set[str]] = defaultdict(set)
        self._file = GrowingFile(path)
        self._code = " ".join(tree_digest(ROOT / each)[:16] for each in MEASURES)
        for line in self._file.lines():
            if line["code"] == self._code:
                self._take(line)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add what was found, and write it."""
        self._take(line)
        self._file.add({"code": self._code, **line})

    def _take(self, line: Mapping[str, Any]) -> None:
        if "plant" in line:
            self.plants[line["plant"]] = line["found"]
        elif "known" in line:
            self.known[line["known"]] = line["found"]
        else:
            self.states[line["of"]].update(line["states"])
            self.histories[line["of"], line["seed"]] = {"counts": line["counts"], "failures": line["failures"]}

    def seeds(self, implementation: str, first: int) -> Iterator[int]:
        """Yield the numbers of histories of an implementation that are not there."""
        return (seed for seed in numbers_from(first) if (implementation, seed) not in self.histories)

    def of(self, implementation: str) -> dict[int, dict[str, Any]]:
        """Return the histories of an implementation, by their numbers."""
        return {seed: line for (name, seed), line in self.histories.items() if name == implementation}

    def counts(self, implementation: str) -> dict[str, Any]:
        """Return how much of an implementation was judged."""
        counts: Counter[str] = Counter()
        by_way: Counter[str] = Counter()
        for seed, line in self.of(implementation).items():
            counts.update({"histories": 1, **line["counts"]})
            by_way[_way(seed)] += line["counts"].get("states", 0)
        return {
            "distinctStates": len(self.states[implementation]),
            **{name: counts[name] for name in sorted(counts)},
            "statesByProfileAndPiece": dict(by_way),
        }

    def findings(self, implementation: str) -> list[dict[str, Any]]:
        """Return each kind of what an implementation does wrong, with its share of the histories under each profile."""
        histories = self.of(implementation)
        asked = Counter(map(_way, histories))
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for seed, line in histories.items():
            for kind in {failure["kind"] for failure in line["failures"]}:
                found[kind][_way(seed)] += 1
        return [
            {
                "implementation": implementation,
                "kind": kind,
                "disclosure": "withheld",
                "histories": {way: {"with": ways[way], "of": asked[way]} for way in sorted(asked)},
            }
            for kind, ways in sorted(found.items())
        ]

    def wrong(self, implementation: str) -> list[str]:
        """Return what must not be: anything wrong of our writer; of Kafka another answer than the known one."""
        if implementation == WRITER:
            return [failure["text"] for line in self.of(WRITER).values() for failure in line["failures"]]
        release = implementation.rpartition("@")[2]
        has_it = bool(self.known.get(release, {}).get("believed"))
        if release not in self.known or KNOWN.get(release, has_it) == has_it:
            return []
        return [f"KAFKA-20979 is {'found' if has_it else 'not found'}"]


def line_of(implementation: str, seed: int) -> dict[str, Any]:
    """Judge one history of an implementation, and return a line of the journal; its number says which states."""
    line: dict[str, Any] = {"of": implementation, "seed": seed, "counts": {}, "failures": [], "states": []}
    try:
        states = sys.maxsize if implementation == WRITER else KAFKA_STATES
        result = examine(process_of(listed(implementation), Builder()), seed, way_of(seed, states))
    except WorkloadError as error:
        return {**line, "failures": [{"kind": "without a power cut", "text": str(error), "lost": []}]}
    failures = [
        {"kind": failure.kind, "text": _line(failure, seed), "lost": list(failure.lost)} for failure in result.failures
    ]
    for failure in failures:
        print(f"{implementation}: {failure['text']}", file=sys.stderr, flush=True)
    digests = sorted(each[:DIGITS] for each in result.digests)
    return {**line, "counts": dict(result.counts), "failures": failures, "states": digests}


def known_answer(release: str, seed: int) -> Counter[str]:
    """Count the closings of a history after which only the lengths that they gave to indexes are lost.

    Returns:
        ``closed``: all closings; ``unsynced``: those whose lengths no sync covered; ``believed``: those where the next
        start then believes a clean end with an index that ends in zeros.
    """
    counts: Counter[str] = Counter()
    testee = process_of(listed(f"{KAFKA}@{release}"), Builder())
    with tempfile.TemporaryDirectory(prefix="seglog-crash-") as name, closing(testee):
        with recording(Path(name)) as recorded:
            workload = Workload(testee, recorded, random.Random(f"{seed} work"))
            workload.run()
            testee.kill()
            history = recorded.history()
        testee.start()
        disk, called = Disk(history, "posix"), 0
        for number, event in history.markers:
            if event["do"] != "close" or event["is"] == CALLED:
                called = number
                continue
            cut = disk.cut(number + 1)
            lost = [each for each in cut.pending if each > called and _shrinks(history.operations[each])]
            counts.update({"closed": 1, "unsynced": int(bool(lost))})
            root = Path(name, f"{number}")
            root.mkdir()
            disk.write(disk.state(cut, frozenset(lost)), root)
            seen = look(testee, root, workload.config, (), sends_again=False)
            counts["believed"] += any(ZEROS & set(re.findall(r"SEG-\w+-\d+", text)) for text in seen.believed)
    return counts


def _shrinks(operation: Operation) -> bool:
    return isinstance(operation, Resize) and operation.shrinks


def _way(seed: int) -> str:
    way = way_of(seed)
    return f"{way.profile} {way.piece}"


def way_of(seed: int, states: int = sys.maxsize) -> Options:
    """Return how a history is judged."""
    profile, piece = WAYS[(seed - 1) % len(WAYS)]
    return Options(profile=profile, piece=piece, states=states)


def process(plant: Plant | None = None) -> ProcessTestee:
    """Return the writer in a process, with a fault or without."""
    module = (REFERENCE,) if plant is None else ("proofs.power.planted_reference", plant.name)
    return ProcessTestee("reference", Command(arguments=(sys.executable, "-m", *module)))


def noticed(plant: Plant, *, first: int, most: int) -> dict[str, object] | None:
    """Judge histories with a fault, under POSIX, until one notices it; None if none does."""
    states = 0
    for seed in range(first, first + most):
        result = examine(process(plant), seed, Options(stops=True, states=STATES_OF_A_PLANT, most=20))
        states += result.counts["states"]
        if result.failures:
            failure = result.failures[0]
            return {"history": seed, "states": states, "noticed": _line(failure, seed), "lost": list(failure.lost)}
    return None


def _line(failure: Failure, seed: int) -> str:
    return f"{failure.profile}, history {seed}, cut {failure.cut}: {failure.kind}: {failure.text}"
