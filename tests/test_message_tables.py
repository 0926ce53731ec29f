"""The tables of messages in Kafka's own topics: every kind of record, in stored order, with its versions."""

from __future__ import annotations

from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from tools.docs import message_tables


def sections(module: str) -> dict[str, str]:
    text = "\n".join(message_tables.tables(module))
    return {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}


def test_every_kind_of_record_has_its_section() -> None:
    coordinators = [record for records in COORDINATOR_TOPICS.values() for record in records.values()]
    assert sections("coordinator_records").keys() == {record.type for record in coordinators}
    framed = [record for records in FRAMED_TOPICS.values() for record in records.values()]
    assert sections("metadata_records").keys() == {record.name for record in framed}
    assert sections("record_batch") == {}


def test_fields_stand_in_stored_order_with_their_versions() -> None:
    commit = sections("coordinator_records")["offsetCommit"].partition("version of the value")[2]
    rows = [line.split(" | ") for line in commit.splitlines() if line.startswith("| `")]
    assert [(name.strip("|` "), versions.strip(" |")) for name, _, versions in rows] == [
        ("offset", "all"),
        ("leaderEpoch", "3 and later"),
        ("metadata", "all"),
        ("commitTimestamp", "all"),
        ("expireTimestamp", "1"),
        ("topicId", "4 and later"),
    ]
    broker = sections("metadata_records")["REGISTER_BROKER_RECORD"]
    assert broker.index("`isMigratingZkBroker` | bool | 2 and later") < broker.index("`incarnationId` | uuid | all")
    assert "| `rack` | string, nullable | all |" in broker
    assert "| `cordonedLogDirs` | array of uuid, nullable, tag 1 | 4 and later |" in broker
