"""What stock brokers serve from the nodes that we make of other brokers' directories."""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from proofs.harness import Outcome
from proofs.kafka.broker import Broker
from proofs.kafka.oracle import CLUSTERS, REPOSITORY, Oracle
from proofs.unpacking import unpack_archive
from seglog_format import open_cluster, open_partition, resurrect

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from seglog_format.types import Cluster, MetadataImage, Partition, PreparedResurrection

DESCRIPTION = (
    "Start stock brokers from the nodes made of other brokers' directories: they serve every record as it was."
)

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
ISOLATIONS: Final[tuple[Isolation, ...]] = ("read_uncommitted", "read_committed")
TOPIC_RESOURCE: Final = 2
FILLED: Final[dict[str, Any]] = {
    "topic": "orders",
    "partitions": 3,
    "records": 20,
    "group": "readers",
    "offsets": [20, 7, 0],
}
"""What a broker is filled with, ACLs, quotas and SCRAM users aside."""
ACL_FIELDS: Final = (
    "resourceType",
    "resourceName",
    "patternType",
    "principal",
    "host",
    "operation",
    "permissionType",
)
SETTINGS: Final = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
"""
"""Without an authorizer, a broker does not list access control entries."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which clusters and which brokers."""
    parser.add_argument("--clusters", nargs="+", help="versions of the brokers that wrote the directories; all")
    parser.add_argument("--kafka", nargs="+", default=[*CLUSTERS.releases], help="releases that start from the nodes")
    parser.add_argument("--more", type=Path, metavar="DIR", help="a full collection instead of the bundled cases")


def prove(options: argparse.Namespace) -> Outcome:
    """Make a node of each cluster for each release, start it, and compare."""
    failures: list[str] = []
    facts: dict[str, Any] = {"clusters": {}}
    for version, archives in clusters(options.more).items():
        if options.clusters and version not in options.clusters:
            continue
        for release in options.kafka:
            with tempfile.TemporaryDirectory() as root:
                source = Path(root) / "old"
                for archive in archives:
                    unpack_archive(archive, source)
                found, partitions = find_failures(source, Path(root) / "node", release)
            failures += [f"{version} on {release}: {text}" for text in found]
            facts["clusters"][f"{version} on {release}"] = {"partitions": partitions, "failures": len(found)}
    for release in options.kafka:
        found, partitions = find_own_failures(release)
        failures += [f"filled on {release}: {text}" for text in found]
        facts["clusters"][f"filled on {release}"] = {"partitions": partitions, "failures": len(found)}
    return Outcome(facts, failures, {"kafka": ", ".join(CLUSTERS.releases[each] for each in options.kafka)})


def clusters(collection: Path | None = None) -> dict[str, list[Path]]:
    """Return the archives of undamaged cases, by the version of the brokers that wrote them."""
    found: dict[str, list[Path]] = {}
    if collection is not None:
        archives = [
            (path.parent.name, path.name.removesuffix(".tar.gz"), path) for path in collection.glob("*/*.tar.gz")
        ]
    else:
        bundled = (REPOSITORY / "fixtures").glob("kafka-*/*/files.tar.gz")
        archives = [(path.parents[1].name.removeprefix("kafka-"), path.parent.name, path) for path in bundled]
    for version, case, path in sorted(archives):
        if not case.startswith("crash-") and not case.endswith("-kinds"):
            found.setdefault(version, []).append(path)
    return found


def find_failures(source: Path, target: Path, release: str) -> tuple[list[str], int]:
    """Make a node, start a broker from it, and compare what it serves with what the directories hold.

    Returns:
        What differs, and how many partitions were compared.
    """
    before = fingerprint(source)
    plan = resurrect(source, target, kafka=release, downgrade=True, unknown_topics=True)
    plan.apply()
    failures: list[str] = []
    home = target.parent / "broker"
    home.mkdir()
    broker = Broker(release, home, project=CLUSTERS, logs=target, settings=SETTINGS)
    with Oracle(release, project=CLUSTERS) as kafka, broker.running():
        for (topic, number), replica in sorted(plan.made.logs.items()):
            with open_partition(replica.path) as partition:
                for isolation in ISOLATIONS:
                    failures += _served(kafka, broker.address, (topic, number, isolation), partition)
        failures += _positions(kafka, broker.address, open_cluster(source), plan)
        failures += _settings(kafka, broker.address, plan)
    failures += [f"{path.name}" for path in target.iterdir() if path.name.endswith("-stray")]
    if fingerprint(source) != before:
        failures.append("the sources have changed")
    return failures, len(plan.made.logs)


def find_own_failures(release: str) -> tuple[list[str], int]:
    """Fill a stock broker, stop it, and compare what it said with its directory, and that with the node made of it.

    Returns:
        What differs, and how many partitions were compared.
    """
    with tempfile.TemporaryDirectory() as root:
        home = Path(root) / "first"
        home.mkdir()
        first = Broker(release, home, project=CLUSTERS, settings=SETTINGS)
        with Oracle(release, project=CLUSTERS) as kafka, first.running():
            kafka.must("fill", bootstrap=first.address, **FILLED)
            said = {
                **kafka.must("settings", bootstrap=first.address, topics=[FILLED["topic"]]),
                "positions": kafka.must("groups", bootstrap=first.address, groups=[FILLED["group"]]),
                "lag": kafka.must("lag", bootstrap=first.address, groups=[FILLED["group"]]),
            }
        failures = list(_unlike_broker(open_cluster(first.logs), said))
        found, partitions = find_failures(first.logs, Path(root) / "node", release)
        return failures + found, partitions


def _unlike_broker(cluster: Cluster, said: dict[str, Any]) -> Iterator[str]:
    """Tell where a directory reads other than its broker said before it stopped."""
    group = FILLED["group"]
    positions = cluster.coordinators.groups[group].offsets
    lag = cluster.lag(group)
    ours: dict[str, Any] = {
        **access_of(cluster.image()),
        "positions": [{group: {f"{topic}-{number}": each.offset for (topic, number), each in positions.items()}}],
        "lag": [{group: {f"{topic}-{number}": each for (topic, number), each in lag.items()}}],
    }
    for name, rows in ours.items():
        theirs = said[name] if isinstance(said[name], list) else [said[name]]
        if not rows or canonical(rows) != canonical(theirs):
            yield f"{name}: the broker said {theirs}, its directory reads {rows}"


def canonical(rows: Iterable[Any]) -> list[str]:
    """Return rows as sorted text, so that their order does not count."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def fingerprint(directory: Path) -> list[tuple[str, int, str]]:
    """Return name, time of the last change and digest of every file below a directory."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [(str(path), path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def _served(kafka: Oracle, address: str, what: tuple[str, int, Isolation], partition: Partition) -> Iterator[str]:
    topic, number, isolation = what
    answer = kafka.ask("served", bootstrap=address, topic=topic, partition=number, isolation=isolation)
    if isolation == "read_committed" and partition.transactions.open_offsets and "error" in answer:
        return  # an open transaction ends when its coordinator aborts it; until then the consumer waits
    count, digest = digest_of(partition, isolation)
    expected = {"begin": partition.log_start_offset, "records": count, "sha256": digest}
    end = partition.log_end_offset if isolation == "read_uncommitted" else partition.last_stable_offset
    found = {name: answer.get(name) for name in expected}
    if found != expected:
        yield f"{topic}-{number}, {isolation}: expected {expected}, found {answer}"
    elif not end <= answer["end"] <= partition.log_end_offset + 1:  # one more where an open transaction was aborted
        yield f"{topic}-{number}, {isolation}: ends at {answer['end']}, not at {end}"


def digest_of(partition: Partition, isolation: Isolation) -> tuple[int, str]:
    """Return the number of records that a consumer gets, and a digest over them, as ``Served.java`` makes it."""
    digest, count = hashlib.sha256(), 0
    for record in partition.records(isolation=isolation, on_gap=_ignore):
        digest.update(struct.pack(">qq", record.offset, record.timestamp_ms))
        headers = getattr(record, "headers", ())
        for part in (record.key, record.value):
            _add(digest, part)
        digest.update(struct.pack(">i", len(headers)))
        for header in headers:
            _add(digest, header.key)
            _add(digest, header.value)
        count += 1
    return count, digest.hexdigest()


def _ignore(_gap: object) -> None:
    """What is missing is missing for the broker, too."""


def _add(digest: hashlib._Hash, data: bytes | None) -> None:
    digest.update(struct.pack(">i", -1 if data is None else len(data)) + (data or b""))


def _positions(kafka: Oracle, address: str, old: Cluster, plan: PreparedResurrection) -> Iterator[str]:
    topics = {topic.name for topic in plan.made.image.topics.values()}
    expected = {
        name: {f"{topic}-{number}": position.offset for (topic, number), position in sorted(group.offsets.items())}
        for name, group in old.coordinators.groups.items()
        if group.offsets
    }
    if not expected or "__consumer_offsets" not in topics:
        return
    answer = kafka.must("groups", bootstrap=address, groups=sorted(expected))
    for name, positions in expected.items():
        if dict(sorted(answer[name].items())) != positions:
            yield f"group {name}: expected {positions}, found {answer[name]}"


def _settings(kafka: Oracle, address: str, plan: PreparedResurrection) -> Iterator[str]:
    image = plan.made.image
    expected = {
        resource.name: {name: value for name, value in values.items() if not name.startswith("internal.")}
        for resource, values in image.configs.items()
        if resource.resource_type == TOPIC_RESOURCE
    }
    answer = kafka.must("settings", bootstrap=address, topics=sorted(expected))
    for topic, values in expected.items():
        found = {name: value for name, value in answer["topics"][topic].items() if not name.startswith("internal.")}
        if found != values:
            yield f"settings of {topic}: expected {values}, found {found}"
    for name, rows in access_of(image).items():
        if canonical(answer[name]) != canonical(rows):
            yield f"{name}: expected {rows}, found {answer[name]}"


def access_of(image: MetadataImage) -> dict[str, list[Any]]:
    """Return ACLs, quotas and SCRAM users of an image, as ``Served.java`` lists those of a broker."""
    return {
        "acls": [[each[name] for name in ACL_FIELDS] for each in image.acls.values()],
        "quotas": [{"entity": dict(entity.parts), "values": values} for entity, values in image.quotas.items()],
        "scramUsers": [
            [user, mechanism, fields["iterations"]] for (user, mechanism), fields in image.scram_credentials.items()
        ],
    }
