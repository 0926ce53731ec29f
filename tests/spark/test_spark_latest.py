"""The latest state per key, at every offset, is what the cleaner leaves of the log up to there."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.support import REPOSITORY
from test_compaction_records import ABORT, COMMIT, data, end, in_transaction

from seglog_format import LogConfig, open_partition
from seglog_format.cleaning.compaction_apply import compact_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("no_fsync")]

PAGE = REPOSITORY / "docs" / "how-to" / "keep-the-latest-state-with-spark.md"
LOGS = 6
BATCHES = 9
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}))


def random_log(seed: int) -> list[tuple[int, bytes]]:
    """Return base offsets and batches: of nobody, of transactions, with keys again, with none, and with tombstones."""
    random, base, is_open = Random(seed), 0, False  # noqa: S311 - the same at each run
    found: list[tuple[int, bytes]] = []
    for _ in range(BATCHES):
        pairs = [(random.choice(["a", "b", "c", None]), random.choice(["1", "2", None])) for _ in range(3)]
        kind = random.choice(["plain", "transaction", "end" if is_open else "plain"])
        if kind == "end":
            pairs, is_open = pairs[:1], False
            batch = end(base, random.choice([ABORT, COMMIT]))
        elif kind == "transaction":
            batch, is_open = in_transaction(base, *pairs), True
        else:
            batch = data(base, *pairs)
        found.append((base, batch))
        base += len(pairs)
    return [*found, (base, b"")]


def test_latest_state_is_what_the_cleaner_leaves_at_every_offset(spark: SparkSession, tmp_path: Path) -> None:
    logs, expected = tmp_path / "logs", []
    for seed in range(LOGS):
        batches = random_log(seed)
        for number in range(1, BATCHES + 1):
            partition = BATCHES * seed + number
            for root in (logs, tmp_path / "cleaned"):
                directory = root / f"t-{partition}"
                directory.mkdir(parents=True)
                for base, batch in [*batches[:number], (batches[number][0], b"")]:  # a segment each, the last one empty
                    (directory / f"{base:020}.log").write_bytes(batch)
            compact_partition(directory, CONFIG, now_ms=2000)
            with open_partition(directory) as log:
                kept = log.records(isolation="read_committed", on_gap=lambda _: None)
                expected += [(partition, each.offset, each.key, each.value) for each in kept]
    reader = spark.read.format("seglog").option("isolationLevel", "read_committed")
    scope: dict[str, Any] = {}
    exec(PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], scope)  # noqa: S102 - as documented
    state = scope["latest"](reader.load(str(logs)))
    found = [(row.partition, row.offset, row.key, row.value) for row in state.collect()]
    assert sorted(found) == sorted(expected, key=lambda row: row[:2])
    assert len(found) > LOGS * BATCHES
    assert any(value is None for *_, value in found)
