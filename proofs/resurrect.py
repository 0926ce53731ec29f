"""Start stock brokers from the nodes made of other brokers' directories: they serve every record unchanged."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from proofs.harness import Outcome
from proofs.kafka import coordinators
from proofs.kafka.broker import Broker
from proofs.kafka.crashes import PREFIX, kept_of, unpack_crashed
from proofs.kafka.node import HOST, KafkaNode, free_ports
from proofs.kafka.oracle import CLUSTERS, REPOSITORY, Oracle
from proofs.kafka.served import ISOLATIONS, Answer, Isolation, answer_of_nothing, expected_answers, with_end
from proofs.unpacking import unpack_archive
from seglog_format import open_cluster, open_partition, resurrect

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seglog_format.types import Cluster, MetadataImage, PreparedResurrection, RemoteTier


What: TypeAlias = tuple[str, int, Isolation]
"""What a consumer reads: topic, partition and isolation level."""
TOPIC_RESOURCE: Final = 2
FILLED: Final[dict[str, Any]] = {
    "topic": "orders",
    "partitions": 3,
    "records": 20,
    "group": "readers",
    "offsets": [20, 7, 0],
    "acks": "all",
}
"""What a broker is filled with, ACLs, quotas and SCRAM users aside.

Idempotent producers of 4.1 get stuck where a new partition refuses their first batch and accepts a later one.
"""
ACL_FIELDS: Final = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
SETTINGS: Final = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
"""
"""Without an authorizer, a broker does not list access control entries."""
OPEN_STATUSES: Final = frozenset({1, 2, 3, 7})
"""Kafka's numbers for Ongoing, PrepareCommit, PrepareAbort and PrepareEpochFence."""
AT_ONCE: Final = """\
log.cleaner.enable=false
log.initial.task.delay.ms=500
log.retention.check.interval.ms=1000
"""
"""What retention deletes, it deletes while a new node is asked; only compaction is off."""


class Choices(NamedTuple):
    """Options of a resurrection: unknown and renamed topics, the cluster, and the store."""

    unknown_topics: bool = True
    renamed: tuple[str, ...] = ()
    cluster_id: str | None = None
    remote: RemoteTier | None = None


AS_A_USER: Final = Choices()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for clusters and brokers."""
    names = "versions of the brokers that wrote the directories, coordinators, filled, shortened"
    parser.add_argument("--clusters", nargs="+", help=f"only these clusters: {names}")
    parser.add_argument("--kafka", nargs="+", default=[*CLUSTERS.releases], help="releases that start from the nodes")
    parser.add_argument("--more", type=Path, metavar="DIR", help="a full collection instead of the bundled cases")


def prove(options: argparse.Namespace) -> Outcome:
    """Make a node of each cluster for each release, start it, and compare."""
    failures: list[str] = []
    facts: dict[str, Any] = {"clusters": {}}
    for name, find in _comparisons(options):
        for release in options.kafka:
            found, partitions = find(release)
            failures += [f"{name} on {release}: {text}" for text in found]
            facts["clusters"][f"{name} on {release}"] = {"partitions": partitions, "failures": len(found)}
    if not options.clusters or "coordinators" in options.clusters:
        for each in coordinators.comparisons(options.kafka, new_node, SETTINGS):
            failures += [f"{each.name}: {text}" for text in each.failures]
            facts["clusters"][each.name] = {"partitions": each.partitions, "failures": len(each.failures)}
    return Outcome(facts, failures, {"kafka": ", ".join(CLUSTERS.releases[each] for each in options.kafka)})


def _comparisons(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[str], tuple[list[str], int]]]]:
    """Yield the name of each comparison, and its function for a release."""
    for version, archives in clusters(options.more).items():
        if not options.clusters or version in options.clusters:
            yield version, partial(find_archived_failures, archives)
    for version, archives in crash_cases(options.more).items():
        if not options.clusters or version in options.clusters:
            yield f"{version}, killed,", partial(find_crash_failures, archives)
    for name, find in own_clusters().items():
        if not options.clusters or name in options.clusters:
            yield name, find


def own_clusters() -> dict[str, Callable[[str], tuple[list[str], int]]]:
    """Return the comparisons that make a cluster of their own, by name."""
    from proofs.shortened_leaders import find_leader_failures  # noqa: PLC0415 - it uses this module

    return {"filled": find_own_failures, "shortened": find_leader_failures}


def clusters(collection: Path | None = None) -> dict[str, list[Path]]:
    """Return the archives of undamaged cases, by the version of the brokers that wrote them."""
    return _archives(collection, lambda case: not case.startswith(PREFIX) and not case.endswith("-kinds"))


def crash_cases(collection: Path | None = None) -> dict[str, list[Path]]:
    """Return the archives of killed brokers, by their version."""
    return _archives(collection, lambda case: case.startswith(PREFIX))


def _archives(collection: Path | None, is_wanted: Callable[[str], bool]) -> dict[str, list[Path]]:
    if collection is not None:
        archives = [
            (path.parent.name, path.name.removesuffix(".tar.gz"), path) for path in collection.glob("*/*.tar.gz")
        ]
    else:
        bundled = (REPOSITORY / "fixtures").glob("kafka-*/*/files.tar.gz")
        archives = [(path.parents[1].name.removeprefix("kafka-"), path.parent.name, path) for path in bundled]
    found: dict[str, list[Path]] = {}
    for version, case, path in sorted(archives):
        if is_wanted(case):
            found.setdefault(version, []).append(path)
    return found


def find_archived_failures(archives: Iterable[Path], release: str) -> tuple[list[str], int]:
    """Make a node of the directory of a broker that was stopped cleanly.

    Returns:
        What differs, and how many partitions were compared.
    """
    with tempfile.TemporaryDirectory() as root:
        source = Path(root) / "old"
        for archive in archives:
            unpack_archive(archive, source)
        return find_failures([source], Path(root) / "node", release)


def find_crash_failures(archives: Iterable[Path], release: str) -> tuple[list[str], int]:
    """Make a node of the directory of a killed broker, and compare it with that broker's own recovery.

    Returns:
        What differs, and how many partitions were compared.
    """
    with tempfile.TemporaryDirectory() as root:
        crashed = unpack_crashed(archives, Path(root))
        logs = resurrect(crashed.old, unknown_topics=True, kafka=release, downgrade=True).made.logs
        truths, wanted, failures = kept_of(crashed, Path(root) / "salvaged")
        ends = {key: logs[key].log_end_offset for key in wanted}
        failures += [f"log ends: expected {wanted}, found {ends}"] if ends != wanted else []
        found, partitions = find_failures([crashed.old], Path(root) / "node", release, truths=truths)
        return failures + found, partitions


def find_failures(  # noqa: PLR0913 - most are options
    sources: Sequence[Path],
    target: Path,
    release: str,
    *,
    served: Mapping[What, Answer] | None = None,
    truths: Mapping[tuple[str, int], Path] | None = None,
    choices: Choices = AS_A_USER,
    more: Callable[[Oracle, str], Iterable[str]] | None = None,
) -> tuple[list[str], int]:
    """Make a node, start a broker from it, and compare the served records with those in the directories.

    Args:
        sources: log directories.
        target: directory of the new node.
        release: release of the broker.
        served: records that were served before; if they are not known, our reading of the directories is expected.
        truths: partition directories to read instead of the node's sources.
        choices: options of the resurrection.
        more: asks for more at the address of the broker, at the end, and returns what differs.

    Returns:
        What differs, and how many partitions were compared.
    """
    before = [fingerprint(source) for source in sources]
    plan = resurrect(sources, target, kafka=release, downgrade=True, **choices._asdict())
    plan.apply()
    failures: list[str] = []
    ending = _ending(open_cluster(sources))
    broker = new_node(release, target)
    with Oracle(release, project=CLUSTERS) as kafka, broker.running():
        for key in plan.made.ends.keys() - plan.made.logs.keys():
            for isolation in ISOLATIONS:
                accepted = [answer_of_nothing(plan.made.ends[key])]
                failures += _wrongly_served(kafka, broker.address, (*key, isolation), accepted)
        for key, replica in sorted(plan.made.logs.items()):
            with open_partition((truths or {}).get(key, replica.path), remote=choices.remote) as partition:
                for isolation in ISOLATIONS:
                    what = (*key, isolation)
                    known = (served or {}).get(what)
                    accepted = [known]
                    if known is None:
                        answers = expected_answers(partition, isolation, ending[key])
                        accepted = with_end(answers, partition.log_end_offset, plan.made.ends.get(key))
                    failures += _wrongly_served(kafka, broker.address, what, accepted)
        failures += _positions(kafka, broker.address, open_cluster(sources), plan)
        failures += _settings(kafka, broker.address, plan)
        failures += [] if more is None else more(kafka, broker.address)
    failures += [f"{path.name}" for path in target.iterdir() if path.name.endswith("-stray")]
    if [fingerprint(source) for source in sources] != before:
        failures.append("the sources have changed")
    return failures, len(plan.made.logs)


def _ending(cluster: Cluster) -> Counter[tuple[str, int]]:
    """Return the number of open transactions that name each partition, if their coordinator ends them in time."""
    transactions = cluster.coordinators.transactions.values()
    opened = (fields for fields in transactions if fields["transactionStatus"] in OPEN_STATUSES)
    topics = (topic for fields in opened for topic in fields["transactionPartitions"] or ())
    return Counter((topic["topic"], number) for topic in topics for number in topic["partitionIds"])


def new_node(release: str, target: Path) -> KafkaNode:
    """Return a stock broker on a node, with the settings that were written for its first start."""
    home = target.parent / "broker"
    home.mkdir()
    port, controller = free_ports(2)
    written = (target / "server.properties").read_text(encoding="utf-8")
    settings = written.replace("localhost:9092", f"{HOST}:{port}").replace("localhost:9093", f"{HOST}:{controller}")
    return KafkaNode(release, home, port, settings + SETTINGS + AT_ONCE, project=CLUSTERS)


def find_own_failures(release: str) -> tuple[list[str], int]:
    """Fill a stock broker, stop it, and compare its answers with its directory, and the directory with its new node.

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
        found, partitions = find_failures([first.logs], Path(root) / "node", release)
        return failures + found, partitions


def _unlike_broker(cluster: Cluster, said: dict[str, Any]) -> Iterator[str]:
    """Yield differences between a directory and the answers of its broker before it stopped."""
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
    """Return rows as sorted text, so their order does not matter."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def fingerprint(directory: Path) -> list[tuple[str, int, str]]:
    """Return name, time of the last change and digest of every file below a directory."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [(str(path), path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def _wrongly_served(kafka: Oracle, address: str, what: What, accepted: Sequence[Answer]) -> Iterator[str]:
    """Yield partitions for which a consumer gets none of the accepted answers."""
    topic, number, isolation = what
    found = kafka.ask("served", bootstrap=address, topic=topic, partition=number, isolation=isolation)
    if found not in accepted:
        yield f"{topic}-{number}, {isolation}: expected {' or '.join(map(str, accepted))}, found {found}"


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
