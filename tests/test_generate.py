"""Generated directories hold what their recipe says, wherever and however often they are made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import FIXTURES, REPOSITORY

from seglog_format.checks.verify import verify
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.generation import recipe as recipes
from seglog_format.generation.generate import generate
from seglog_format.generation.plan import PartitionPlan, plan_partition
from seglog_format.generation.random_recipes import random_recipe
from seglog_format.generation.recipe import Recipe, parse_recipe
from seglog_format.generation.seeded_random import SeededRandom
from seglog_format.log.partition import open_partition
from seglog_format.model import INT64_MAX
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from seglog_format.generation.generate import GeneratedLog, GeneratedPartition
    from seglog_format.record_model import Message, Record

RECIPES = FIXTURES / "recipes"
PAGE = REPOSITORY / "docs" / "how-to" / "generate.md"

NOTES = {
    "codecs": set(),
    "everything": set(),
    "faults": set(),
    "follower": {"SEG-BAT-019", "SEG-PDR-014"},
    "killed": {"SEG-LOG-005", "SEG-IDX-007", "SEG-TIX-007"},
}
"""What `verify` remarks of each committed recipe, though nothing is wrong."""

EVERYTHING = "4f44137161e711970637321aad2654139ea6bc62dbf3297a7e45ce1b01d3f066"
"""SHA-256 over names and bytes of what ``everything.toml`` makes."""

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
        assert stored(partition) == [essence(record) for record in partition.plan.records]


def test_committed_records_are_those_of_the_plan(made: tuple[str, GeneratedLog]) -> None:
    for partition in made[1].partitions:
        with open_partition(partition.path) as opened:
            read = [record.offset for record in opened.records(isolation="read_committed")]
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
    plans = [
        plan_partition(recipe, topic, 0, recipe.seed) for recipe in map(committed, NOTES) for topic in recipe.topics
    ]
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


def test_uncompressed_bytes_are_always_the_same(tmp_path: Path) -> None:
    assert digest(generate(committed("everything"), tmp_path / "data").path) == EVERYTHING


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


# Faults


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"one \[\[topic\]\] or more"),
        ("topic = 3", r"topic is a list: write \[\[topic\]\]"),
        ("[[topic]]\n[[topic]]", "each with a different name"),
        ("[[topic]]\nname = 'a b'", r"topic\.0: 'a b' is no name of a topic"),
        ("[[topic]]\npartition = 3", r"topic\.0 has no 'partition'"),
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


@pytest.mark.parametrize("word", [*recipes.ORDERS, *recipes.VALUE_KINDS, *recipes.PRODUCER_KINDS, *recipes.ENDS])
def test_the_page_tells_of_every_word(word: str) -> None:
    assert f"`{word}`" in PAGE.read_text(encoding="utf-8")
