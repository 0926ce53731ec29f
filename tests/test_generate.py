"""Generated directories hold what their recipe says, wherever and however often they are made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import FIXTURES, REPOSITORY, bundled
from helpers.walking import each_of

from seglog_format.checks.verify import verify
from seglog_format.cli.main import run
from seglog_format.codec.checksum import crc32c
from seglog_format.errors import UsageError
from seglog_format.generation import generate as writing
from seglog_format.generation import recipe_model as recipes
from seglog_format.generation import stream
from seglog_format.generation.generate import generate
from seglog_format.generation.plan import PartitionPlan, plan_partition
from seglog_format.generation.recipe import parse_recipe, random_recipe, recipe_like
from seglog_format.generation.recipe_model import SeededRandom
from seglog_format.log.partition import open_partition
from seglog_format.model import INT64_MAX, Message, Record
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from seglog_format.generation.generate import GeneratedLog, GeneratedPartition
    from seglog_format.generation.recipe_model import Recipe

RECIPES = FIXTURES / "recipes"
PAGE = REPOSITORY / "docs" / "how-to" / "generate.md"

NOTES = {
    "codecs": set(),
    "columns": {"SEG-BAT-019"},
    "everything": set(),
    "faults": set(),
    "follower": {"SEG-BAT-019", "SEG-PDR-014"},
    "killed": {"SEG-LOG-005", "SEG-IDX-007", "SEG-TIX-007"},
}
"""What `verify` remarks of each committed recipe, though nothing is wrong."""

DIGESTS = {
    "columns": "e15d723dc8ee4db68aa577c6d1d3e0e31603a97c83376a6bd6c0cb47dad1070a",
    "everything": "4f44137161e711970637321aad2654139ea6bc62dbf3297a7e45ce1b01d3f066",
    "faults": "1d149d9735306dc82e12bd90e6b914779cb47dd9048b51b06e77649366b0fb89",
    "killed": "b860d78f4c2f613c591619915abdcef44c3f6f9ffe3cfb7bc1a070189c40318b",
}
"""SHA-256 over names and bytes of what the recipes without compression make; those of version 1 never change."""

SMALL = """
[[topic]]
[[topic.step]]
records = 5
"""


@cache
def committed(name: str) -> Recipe:
    return parse_recipe((RECIPES / f"{name}.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=sorted(NOTES))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, GeneratedLog]:
    return request.param, generate(committed(request.param), tmp_path_factory.mktemp("made") / "data")


def essence(record: Record | Message) -> tuple[Any, ...]:
    fields = (record.offset, record.timestamp_ms, record.timestamp_type, record.key, record.value, record.headers)
    return *fields, record.sequence


def stored(partition: GeneratedPartition) -> list[tuple[Any, ...]]:
    with open_partition(partition.path) as opened:
        batches = [batch for batch in opened.batches() if not batch.header.is_control]
    return [essence(record) for batch in batches for record in batch.records]


def findings(path: Path) -> dict[str, Severity]:
    return {finding.requirement: finding.severity for finding in verify(path)}


def digest(root: Path) -> str:
    content = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        content.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return content.hexdigest()


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# What is made


def test_there_are_no_other_recipes() -> None:
    assert sorted(path.stem for path in RECIPES.iterdir()) == sorted(NOTES)


def test_nothing_is_wrong_with_what_is_made(made: tuple[str, GeneratedLog]) -> None:
    name, log = made
    found = findings(log.path)
    assert set(found) == NOTES[name]
    assert set(found.values()) <= {Severity.NOTE}


def test_records_are_those_of_the_plan(made: tuple[str, GeneratedLog]) -> None:
    for partition in made[1].partitions:
        planned, found = [essence(record) for record in partition.plan.records], stored(partition)
        if partition.plan.topic.compact:
            assert 0 < len(found) < len(planned) / 5
            assert set(found) <= set(planned)
        else:
            assert found == planned


def test_committed_records_are_those_of_the_plan(made: tuple[str, GeneratedLog]) -> None:
    for partition in made[1].partitions:
        with open_partition(partition.path) as opened:
            read = [record.offset for record in opened.records(isolation="read_committed")]
        if made[1].recipe.version == 1:
            assert read == committed_offsets(partition.plan)


def committed_offsets(plan: PartitionPlan) -> list[int]:
    """Below the first transaction that is open, without the aborted ones: by the plan alone."""
    transactions = plan.transactions
    end = min((t.first_offset for t in transactions if t.last_offset is None), default=INT64_MAX)
    aborted = [(t.producer_id, t.first_offset, t.last_offset) for t in transactions if t.is_aborted]
    offsets = []
    for append in plan.appends:
        producer_id = int.from_bytes(append.data[43:51], "big", signed=True) if append.data[16] == 2 else -1
        is_aborted = any(
            producer_id == producer and first <= append.base_offset < (last or 0) for producer, first, last in aborted
        )
        if not append.is_control and not is_aborted:
            offsets += [record.offset for record in append.records if record.offset < end]
    return offsets


def test_recipes_together_show_every_kind_of_transaction_and_batch() -> None:
    older = [recipe for recipe in map(committed, NOTES) if recipe.version == 1]
    plans = [plan_partition(recipe, topic, 0, recipe.seed) for recipe in older for topic in recipe.topics]
    fates = {(t.is_aborted, t.last_offset is None) for plan in plans for t in plan.transactions}
    assert fates == {(True, False), (False, False), (False, True)}
    appends = [append for plan in plans for append in plan.appends]
    assert {append.data[16] for append in appends} == {0, 1, 2}
    assert any(not append.records for append in appends)
    steps = [step for recipe in map(committed, NOTES) for topic in recipe.topics for step in topic.steps]
    assert {step.codec for step in steps} == set(recipes.CODECS)
    assert {step.timestamps.order for step in steps} == set(recipes.ORDERS)
    assert {step.value.kind for step in steps} | {step.key.kind for step in steps} == set(recipes.VALUE_KINDS)


def test_a_killed_writer_leaves_its_files_as_they_were(tmp_path: Path) -> None:
    log = generate(committed("killed"), tmp_path / "data")
    assert not (log.path / ".kafka_cleanshutdown").exists()
    last = max(log.partitions[0].path.glob("*.log"))
    assert last.stat().st_size == 8192
    assert last.with_suffix(".index").stat().st_size == 1024
    clean = generate(dataclasses.replace(committed("killed"), end="clean"), tmp_path / "clean")
    assert (clean.path / ".kafka_cleanshutdown").exists()
    last = max(clean.partitions[0].path.glob("*.log"))
    assert last.stat().st_size < 8192


def test_topics_without_steps_are_empty_logs(made: tuple[str, GeneratedLog]) -> None:
    empty = [partition for partition in made[1].partitions if not partition.plan.topic.steps]
    assert all(sum(path.stat().st_size for path in partition.path.glob("*.log")) == 0 for partition in empty)


# Seeds


def test_uncompressed_bytes_are_always_the_same(made: tuple[str, GeneratedLog]) -> None:
    name, log = made
    assert name not in DIGESTS or digest(log.path) == DIGESTS[name]


def test_version_2_needs_no_extra_for_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream._mixer.cache_clear()
    for module in (stream, writing):
        monkeypatch.setattr(module, "is_installed", lambda: False)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert digest(generate(committed("columns"), tmp_path / "data").path) == DIGESTS["columns"]
    stream._mixer.cache_clear()


@pytest.mark.parametrize("codec", recipes.CODECS)
@pytest.mark.parametrize("kind", ["random", "text", "json"])
def test_version_2_compresses_what_it_made(codec: str, kind: str, tmp_path: Path) -> None:
    step = {"records": 300, "codec": codec, "value": {"kind": kind}, "headers": {"count": [0, 2]}}
    (partition,) = generate({"version": 2, "topic": [{"step": [step]}]}, tmp_path / "data").partitions
    assert stored(partition) == [essence(record) for record in partition.plan.records]
    assert findings(tmp_path / "data") == {}


def test_a_fetch_takes_many_pieces(tmp_path: Path) -> None:
    step = {
        "records": 5000,
        "batch": [1, 30],
        "value": {"kind": "random", "size": [0, 2000]},
        "key": {"kind": "random"},
    }
    step["producers"] = {"kind": "transactional", "count": 7, "abort": 0.5, "open": 2}
    settings = {"segment.bytes": 1_000_000, "segment.index.bytes": 300}
    (partition,) = generate(
        {"version": 2, "topic": [{"settings": settings, "step": [step]}]}, tmp_path / "data"
    ).partitions
    assert stored(partition) == [essence(record) for record in partition.plan.records]
    assert findings(tmp_path / "data") == {}
    assert {t.is_aborted for t in partition.plan.transactions} == {True, False}
    assert sum(t.last_offset is None for t in partition.plan.transactions) == 2


def test_sizes_follow_the_parts_of_a_recipe() -> None:
    sizes = stream.Draws(1, "test").within(30_000, (0, 10, 1000, 5000))
    assert min(sizes) == 0
    assert max(sizes) <= 5000
    shares = [sum(low <= size < high for size in sizes) / 30_000 for low, high in ((0, 10), (11, 1000), (1001, 5001))]
    assert all(0.28 < share < 0.38 for share in shares)


def test_progress_counts_all_records(tmp_path: Path) -> None:
    seen: list[int] = []
    recipe = {"version": 2, "topic": [{"partitions": 2, "step": [{"records": 30}]}, {"name": "b", "step": [{}]}]}
    generate(recipe, tmp_path / "data", report=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 160


def test_a_producer_does_not_go_back_to_an_older_epoch(tmp_path: Path) -> None:
    steps = [{"producers": {"kind": "idempotent", "epoch": epoch}} for epoch in (4, 3)]
    with pytest.raises(UsageError, match="SEG-APP-009"):
        generate({"version": 2, "topic": [{"step": steps}]}, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_batch_above_the_limit_of_its_topic_is_refused(tmp_path: Path) -> None:
    topic = {"settings": {"max.message.bytes": 1000}, "step": [{"value": {"size": 1000}}]}
    with pytest.raises(UsageError, match="SEG-APP-006"):
        generate({"version": 2, "topic": [topic]}, tmp_path / "data")


def test_the_seed_decides(tmp_path: Path) -> None:
    recipe = parse_recipe(SMALL)
    made = [generate(recipe, tmp_path / name, seed).path for name, seed in (("a", 1), ("b", 1), ("c", 2), ("d", None))]
    trees = [tree(path) for path in made]
    assert trees[0] == trees[1]
    assert trees[0] != trees[2]
    assert trees[3] == tree(generate(recipe, tmp_path / "e", recipe.seed).path)


def test_numbers_are_the_same_under_every_python() -> None:
    dice = SeededRandom(7, "topic", 3)
    assert [dice.number(0, 999) for _ in range(6)] == [587, 27, 269, 60, 603, 458]
    assert dice.data(4).hex() == "4ba118d4"
    assert dice.fraction() == 0.4404475798570172
    assert dice.shuffled("abcdef") == list("edfacb")


def test_a_number_is_within_its_range() -> None:
    dice = SeededRandom(1)
    assert {dice.number(-2, 2) for _ in range(200)} == {-2, -1, 0, 1, 2}
    assert dice.number(5, 5) == 5
    assert dice.data(0) == b""


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_who_set_the_times_of_a_stamped_transaction(role: str, tmp_path: Path) -> None:
    recipe = parse_recipe(
        f"""
        [[topic]]
        name = "t"
        [topic.settings]
        "message.timestamp.type" = "LogAppendTime"
        [[topic.step]]
        role = "{role}"
        records = 20
        producers = {{ kind = "transactional", count = 2, abort = 0.5 }}
        """
    )
    (partition,) = generate(recipe, tmp_path / "data").partitions
    planned = [record for append in partition.plan.appends for record in append.records]  # end markers too
    with open_partition(partition.path) as opened:
        found = [(record.offset, record.timestamp_type) for batch in opened.batches() for record in batch.records]
    assert found == [(record.offset, record.timestamp_type) for record in planned]


@pytest.mark.parametrize("seed", range(8))
def test_recipes_made_up_from_seeds(seed: int, tmp_path: Path) -> None:
    recipe = random_recipe(seed)
    assert recipe == random_recipe(seed)
    log = generate(recipe, tmp_path / "data")
    assert set(findings(log.path).values()) <= {Severity.NOTE}
    for partition in log.partitions:
        assert stored(partition) == [essence(record) for record in partition.plan.records]


def test_recipes_made_up_use_the_magics_asked_for() -> None:
    made_up = [random_recipe(seed, magics=(1,)) for seed in range(10)]
    assert {step.magic for recipe in made_up for topic in recipe.topics for step in topic.steps} == {1}


# Like an existing directory


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_recipe_like_a_directory_makes_such_a_directory(
    codec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = {
        "records": 2000,
        "batch": [5, 9],
        "codec": codec,
        "key": {"distinct": 40, "size": 9},
        "value": {"size": [10, 20, 400], "null": 0.2},
        "headers": {"count": 2, "size": 7},
        "timestamps": {"order": "shuffled", "step_ms": 30},
        "producers": {"kind": "transactional", "count": 3, "abort": 0.3, "batches": 4},
    }
    generate({"version": 2, "topic": [{"name": "my-secret", "partitions": 2, "step": [step]}]}, tmp_path / "old")
    assert run(["generate", "--like", str(tmp_path / "old")]) == 0
    text = capsys.readouterr().out
    assert "secret" not in text
    recipe = parse_recipe(text)
    (topic,) = recipe.topics
    (found,) = topic.steps
    assert (topic.name, topic.partitions, found.records, found.codec) == ("topic-0", 2, 2000, codec)
    assert (found.key.distinct, found.key.size, found.headers.count) == (40, (9, 9), (2, 2))
    assert found.headers.size == (7,) * 2
    assert abs(found.value.null - 0.2) < 0.05
    assert (found.value.size[0], found.value.size[-1]) == (10, 400)
    assert found.producers.kind == "transactional"
    assert found.producers.count == 3
    assert abs(found.producers.abort - 0.3) < 0.15
    assert found.timestamps.order == "shuffled"
    assert found.timestamps.step_ms in {29, 30}
    generate(recipe, tmp_path / "new")
    log_sizes = [sum(path.stat().st_size for path in (tmp_path / name).rglob("*.log")) for name in ("old", "new")]
    assert 0.8 < log_sizes[1] / log_sizes[0] < 1.25
    assert findings(tmp_path / "new") == {}


@pytest.mark.parametrize("name", ["4.4.0/txn", "0.8.2.2/codec-lz4", "4.4.0/empty", "4.4.0/segs-fine"])
def test_a_recipe_like_a_brokers_directory(name: str, tmp_path: Path) -> None:
    generate(recipe_like(bundled(name)), tmp_path / "new")
    assert set(findings(tmp_path / "new").values()) <= {Severity.NOTE}


def test_a_recipe_like_a_directory_counts_no_control_record_of_another_type_as_a_commit(tmp_path: Path) -> None:
    step = {"records": 40, "batch": 5, "producers": {"kind": "transactional", "abort": 1.0, "batches": 1}}
    generate({"version": 2, "topic": [{"name": "t", "step": [step]}]}, tmp_path / "old")
    (path,) = tmp_path.rglob("*.log")
    data = bytearray(path.read_bytes())
    with open_partition(path.parent) as partition:
        start = next(batch.position for batch in partition.batches() if batch.header.is_control)
    assert data[start + 66 : start + 70].hex() == "00000000"  # version and type: ABORT
    data[start + 69] = 9  # Kafka has no such type
    data[start + 17 : start + 21] = crc32c(data[start + 21 : start + 78]).to_bytes(4, "big")
    path.write_bytes(data)
    assert "abort = 1.0 }" in recipe_like(tmp_path / "old")


def test_a_recipe_like_a_directory_needs_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglog_format.generation.recipe.SAMPLED_SIZE", 5_000)
    step = {"records": 400, "batch": 10, "key": {"kind": "null"}, "value": {"size": 100}}
    topic = {"step": [step], "faults": ["crc@batch:6"]}
    generate({"version": 2, "topic": [topic]}, tmp_path / "old")
    (found,) = parse_recipe(recipe_like(tmp_path / "old")).topics  # the sixth batch is not read
    assert [(step.records, step.batch, step.value.size) for step in found.steps] == [(400, (10, 10), (100, 100))]


def test_a_list_of_keys_loads_no_writer() -> None:
    script = "import sys; from seglog_format.cli.main import run; run(['generate', '--list']); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name for name in found.stdout.splitlines()[-1].split() if name.startswith("seglog_format.")}
    assert "seglog_format.generation.recipe" in loaded
    assert not {name for name in loaded if name.startswith(("seglog_format.writing", "seglog_format.cleaning"))}


def test_like_goes_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "--like", str(tmp_path), "--seed", "3"]) == 2
    assert run(["generate", "--like", str(tmp_path)]) == 2
    assert "no partition directory" in capsys.readouterr().err


# Faults


@each_of(
    ("fault", "broken"),
    [
        ("crc@batch:3", {"SEG-BAT-003"}),
        ("crc@batch:23", {"SEG-BAT-003"}),
        ("truncate@last:5", {"SEG-LOG-004", "SEG-CKP-012"}),
        ("truncate@byte:2355", set()),
        ("truncate@byte:1234", {"SEG-LOG-004", "SEG-IDX-003", "SEG-CKP-012"}),
        ("flip@byte:100", {"SEG-BAT-003"}),
        ("flip@byte:16", {"SEG-BAT-004"}),
        ("zero-tail:64", {"SEG-LOG-005"}),
        ("junk-tail:7", {"SEG-LOG-002"}),
        ("stale-index", {"SEG-IDX-003"}),
        ("missing-index", {"SEG-PDR-012"}),
        ("zero-index-tail", {"SEG-IDX-007"}),
        ("zero-index-tail:3", {"SEG-IDX-007"}),
    ],
)
def test_a_fault_breaks_what_it_is_meant_to(fault: str, broken: set[str], tmp_path: Path) -> None:
    recipe = parse_recipe(
        (RECIPES / "faults.toml").read_text(encoding="utf-8"), [f"topic.0.faults=[{json.dumps(fault)}]"]
    )
    assert set(findings(generate(recipe, tmp_path / "data").path)) == broken


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crc@batch:1", "fewer batches"),
        ("truncate@byte:100000", "the last segment has"),
        ("flip@byte:100000", "the last segment has"),
        ("truncate@last:100000", "the last segment has"),
    ],
)
def test_a_fault_that_cannot_be_made_is_refused(fault: str, reason: str, tmp_path: Path) -> None:
    recipe = parse_recipe(SMALL, ["topic.0.step.0.batch=5", f"topic.0.faults=[{json.dumps(fault)}]"])
    with pytest.raises(UsageError, match=reason):
        generate(recipe, tmp_path / "data")


# Recipes


@each_of(
    ("text", "reason"),
    [
        ("", r"one \[\[topic\]\] or more"),
        ("topic = 3", r"topic is a list: write \[\[topic\]\]"),
        ("[[topic]]\n[[topic]]", "each with a different name"),
        ("[[topic]]\nname = 'a b'", r"topic\.0: 'a b' is no name of a topic"),
        ("[[topic]]\npartition = 3", r"topic\.0 has no 'partition', but .*partitions"),
        ("[[topics]]", r"a recipe has no 'topics', but .*topic"),
        ("end = 'dirty'\n[[topic]]", "end is one of clean, killed, not 'dirty'"),
        ("[[topic]]\nfaults = ['crc']", "'crc' is not a known fault"),
        ("[[topic]]\nfaults = 'crc@batch:1'", "faults is a list of texts"),
        ("[[topic]]\n[topic.settings]\n'segment.byte' = 3", "'segment.byte' is not a setting"),
        ("[[topic]]\n[topic.settings]\nsegment.bytes = 3", "names in quotes"),
        ("[[topic]]\n[[topic.step]]\nmagic = 3", r"topic\.0 step\.0 magic is a number from 0 to 2, not 3"),
        ("[[topic]]\n[[topic.step]]\nbatch = [3, 1]", "two in order"),
        ("[[topic]]\n[[topic.step]]\nbatch = true", "two in order"),
        ("[[topic]]\n[[topic.step]]\nroll = 1", "roll is true or false"),
        ("[[topic]]\n[[topic.step]]\nvalue = 'x'", "value is a table"),
        ("[[topic]]\n[[topic.step]]\nvalue = { text = 3 }", "text is text"),
        ("[[topic]]\n[[topic.step]]\nvalue = { null = 2 }", "null is from 0 to 1"),
        ("[[topic]]\n[[topic.step]]\nmagic = 1\ncodec = 'zstd'", "zstd needs magic 2"),
        ("[[topic]]\n[[topic.step]]\nmagic = 1\nheaders = { count = 1 }", "need magic 2"),
        ("[[topic]]\n[[topic.step]]\ngap = 1", "need role = 'follower'"),
        ("[[topic]]\n[[topic.step]]\nproducers = { abort = 0.5 }", "need transactional producers"),
        ("[[topic]]\n[[topic.step]]\nproducers = { kind = 'transactional', open = 2 }", "open must not exceed"),
        ("[[topic]]\nsettings = { generation = '0.8' }\n[[topic.step]]", "generation 0.8 has no magic 2"),
        ("version = 3\n[[topic]]", "version is a number from 1 to 2"),
        ("[[topic]]\ncompact = true", "compact needs version = 2"),
        ("version = 2\n[[topic]]\ncompact = true", "compact needs the setting"),
        ("[[topic]]\n[[topic.step]]\nkey = { distinct = 3 }", "distinct needs version = 2"),
        ("[[topic]]\n[[topic.step]]\nkey = { size = [1, 2, 3] }", "more than two numbers needs version = 2"),
        ("[[topic]]\n[[topic.step]]\nkey = { size = [3, 2] }", "two or more in order"),
        ("[[topic]]\n[[topic.step]]\ntimestamps = { burst = 3 }", "burst and pause_ms need version = 2"),
        ("version = 2\n[[topic]]\n[[topic.step]]\nrole = 'follower'\ngap = 1", "version 2 has no gap"),
        (
            "version = 2\n[[topic]]\nsettings = { 'cleanup.policy' = 'compact' }\n[[topic.step]]\nkey = { null = 0.1 }",
            "SEG-APP-012",
        ),
        ("topic = [", "not valid TOML"),
    ],
)
def test_a_mistake_in_a_recipe_is_told_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_recipe(text)


def test_values_of_a_recipe_can_be_replaced() -> None:
    overrides = ["seed=9", "topic.0.step.0.codec=gzip", 'topic.0.settings."segment.bytes"=4096', "topic.0.name=other"]
    recipe = parse_recipe(SMALL, overrides)
    assert recipe.seed == 9
    assert recipe.topics[0].name == "other"
    assert recipe.topics[0].config.segment_bytes == 4096
    assert recipe.topics[0].steps[0].codec == "gzip"


@pytest.mark.parametrize(
    ("override", "reason"),
    [("seed", "key=value"), ("topic.3.name=x", "there is no 3"), ("topic.0=x", "only a value of a table")],
)
def test_an_override_that_leads_nowhere_is_refused(override: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_recipe(SMALL, [override])


def test_what_cannot_be_appended_is_refused(tmp_path: Path) -> None:
    text = SMALL + "[[topic.step]]\nleader_epoch = 1\nproducers = { kind = 'idempotent', epoch = 4 }\n"
    text += "[[topic.step]]\nproducers = { kind = 'idempotent', epoch = 3 }"
    with pytest.raises(UsageError, match="SEG-APP-009"):
        generate(parse_recipe(text), tmp_path / "data")


# Command line


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, data = tmp_path / "recipe.toml", tmp_path / "data"
    recipe.write_text(SMALL, encoding="utf-8")
    assert run(["generate", str(recipe), "-o", str(data), "--seed", "3", "--set", "topic.0.name=x", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["seed"] == 3
    assert summary["partitions"][0]["directory"] == "x-0"
    assert summary["partitions"][0]["records"] == 5
    assert run(["generate", str(recipe), "-o", str(data)]) == 2
    assert "not an empty directory" in capsys.readouterr().err
    assert run(["generate", "--seed", "4", "-o", str(tmp_path / "made-up")]) == 0
    assert run(["generate", "--set", "seed=1", "-o", str(tmp_path / "more")]) == 2
    assert run(["generate", str(tmp_path / "none.toml"), "-o", str(tmp_path / "more")]) == 2
    recipe.write_bytes(b"\xff")
    assert run(["generate", str(recipe), "-o", str(tmp_path / "more")]) == 2
    assert not (tmp_path / "more").exists()


# The page


def test_commands_of_the_page_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text(fenced(text, "toml")[0], encoding="utf-8")
    shown = "".join(fenced(text, "text"))
    for command in "".join(fenced(text, "sh")).splitlines():
        run(command.split()[1:])
    assert capsys.readouterr().out == shown


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "kind",
    [
        recipes.Recipe,
        recipes.TopicRecipe,
        recipes.StepRecipe,
        recipes.ValueRecipe,
        recipes.HeaderRecipe,
        recipes.TimestampRecipe,
        recipes.ProducerRecipe,
    ],
)
def test_the_page_tells_of_every_key(kind: type) -> None:
    called = {"topics": "topic", "steps": "step", "config": "settings"}
    names = [called.get(field.name, field.name) for field in dataclasses.fields(kind)]
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in text] == []


@each_of("word", [*recipes.ORDERS, *recipes.VALUE_KINDS, *recipes.PRODUCER_KINDS, *recipes.ENDS])
def test_the_page_tells_of_every_word(word: str) -> None:
    assert f"`{word}`" in PAGE.read_text(encoding="utf-8")
