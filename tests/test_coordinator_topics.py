"""Coordinators with 50 partitions on a stock broker: a node keeps them, or finds their number again."""

from __future__ import annotations

import json
import shutil
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest

from proofs.kafka.served import expected_answers
from proofs.unpacking import unpack_archive
from seglog_format import open_cluster, open_partition, resurrect
from seglog_format.cli.main import run
from seglog_format.codec.checksum import crc32c
from seglog_format.errors import UsageError
from tests.helpers.support import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

TOPICS: Final = {
    "3.9.1": ("__consumer_offsets", "__transaction_state"),
    "4.4.0": ("__consumer_offsets", "__transaction_state", "__share_group_state"),
}
OF_TOPICS: Final = [(version, topic) for version, topics in TOPICS.items() for topic in topics]
METADATA: Final = "__cluster_metadata-0"
CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


@cache
def said(version: str) -> dict[str, Any]:
    """Return what the broker said, and in which of its files each name stands."""
    answers: dict[str, Any] = json.loads((FIXTURES / "coordinators" / version / "said.json").read_bytes())
    return answers


def left_by(version: str, target: Path) -> Path:
    unpack_archive(FIXTURES / "coordinators" / version / "files.tar.gz", target)
    return target


def without_metadata(log_directory: Path, *names: str) -> Path:
    """Remove the metadata, and root files."""
    shutil.rmtree(log_directory / METADATA)
    for name in ("bootstrap.checkpoint", *names):
        (log_directory / name).unlink(missing_ok=True)
    return log_directory


def keep(log_directory: Path, topic: str, numbers: Iterable[int]) -> None:
    """Remove the other directories of the coordinators."""
    kept = {f"{topic}-{number}" for number in numbers}
    for path in log_directory.glob("__*_*-*"):
        if path.name not in kept:
            shutil.rmtree(path)


def count_in(plan: Any, topic: str) -> int:  # noqa: ANN401 - a plan, whose image is read
    return len(plan.made.image.topic_named(topic).partitions)


def notes_about(plan: Any, about: str) -> str:  # noqa: ANN401 - a plan, whose notes are read
    return "\n".join(note.text for note in plan.made.notes if note.about == about)


def with_names(version: str, topic: str) -> list[int]:
    """Return the partitions in which the broker stored names, those of transactional commits aside."""
    return sorted({number for found in said(version)["storedIn"][topic].values() for number in found})


# -- the number of partitions ------------------------------------------------------------------------------------------

LEFT: Final[dict[str, Callable[[list[int]], Iterable[int]]]] = {
    "all": lambda _named: range(50),
    "all but the last": lambda _named: range(49),
    "every other one, and those with names": lambda named: {*range(0, 49, 2), *named} - {49},
    "those with names, without the last": lambda named: set(named) - {49},
}
"""Which partitions a disk still has: numbers, from those with names."""


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize(("version", "topic"), OF_TOPICS)
def test_without_metadata_a_topic_has_the_partitions_that_its_broker_gave_it(
    version: str, topic: str, left: str, tmp_path: Path
) -> None:
    old = without_metadata(left_by(version, tmp_path / "old"), *CHECKPOINTS)
    keep(old, topic, LEFT[left](with_names(version, topic)))
    plan = resurrect(old)
    assert count_in(plan, topic) == said(version)["partitions"][topic] == 50
    assert "the names in it show" not in notes_about(plan, topic)


@pytest.mark.parametrize(("version", "topic"), OF_TOPICS)
def test_a_third_of_the_partitions_suffices_whichever_it_is(version: str, topic: str, tmp_path: Path) -> None:
    whole = without_metadata(left_by(version, tmp_path / "whole"), *CHECKPOINTS)
    found = set()
    for number in range(3):
        old = tmp_path / f"old-{number}"
        old.mkdir()
        for kept in range(number, 50, 3):
            shutil.copytree(whole / f"{topic}-{kept}", old / f"{topic}-{kept}")
        plan = resurrect(old)
        found.add(count_in(plan, topic))
        text = notes_about(plan, topic)
        assert "is given 50 partitions, a guess" in text or "had 50 partitions, as no other number puts" in text
    assert found == {50}


@pytest.mark.parametrize("topic", TOPICS["4.4.0"])
def test_half_of_the_partitions_that_could_be_all_of_them_is_a_guess(topic: str, tmp_path: Path) -> None:
    old = without_metadata(left_by("4.4.0", tmp_path / "old"), *CHECKPOINTS)
    keep(old, topic, range(25))
    plan = resurrect(old)
    assert count_in(plan, topic) in {25, 50}
    assert "partitions, a guess, as its names" in notes_about(plan, topic)


@pytest.mark.parametrize("topic", TOPICS["4.4.0"])
def test_single_directory_of_a_topic_is_one_of_fifty_and_that_is_a_guess(topic: str, tmp_path: Path) -> None:
    whole = left_by("4.4.0", tmp_path / "whole")
    number = next(each for each in range(50) if each not in {0, *with_names("4.4.0", topic)})
    (tmp_path / "old").mkdir()
    for name in (f"{topic}-0", f"{topic}-{number}"):  # no name is in the second one, and none in an empty first one
        shutil.copytree(whole / name, tmp_path / "old" / name)
        plan = resurrect(tmp_path / "old")
        assert count_in(plan, topic) == 50
        assert "is given 50 partitions, a guess" in notes_about(plan, topic)
        assert f"--partitions {topic}=N overrules it" in notes_about(plan, topic)
        shutil.rmtree(tmp_path / "old" / name)


@pytest.mark.parametrize("checkpoint", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
def test_checkpoints_list_partitions_that_are_not_here(checkpoint: str, tmp_path: Path) -> None:
    old = without_metadata(left_by("4.4.0", tmp_path / "old"), *CHECKPOINTS)
    keep(old, "__share_group_state", range(7))
    (old / checkpoint).write_text("0\n1\n__share_group_state 63 0\n", encoding="ascii")
    plan = resurrect(old)
    assert count_in(plan, "__share_group_state") == 64
    assert "a guess" in notes_about(plan, "__share_group_state")


def test_names_that_contradict_each_other_are_not_believed(tmp_path: Path) -> None:
    old = without_metadata(left_by("4.4.0", tmp_path / "old"), *CHECKPOINTS)
    keep(old, "__consumer_offsets", {9, 12, 42, 43})
    log = f"{0:020}.log"
    shutil.copy(old / "__consumer_offsets-9" / log, old / "__consumer_offsets-12" / log)
    shutil.copy(old / "__consumer_offsets-43" / log, old / "__consumer_offsets-42" / log)
    plan = resurrect(old)
    assert count_in(plan, "__consumer_offsets") == 50
    assert "a guess, as no number puts its names" in notes_about(plan, "__consumer_offsets")


def test_positions_of_groups_are_those_that_the_broker_said(tmp_path: Path) -> None:
    for version in TOPICS:
        groups = open_cluster(left_by(version, tmp_path / version)).coordinators.groups
        positions = {
            name: {f"{topic}-{number}": each.offset for (topic, number), each in group.offsets.items()}
            for name, group in groups.items()
            if group.type != "share"
        }
        assert positions == said(version)["groups"]


@pytest.mark.parametrize("version", TOPICS)
def test_records_are_those_that_the_broker_served(version: str, tmp_path: Path) -> None:
    old = left_by(version, tmp_path)
    for what, answer in said(version)["records"].items():
        directory, isolation = what.split(", ")
        with open_partition(old / directory) as partition:
            read = expected_answers(partition, isolation)
        assert read == [answer] * len(read)


# -- numbers of partitions that a user gives ---------------------------------------------------------------------------


def test_given_number_of_partitions_overrules_a_guess(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = without_metadata(left_by("4.4.0", tmp_path / "old"), *CHECKPOINTS)
    keep(old, "__share_group_state", [0])
    plan = resurrect(old, partitions={"__share_group_state": 3})
    assert count_in(plan, "__share_group_state") == 3
    assert "had 3 partitions, as it was asked for; no directory of 2 of them is here" in notes_about(
        plan, "__share_group_state"
    )
    assert run(["resurrect", "--json", str(old), "--partitions", "__share_group_state=3"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    texts = [line["text"] for line in lines if line["type"] == "note" and line["about"] == "__share_group_state"]
    assert any("had 3 partitions, as it was asked for" in text for text in texts)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"orders": 5}, "'orders' is no topic of a coordinator"),
        ({"__consumer_offset": 50}, "'__consumer_offset' is no topic of a coordinator"),
        ({"__consumer_offsets": 49}, "at least 50 partitions, as there is a directory of __consumer_offsets-49"),
        ({"__consumer_offsets": 0}, "from 1 to"),
        ({"__consumer_offsets": 10**9}, "from 1 to"),
        ({"__share_group_state": 50}, "__share_group_state is not among the topics that are taken"),
    ],
)
def test_given_number_that_cannot_be_is_refused(given: dict[str, int], text: str, tmp_path: Path) -> None:
    old = without_metadata(left_by("3.9.1", tmp_path / "old"))
    with pytest.raises(UsageError, match=text):
        resurrect(old, partitions=given)
    (topic, number), *_ = given.items()
    assert run(["resurrect", str(old), "--partitions", f"{topic}={number}"]) == 2


def test_given_number_does_not_overrule_the_metadata(tmp_path: Path) -> None:
    old = left_by("3.9.1", tmp_path / "old")
    with pytest.raises(UsageError, match="the metadata say that __consumer_offsets has 50 partitions, not 60"):
        resurrect(old, partitions={"__consumer_offsets": 60})
    assert count_in(resurrect(old, partitions={"__consumer_offsets": 50}), "__consumer_offsets") == 50


@pytest.mark.parametrize(
    "text", ["", "=50", "__consumer_offsets", "__consumer_offsets=", "__consumer_offsets=-1", "__consumer_offsets=x"]
)
def test_option_that_names_no_number_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resurrect", str(left_by("3.9.1", tmp_path / "old")), "--partitions", text]) == 2
    assert "is not TOPIC=N, such as __consumer_offsets=50" in capsys.readouterr().err


# -- settings ----------------------------------------------------------------------------------------------------------


def topic_settings(image: Any) -> dict[str, dict[str, str]]:  # noqa: ANN401 - an image, whose settings are read
    return {resource.name: dict(values) for resource, values in image.configs.items() if resource.resource_type == 2}


@pytest.mark.parametrize("version", TOPICS)
def test_settings_of_internal_topics_stay_as_the_broker_had_them(version: str, tmp_path: Path) -> None:
    plan = resurrect(left_by(version, tmp_path / "old"))
    node = topic_settings(plan.made.image)
    for topic, settings in said(version)["settings"].items():
        kept = {name: value for name, value in node[topic].items() if name in settings}
        added = {name: None for name in node[topic] if name not in settings}
        assert kept == settings
        assert plan.made.old_settings.get(topic, {}) == added
        assert not notes_about(plan, topic)
    if version == "4.4.0":
        assert node["__share_group_state"]["cleanup.policy"] == "delete"
        assert node["__share_group_state"]["retention.ms"] == "-1"


@pytest.mark.parametrize("version", TOPICS)
def test_every_setting_that_the_node_has_otherwise_is_in_the_plan(version: str, tmp_path: Path) -> None:
    old = left_by(version, tmp_path / "old")
    plan = resurrect(old)
    before, after = topic_settings(open_cluster(old).image()), topic_settings(plan.made.image)
    changed = {
        topic: {name: before.get(topic, {}).get(name) for name in before.get(topic, {}) | after[topic]}
        for topic in after
    }
    changed = {
        topic: {name: value for name, value in values.items() if after[topic].get(name) != value}
        for topic, values in changed.items()
    }
    assert plan.made.old_settings == {topic: values for topic, values in changed.items() if values}
    reported = {line["topic"]: line["settings"] for line in plan.report() if line["type"] == "oldSettings"}
    assert reported == plan.made.old_settings


@pytest.mark.parametrize("release", TOPICS)
def test_settings_are_guessed_only_without_metadata_and_are_those_of_a_new_topic(release: str, tmp_path: Path) -> None:
    witness = json.loads((FIXTURES / "witnesses" / "internal-topic-settings.json").read_bytes())["settings"]
    plan = resurrect(without_metadata(left_by(release, tmp_path / "old")))
    node = topic_settings(plan.made.image)
    for topic, settings in witness[release].items():
        assert node[topic]["cleanup.policy"] == settings["cleanup.policy"]
        assert node[topic].get("retention.ms") == settings.get("retention.ms")
        assert node[topic].items() <= {**settings, "retention.bytes": "-1"}.items()
        assert "its settings are lost; it gets, as a guess, cleanup.policy=" in notes_about(plan, topic)


def test_groups_that_need_a_feature_are_named_where_its_level_is_lost(tmp_path: Path) -> None:
    old = left_by("4.4.0", tmp_path / "old")
    assert not notes_about(resurrect(old), "group share-blue")
    text = notes_about(resurrect(without_metadata(old)), "group share-blue")
    assert text.startswith("is a share group, which needs share.version: its level is lost with the metadata")


# -- names of topics ---------------------------------------------------------------------------------------------------


def renamed_in_metadata(log_directory: Path, old: bytes, new: bytes) -> None:
    """Give a topic another name of the same size in the metadata log."""
    assert len(old) == len(new)
    (log,) = (log_directory / METADATA).glob("*.log")
    data, position = bytearray(log.read_bytes()), 0
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        batch = bytes(data[position : position + size]).replace(old, new)
        data[position : position + size] = batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]
        position += size
    log.write_bytes(data)


@pytest.mark.req("SEG-PDR-002")
@pytest.mark.parametrize("name", ["or/ers", "or ers", "../ers", "orde\N{DEGREE SIGN}", "\0rders"])
def test_topic_of_the_metadata_that_no_broker_creates_is_left_out(name: str, tmp_path: Path) -> None:
    old = left_by("4.4.0", tmp_path / "old")
    renamed_in_metadata(old, b"orders", name.encode("utf-8"))
    assert open_cluster(old).image().topic_named(name) is not None
    plan = resurrect(old, tmp_path / "node")
    assert plan.made.image.topic_named(name) is None
    assert "SEG-PDR-002" in notes_about(plan, name)
    assert "--unknown-topics takes it" in notes_about(plan, "orders")
    assert ("orders", 0) in resurrect(old, unknown_topics=True).made.logs
    plan.apply()
    assert not [path for path in (tmp_path / "node").iterdir() if path.name.startswith("or")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node", "old"]


# -- groups of Kafka Streams -------------------------------------------------------------------------------------------


def test_streams_groups_are_what_the_broker_said_of_them(tmp_path: Path) -> None:
    cluster = open_cluster(left_by("streams-4.4.0", tmp_path))
    groups, topics = cluster.coordinators.groups, cluster.image().topics.values()
    answers = said("streams-4.4.0")["groups"]
    assert groups.keys() == answers.keys()
    for name, answer in answers.items():
        group = groups[name]
        assert group.type == "streams"
        assert (str(group.epoch), str(len(group.members))) == (answer["left"]["groupEpoch"], answer["left"]["members"])
        positions = {f"{topic}-{number}": found.offset for (topic, number), found in group.offsets.items()}
        assert positions == answer["positions"]
    own = {text.strip("[]") for answer in answers.values() for _, *sets in answer["subtopologies"] for text in sets}
    assert own - {""} <= {topic.name for topic in topics}


def test_streams_group_has_its_member_until_the_records_that_remove_it(tmp_path: Path) -> None:
    logs = left_by("streams-4.4.0", tmp_path)
    for name, partitions in said("streams-4.4.0")["storedIn"].items():
        (number,) = partitions
        log = logs / f"__consumer_offsets-{number}" / f"{0:020}.log"
        with open_partition(log.parent) as partition:
            *_, last = partition.batches()
        log.write_bytes(log.read_bytes()[: -last.header.size_in_bytes])
        group = open_cluster(logs).coordinators.groups[name]
        running = said("streams-4.4.0")["groups"][name]["running"]
        assert (str(group.epoch), str(len(group.members))) == (running["groupEpoch"], running["members"])
