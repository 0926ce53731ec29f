"""What is inferred where the metadata are silent: Kafka's hash of names, numbers of partitions, settings."""

from __future__ import annotations

import gzip
import json
import shutil
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from helpers.walking import each_of

from seglog_format import open_cluster
from seglog_format.cluster.image import ConfigResource, MetadataImage, TopicImage
from seglog_format.cluster.new_image import (
    DEFAULT_COUNT,
    DEFAULT_SETTINGS,
    KEY_FIELDS,
    add_missing_partitions,
    count_of,
    guess_settings,
    hashes_in,
    leave_out_refused,
    name_hash,
    new_image,
)
from tests.helpers.support import FIXTURES, authentic
from tests.test_coordinator_topics import OF_TOPICS, left_by, said
from tests.test_resurrect import NODE, replica

if TYPE_CHECKING:
    from pathlib import Path


# -- the partition of a name -------------------------------------------------------------------------------------------


@cache
def asked_of_kafka() -> tuple[dict[str, Any], list[list[Any]]]:
    """Return the header and the rows of what Kafka's own classes answered."""
    with gzip.open(FIXTURES / "witnesses" / "partition-of-names.jsonl.gz", "rt", encoding="ascii") as file:
        header, *rows = map(json.loads, file)
    return header, rows


def test_names_belong_to_the_partitions_that_classes_of_kafka_say() -> None:
    header, rows = asked_of_kafka()
    names = [row for row in rows if isinstance(row[0], str)]
    assert len(names) == 10_000
    for name, *partitions in names:
        assert [name_hash(name) % count for count in header["counts"]] == partitions, name


def test_share_partitions_belong_to_the_partitions_that_classes_of_kafka_say() -> None:
    header, rows = asked_of_kafka()
    shares = [row for row in rows if not isinstance(row[0], str)]
    assert len(shares) == 500
    for key, *partitions, text in shares:
        assert text == ":".join(map(str, key))
        assert [name_hash(text) % count for count in header["counts"]] == partitions, key


def test_witness_has_names_of_both_signs_and_those_with_the_least_int() -> None:
    _, rows = asked_of_kafka()
    absolute = {row[0]: row[1] for row in rows if isinstance(row[0], str)}
    cut = {name: _signed(name) & 0x7FFFFFFF for name in absolute}
    differing = sum(absolute[name] != cut[name] for name in absolute)
    assert 4000 < differing < 6000
    least = {name for name in absolute if _signed(name) == -(2**31)}
    assert least >= {"polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES"}
    assert {absolute[name] for name in least} == {0}
    assert "" in absolute
    assert any(ord(char) > 0xFFFF for name in absolute for char in name)


def _signed(name: str) -> int:
    code = 0
    for unit in memoryview(name.encode("utf-16-le")).cast("H"):
        code = 31 * code + unit
    return (code + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(("version", "topic"), OF_TOPICS)
def test_names_on_a_stock_broker_lie_where_their_hashes_say(version: str, topic: str, tmp_path: Path) -> None:
    old = left_by(version, tmp_path)
    found = {number: hashes_in(topic, old / f"{topic}-{number}") for number in range(DEFAULT_COUNT)}
    assert all(each % DEFAULT_COUNT == number for number, hashes in found.items() for each in hashes)
    stored = said(version)["storedIn"][topic]
    assert {number for numbers in stored.values() for number in numbers} <= {key for key in found if found[key]}
    if topic != "__share_group_state":
        assert all(name_hash(name) in found[number] for name, (number,) in stored.items())


def test_names_in_partitions_of_early_brokers() -> None:
    groups = hashes_in("__consumer_offsets", authentic("4.3.0/consumer-offsets") / "__consumer_offsets-0")
    assert groups == {name_hash("group-A"), name_hash("group-two")}
    assert hashes_in("__transaction_state", authentic("4.3.0/transaction-state") / "__transaction_state-0")


# -- the number of partitions ------------------------------------------------------------------------------------------


@each_of(
    ("hashes", "count", "is_guess"),
    [
        ({}, 50, True),
        ({0: []}, 50, True),
        ({0: [], 1: [], 2: []}, 50, True),
        ({number: [] for number in range(4)}, 4, False),
        ({number: [] for number in range(50)}, 50, False),
        ({0: [50], 49: [99]}, 50, False),
        ({number: [] for number in range(49)} | {3: [103]}, 50, True),
        ({number: [] for number in range(49)} | {3: [53], 7: [57]}, 50, False),
        ({3: [53], 7: [107]}, 50, True),
        ({3: [60], 7: [64]}, 19, True),
        ({5: [55, 107, 163]}, 50, True),
        ({0: [1], 1: [1]}, 50, True),
        ({0: [1], 60: [1]}, 61, True),
        ({0: [3, 5]}, 1, False),
        ({0: [3, 6]}, 1, True),
        ({number: [] for number in range(25)} | {1: [51], 2: [102]}, 25, True),
        ({number: [] for number in range(25)} | {1: [26], 2: [52]}, 25, False),
        ({0: [7 * number for number in range(1, 30)]}, 7, True),
    ],
)
def test_number_of_partitions_is_one_that_puts_each_name_where_it_is(
    hashes: dict[int, list[int]], *, count: int, is_guess: bool
) -> None:
    found = count_of(hashes)
    assert (found.number, found.is_guess) == (count, is_guess)
    assert not is_guess or found.reason.startswith("a guess")


def test_checkpoints_raise_the_least_number() -> None:
    assert count_of({0: []}, 64).number == 64
    assert count_of({number: [] for number in range(49)}, 50) == count_of(
        {number: [] for number in range(50)}, 0
    )._replace(is_guess=True)


def test_names_of_one_series_are_no_evidence_of_their_own() -> None:
    alike = {12 + digit: [name_hash(f"console-consumer-1000{digit}")] for digit in range(10)}
    shifted = {number: [each - min(alike[12]) + 12 + 100 for each in found] for number, found in alike.items()}
    assert count_of(shifted).number == DEFAULT_COUNT


def test_missing_partitions_of_the_groups_are_made(tmp_path: Path) -> None:
    hashes = [name_hash("group-A"), name_hash("group-two")]
    assert [each % DEFAULT_COUNT for each in hashes] == [15, 10], "as the brokers of fixtures/coordinators stored them"
    old = left_by("3.9.1", tmp_path / "whole")
    for number in (10, 15):
        shutil.copytree(old / f"__consumer_offsets-{number}", tmp_path / "old" / f"__consumer_offsets-{number}")
    cluster = open_cluster(tmp_path / "old")
    image = cluster.image()
    ((name, text),) = add_missing_partitions(image, cluster.replicas)
    assert name == "__consumer_offsets"
    assert "50 partitions" in text
    assert sorted(image.topic_named(name).partitions) == list(range(DEFAULT_COUNT))


@pytest.mark.parametrize("given", [{}, {"__consumer_offsets": 50}])
def test_absurd_partition_number_does_not_count(given: dict[str, int], tmp_path: Path) -> None:
    for number in (15, 2**31 - 1):
        shutil.copytree(
            authentic("4.3.0/consumer-offsets") / "__consumer_offsets-0", tmp_path / f"__consumer_offsets-{number}"
        )
    cluster = open_cluster(tmp_path)
    image = cluster.image()
    (note,) = add_missing_partitions(image, cluster.replicas, given=given)
    assert "50 partitions" in note.text
    assert set(range(50)) < image.topic_named("__consumer_offsets").partitions.keys()


# -- settings ----------------------------------------------------------------------------------------------------------


def image_with_coordinators(**settings: str) -> MetadataImage:
    """Return an image with all topics of coordinators, and settings of each."""
    image = MetadataImage()
    for name in KEY_FIELDS:
        image.topics[name] = TopicImage(name, f"id of {name}", {0: {"partitionId": 0, "leaderEpoch": 0}})
        if settings:
            image.configs[ConfigResource(2, name)] = {key.replace("_", "."): value for key, value in settings.items()}
    return image


def test_guessed_cleanup_is_that_which_stock_brokers_choose() -> None:
    witness = json.loads((FIXTURES / "witnesses" / "internal-topic-settings.json").read_bytes())
    assert [*witness["settings"]] == witness["releases"] == ["3.9.1", "4.4.0"]
    for settings in witness["settings"].values():
        for topic, values in settings.items():
            kept = {"cleanup.policy", "retention.ms", "retention.bytes"}
            assert DEFAULT_SETTINGS[topic] == {key: value for key, value in values.items() if key in kept}


def test_settings_are_guessed_where_the_metadata_do_not_know_the_topic() -> None:
    image = image_with_coordinators()
    assert guess_settings(image, ["orders"]) == []
    assert image.configs == {}
    (note,) = guess_settings(image, ["__share_group_state"])
    assert "as a guess" in note.text
    assert {resource.name: values for resource, values in image.configs.items()} == {
        "__share_group_state": DEFAULT_SETTINGS["__share_group_state"]
    }
    assert len(guess_settings(image, None)) == 2


@pytest.mark.parametrize("topic", KEY_FIELDS)
@pytest.mark.parametrize("policy", ["compact", "delete", "compact,delete"])
def test_cleanup_policy_of_a_coordinator_stays_and_nothing_is_deleted(policy: str, topic: str) -> None:
    old = image_with_coordinators(cleanup_policy=policy, retention_ms="604800000")
    made = new_image(old, {(topic, 0): (replica("a", (0, 0)),)}, NODE)
    values = made.image.configs[ConfigResource(2, topic)]
    assert values["cleanup.policy"] == policy
    if policy == "compact":
        assert values["retention.ms"] == "604800000"
        assert topic not in made.old_settings
    else:
        assert (values["retention.ms"], values["retention.bytes"]) == ("-1", "-1")
        assert made.old_settings[topic] == {"retention.ms": "604800000", "retention.bytes": None}


# -- names of topics ---------------------------------------------------------------------------------------------------


@pytest.mark.req("SEG-PDR-002")
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a b", "\0", "\udcff", "\N{DEGREE SIGN}", "a" * 250])
def test_refused_name_in_the_metadata_is_left_out_and_told(name: str) -> None:
    image = image_with_coordinators()
    image.topics["id"] = TopicImage(name, "id")
    (note,) = leave_out_refused(image)
    assert (note.about, "SEG-PDR-002" in note.text) == (name, True)
    assert sorted(topic.name for topic in image.topics.values()) == sorted(KEY_FIELDS)
