"""The lives of stock brokers on a recording file system, and on real ones that lose power."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.crash.history import PAGE, SECTOR, read_history
from seglog_conformance.crash.recording import recording
from seglog_conformance.crash.run import MEMORY, SYNC_SECONDS
from seglog_conformance.crash.states import Disk
from seglog_conformance.crash.workload import ANSWERED, CALLED

from fixtures.make.line_cases import COMPACTED, Line
from fixtures.make.lines import SESSION_SECONDS, Cluster, fetch
from proofs.crash_disks import FILE_SYSTEMS, Device, shut_down
from proofs.kafka.oracle import CLUSTERS, Oracle, OracleError
from proofs.kafka.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_conformance.crash.history import History
    from seglog_conformance.crash.recording import Recording

RELEASES: Final = {
    "4.4.0": (Line("4.4.0", "2.13", is_kraft=True), "4.4"),
    "4.1.1": (Line("4.1.1", "2.13", is_kraft=True), "4.1"),
    "3.9.1": (Line("3.9.1", "2.13", is_kraft=True), "3.9"),
    "2.8.2": (Line("2.8.2", "2.13", zookeeper="3.5.9"), "3.9"),
}
"""A line of Kafka, and the project's release whose clients are used, by release."""
STOP, KILL = "stop", "kill"
ENDS: Final = ((STOP, KILL, STOP), (KILL, STOP, STOP))
"""How the lives of a history end. Those of the first kind flush each record before it is acknowledged."""
TOPICS: Final = ("plain", "compacted", "retained", "transactional", "opened")
COMPACT, RETAINED, OPENED, GROUP = "compacted", "retained", "opened", "readers"
KEYS: Final = 5
DAY: Final = {"retention.ms": "86400000"}
SETTINGS: Final = """\
log.dirs={logs}/a,{logs}/b
log.initial.task.delay.ms=1000
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""
ZOOKEEPER_TICK: Final = "tickTime=300\n"
SECONDS: Final = 10
"""So long a client waits."""
PAUSE_MS: Final = 1500
UNFLUSHED: Final = "-unflushed"
SMALL_INTERVAL, DEFAULT_INTERVAL = "100", "4096"
"""Bytes between entries of indexes."""
DISKS: Final = (*FILE_SYSTEMS, f"ext4{UNFLUSHED}")
ERROR: Final = re.compile(
    r"^(?:ERROR|FATAL) .*|^(?:Caused by: )?(?:[a-z]+\.)+[A-Z]\w+(?:Exception|Error)\b.*", re.MULTILINE
)


class Recorded:
    """The history of a broker: what it did to its disk, and what its clients then got.

    Args:
        release: of Kafka.
        number: of the history; an odd one flushes each record.
        directory: where histories are kept.
    """

    def __init__(self, release: str, number: int, directory: Path) -> None:
        self.release, self.number, self.name = release, number, f"{release}-{number}"
        self.line, self.clients = RELEASES[release]
        directory = directory.absolute()  # the broker works in another one
        self.jars, self.kept = directory / "jars" / release, directory / self.name
        self.truth_path = self.kept / "truth.json"
        self.ends = ENDS[(number - 1) % len(ENDS)]
        self.flushes = bool(number % 2)
        self.piece = PAGE if number % 4 in {1, 2} else SECTOR
        if not self.jars.exists():
            fetch(self.line, self.jars)

    @cached_property
    def history(self) -> History:
        """The operations."""
        with (self.kept / "operations.jsonl").open(encoding="utf-8") as lines:
            return read_history(lines, self.piece)

    @cached_property
    def truth(self) -> dict[str, Any]:
        """What clients got at each look, and at the end of everything."""
        found: dict[str, Any] = json.loads(self.truth_path.read_text("utf-8"))
        return found

    def disk(self, profile: str) -> Disk:
        """Return what makes its states."""
        return Disk(self.history, profile)

    def cluster(self, home: Path, logs: Path, *, formats: bool = False) -> Cluster:
        """Return a broker that has not been started."""
        more = SETTINGS.format(logs=logs) + ("zookeeper.session.timeout.ms=3000\n" if not self.line.is_kraft else "")
        more += "log.flush.interval.messages=1\n" if self.flushes else ""
        found = Cluster(self.line, self.jars, home, more, formats=formats)
        with (home / "zookeeper.properties").open("a") as file:
            file.write(ZOOKEEPER_TICK)
        return found


def record(history: Recorded) -> None:
    """Let a broker live on a recording file system, and keep what it did."""
    shutil.rmtree(history.kept, ignore_errors=True)
    history.kept.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="seglog-brokers-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        scratch = Path(name)
        with recording(scratch, sync_seconds=SYNC_SECONDS) as recorded, _clients(history) as oracle:
            life = Life(history, scratch / "home", recorded, oracle, ends=history.ends)
            life.run()
            shutil.copy(scratch / "operations.jsonl", history.kept)
            if (life.cluster.home / "zookeeper").exists():
                shutil.copytree(life.cluster.home / "zookeeper", history.kept / "zookeeper")
        history.truth_path.write_text(json.dumps(life.looks), encoding="utf-8")


class Unrecorded:
    """A directory of which nothing is written down."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()

    def mark(self, _event: object) -> None:
        """Do nothing."""


class Life:
    """The lives of a broker, with a marker before and after each step.

    Args:
        history: where it is kept.
        home: directory for what is not in the log directories.
        recorded: where the log directories are.
        oracle: has the clients.
        ends: how each life ends.
        interval: bytes between entries of indexes.
    """

    def __init__(
        self,
        history: Recorded,
        home: Path,
        recorded: Recording | Unrecorded,
        oracle: Oracle,
        *,
        ends: Sequence[str],
        interval: str = SMALL_INTERVAL,
    ) -> None:
        self._line, self._recorded, self._oracle, self._tokens = history.line, recorded, oracle, 0
        self._ends, self._interval = ends, interval
        self.looks: list[dict[str, Any]] = []
        with self._step("format"):
            self.cluster = history.cluster(home, recorded.root, formats=True)

    @contextmanager
    def _step(self, do: str, **fields: object) -> Iterator[None]:
        self._mark(CALLED, do, **fields)
        yield
        self._mark(ANSWERED, do, **fields)

    def _mark(self, moment: str, do: str, **fields: object) -> None:
        self._recorded.mark({"do": do, "is": moment, **fields})

    def run(self) -> None:
        """Live, end, and live again."""
        with self.cluster.coordinated():
            for number, end in enumerate(self._ends):
                self._mark(CALLED, f"start {number}")
                with self.cluster.running(kills=end == KILL):
                    self._ask("groups", groups=[GROUP])  # it answers
                    self._mark(ANSWERED, f"start {number}")
                    (self._first, self._second, self._third)[number]()
                    self._look()
                    self._mark(CALLED, end)
                if end == STOP:
                    self._mark(ANSWERED, end)
                elif not self._line.is_kraft:
                    time.sleep(SESSION_SECONDS)

    def _first(self) -> None:
        is_late = self._line.at_least("4.1")
        small = {
            "internal.segment.bytes" if is_late else "segment.bytes": "700",
            "index.interval.bytes": self._interval,
        }
        with self._step("create"):
            compacted = {name: value for name, value in COMPACTED.items() if name != "segment.bytes"}
            configs = {COMPACT: small | compacted, RETAINED: small | {"retention.bytes": "1000"}}
            topics = {
                name: {"partitions": 1, "replication": 1, "config": DAY | configs.get(name, small)} for name in TOPICS
            }
            self._ask("create", topics=topics)
        for topic in ("plain", COMPACT, RETAINED) * 2:
            self._write(topic)
        self._transact("transactional", "commit", "abort", "commit")
        self._transact(OPENED, "commit", "open")
        self._commit(3)

    def _second(self) -> None:
        for topic in ("plain", COMPACT, RETAINED):
            self._write(topic)
        with self._step("delete records"):
            self._ask("deleteRecords", topic="plain", partition=0, offset=25)
        self._transact("transactional", "abort", "commit")
        self._commit(30)
        with self._step("move"):
            there = "a" if (self._recorded.root / "b" / "plain-0").exists() else "b"
            node = 1 if self._line.is_kraft else 0
            self._ask("move", topic="plain", node=node, directory=str(self._recorded.root / there))
            wait_for("it is moved", (self._recorded.root / there / "plain-0").exists)
        with self._step("clean"):
            time.sleep(4)

    def _third(self) -> None:
        self._write("plain")
        self._transact("transactional", "commit")

    def _ask(self, operation: str, **fields: object) -> dict[str, Any]:
        return self._oracle.must(operation, bootstrap=self.cluster.address, **fields)

    def _token(self) -> str:
        self._tokens += 1
        return f"w{self._tokens}"

    def _write(self, topic: str) -> None:
        token = self._token()
        with self._step("write", topic=topic, token=token):
            for part in range(3):
                self._ask("write", topic=topic, partitions=1, records=12, keys=KEYS, text=f"{token} {part}")

    def _transact(self, topic: str, *ends: str) -> None:
        token = self._token()
        with self._step("transact", topic=topic, token=token):
            self._ask("transact", topic=topic, id=f"id-{topic}", transactions=list(ends), text=f"{token} ")

    def _commit(self, offset: int) -> None:
        with self._step("commit", offset=offset):
            self._ask("commit", topic="plain", groups={GROUP: [offset]})

    def _look(self) -> None:
        found = self._ask("look", topics=list(TOPICS), open=OPENED, seconds=SECONDS)
        self._recorded.mark({"do": "look", "is": ANSWERED, "look": len(self.looks)})
        self.looks.append(found)


def started_on(
    history: Recorded, home: Path, logs: Path, oracle: Oracle, zookeeper: Path
) -> tuple[dict[str, Any], list[str]]:
    """Start a broker, look, stop it; return what it did, and the first errors that it wrote.

    Args:
        history: says how it is started.
        home: directory for its other files, which is made.
        logs: has its log directories.
        oracle: has the clients.
        zookeeper: data of a ZooKeeper, if it needs one.
    """
    cluster = history.cluster(home, logs)
    seen: dict[str, Any] = {"starts": False}
    if zookeeper.exists():
        shutil.copytree(zookeeper, home / "zookeeper")
    try:
        with cluster.coordinated(), cluster.running():
            seen["starts"] = True
            asked = {"topics": list(TOPICS), "open": OPENED, "seconds": SECONDS, "appends": True, "pauseMs": PAUSE_MS}
            seen["topics"] = oracle.ask("look", bootstrap=cluster.address, **asked)
            if any("next" in topic for topic in seen["topics"].values()):  # else it would wait for a minute
                seen["groups"] = oracle.ask("groups", bootstrap=cluster.address, groups=[GROUP])
    except (OracleError, subprocess.TimeoutExpired) as error:
        seen["error"] = str(error)
    said = cluster.output.read_text("utf-8", errors="replace").replace(str(logs), "").replace(str(home), "")
    return seen, list(dict.fromkeys(each[:300] for each in ERROR.findall(said)))[:6]


def on_disk(release: str, name: str, directory: Path) -> dict[str, int]:
    """Let a broker stop cleanly on a file system, shut that down, and start the broker on what is left.

    It flushes each record, unless the name of the file system ends in `UNFLUSHED`.

    Returns:
        ``rolled``: time indexes of segments that are not active, ``zeros``: those that then end in zeros; ``starts``:
        whether the broker does; ``records``: what a client had got of topics without a limit of size, ``removed``:
        those of them that the broker removes soon after the start.
    """
    history = Recorded(release, 2 if name.endswith(UNFLUSHED) else 1, directory)
    _, make, options = FILE_SYSTEMS[name.removesuffix(UNFLUSHED)]
    with tempfile.TemporaryDirectory(prefix="seglog-disks-") as scratch_name, _clients(history) as oracle:
        scratch = Path(scratch_name)
        device = Device(scratch, make, options)
        with device.mounted() as root:
            there = Unrecorded(root / "logs")
            life = Life(history, scratch / "home", there, oracle, ends=(STOP,), interval=DEFAULT_INTERVAL)
            life.run()
            shut_down(root)
        with device.mounted() as root:
            logs = shutil.copytree(root / "logs", scratch / "left")
        indexes = [
            path for path in logs.rglob("*.timeindex") if path.stem < max(path.parent.glob("*.log"), default=path).stem
        ]
        zeros = sum(index.stat().st_size > 0 and not any(index.read_bytes()[-12:-4]) for index in indexes)
        seen, _ = started_on(history, scratch / "again", logs, oracle, life.cluster.home / "zookeeper")
    found = {"rolled": len(indexes), "zeros": zeros, "starts": int(seen["starts"]), "records": 0, "removed": 0}
    for topic in set(TOPICS) - {RETAINED}:
        later = seen.get("topics", {}).get(topic, {}).get("later", 0)
        offsets = [row[0] for row in life.looks[-1][topic]["read_uncommitted"]["records"]]
        found["records"] += len(offsets)
        found["removed"] += sum(offset < later for offset in offsets)
    return found


def _clients(history: Recorded) -> Oracle:
    return Oracle(history.clients, project=CLUSTERS)
