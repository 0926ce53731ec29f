"""Every fact about Kafka has one owner and a witness that this project did not make; an entry without is noticed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from helpers.support import REPOSITORY

from tools import witnesses

if TYPE_CHECKING:
    from pathlib import Path

TABLE: Final = """\
most_missing = 1

[[fact]]
fact = "The hash of a name."
owner = ["seglog_format.cluster.new_image:name_hash"]
witness = ["fixtures/witnesses/hash.json"]
test = "tests/test_x.py::test_hash"

[[missing]]
fact = "The order of files."
owner = ["seglog_format.cleaning.deletion:REMOVAL_ORDER"]
reason = "No class was asked."
"""
HEADER: Final = {"asked": "a class", "releases": ["4.4.0"], "date": "2026-11-28", "script": "fixtures/make/hash.py"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("fixtures/witnesses", "fixtures/make", "tests"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "fixtures" / "witnesses.toml").write_text(TABLE, encoding="utf-8")
    (tmp_path / "fixtures" / "witnesses" / "hash.json").write_text(json.dumps(HEADER), encoding="utf-8")
    (tmp_path / "fixtures" / "make" / "hash.py").touch()
    (tmp_path / "tests" / "test_x.py").write_text("def test_hash() -> None: ...", encoding="utf-8")
    return tmp_path


def test_every_fact_has_an_owner_a_witness_and_a_test() -> None:
    assert list(witnesses.complaints()) == []


def test_the_list_without_witnesses_has_not_grown() -> None:
    """It was 10 when it began."""
    assert witnesses.read().most_missing <= 10


def test_a_whole_table_is_left_alone(tree: Path) -> None:
    assert list(witnesses.complaints(tree)) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("new_image:name_hash", "new_image:other_hash", "no owner seglog_format.cluster.new_image:other_hash"),
        ("cluster.new_image:name", "cluster.gone:name", "no owner seglog_format.cluster.gone:name_hash"),
        ("witnesses/hash.json", "witnesses/gone.json", "no witness fixtures/witnesses/gone.json"),
        ("tests/test_x.py", "tests/test_y.py", "no test tests/test_y.py"),
        ("::test_hash", "::test_gone", "no test tests/test_x.py::test_gone"),
        ('["fixtures/witnesses/hash.json"]', "[]", "no witness"),
        ("most_missing = 1", "most_missing = 0", "1 facts without a witness, and at most 0 are allowed"),
        ("most_missing = 1", "most_missing = 2", "lower most_missing to 1"),
        ("No class was asked.", "", "no witness and no reason"),
    ],
)
def test_what_is_wrong_with_an_entry_is_noticed(tree: Path, old: str, new: str, complaint: str) -> None:
    assert old in TABLE
    (tree / "fixtures" / "witnesses.toml").write_text(TABLE.replace(old, new), encoding="utf-8")
    assert any(complaint in each for each in witnesses.complaints(tree))


@pytest.mark.parametrize("gone", ["asked", "releases", "date", "script"])
def test_a_recorded_run_that_does_not_say_what_it_is_is_noticed(tree: Path, gone: str) -> None:
    (tree / "fixtures" / "witnesses" / "hash.json").write_text(json.dumps(HEADER | {gone: ""}), encoding="utf-8")
    assert any("hash.json does not say " + gone in each for each in witnesses.complaints(tree))


def test_a_script_that_is_gone_is_noticed(tree: Path) -> None:
    (tree / "fixtures" / "make" / "hash.py").unlink()
    [complaint] = witnesses.complaints(tree)
    assert "no script fixtures/make/hash.py" in complaint


def test_a_recorded_run_that_no_fact_names_is_noticed(tree: Path) -> None:
    (tree / "fixtures" / "witnesses" / "more.jsonl.gz").touch()
    assert list(witnesses.complaints(tree)) == [
        "fixtures/witnesses/more.jsonl.gz: no fact in fixtures/witnesses.toml names it"
    ]


def test_a_fact_has_the_header_of_its_recorded_run(tree: Path) -> None:
    [fact] = witnesses.read(tree).facts
    assert (fact.releases, fact.date, fact.script) == (("4.4.0",), "2026-11-28", "fixtures/make/hash.py")


def test_lint_checks_the_table() -> None:
    assert "tools.witnesses" in (REPOSITORY / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2]


def test_a_recorded_run_says_who_was_asked_when_and_by_which_script(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnesses, "REPOSITORY", tree)
    script = str(tree / "fixtures" / "make" / "hash.py")
    witnesses.record(script, "hash", "a class", ["4.4.0"], answers={"orders": 7})
    written = witnesses.header_of(tree / "fixtures" / "witnesses" / "hash.json")
    assert written == {**HEADER, "date": written["date"], "answers": {"orders": 7}}
    assert list(witnesses.complaints(tree)) == []
