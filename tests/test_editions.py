"""Editions of the specification: what was published stays, the list of changes is computed, errata have one form."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest
from click.testing import CliRunner
from helpers.support import REPOSITORY
from helpers.walking import each_of

from seglog_format.cli import explain as module
from seglog_format.cli.explain import (
    changed_marks,
    editions,
    recorded,
    rules_of,
    standing,
    state_of,
    state_of_chapters,
    state_text,
)
from seglog_format.cli.main import seglog
from seglog_format.errors import UsageError
from seglog_format.requirements import requirements
from tools import editions as tool
from tools.docs import edition_pages, glossary_page, machine_readable, page_examples

PUBLISHED = [edition for edition in editions() if edition.digest]
ERRATA = (REPOSITORY / "spec" / "D-errata.md").read_text(encoding="utf-8")
FIELDS = ["Edition", "Rules", "Mark", "Was", "Is", "Found", "Concerns"]
RULE = {"level": "MUST", "binds": "reader", "since": "0.8.0", "brokers": "yes", "chapter": "10-a", "text": "One."}


def errata() -> dict[str, dict[str, str]]:
    """Return the fields of each erratum, by its number; the template in the introduction is fenced, and none."""
    text = re.sub(r"^```.*?^```", "", ERRATA, flags=re.MULTILINE | re.DOTALL)
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        number: dict(re.findall(r"^- \*\*(\w+):\*\* (.+)$", body, re.MULTILINE))
        for number, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_editions_follow_each_other_and_all_but_the_last_are_published() -> None:
    versions = [edition.version for edition in editions()]
    assert versions == sorted(set(versions))
    assert all(re.fullmatch(r"20\d\d\.(0[1-9]|1[0-2])", version) for version in versions)
    assert "2026.12" in versions
    assert [edition.number for edition in editions()] == [*range(1, len(versions) + 1)]
    for edition in editions():
        assert bool(edition.published) == bool(edition.digest)
    assert [*editions()[:-1]] == PUBLISHED[: len(versions) - 1]


@pytest.mark.parametrize("edition", PUBLISHED, ids=lambda edition: edition.version)
def test_a_published_edition_is_what_was_published(edition: module.Edition) -> None:
    assert len(recorded(edition)) > 300
    with pytest.raises(UsageError, match="not what was published"):
        recorded(replace(edition, digest="0" * 64))


def test_the_text_is_that_of_the_last_edition_once_that_is_published() -> None:
    last = editions()[-1]
    if last.digest:
        assert recorded(last) == state_of(requirements().values()), "begin a new edition in spec/editions.toml"


@pytest.mark.parametrize(
    "edition", [edition for edition in PUBLISHED if edition.commit], ids=lambda edition: edition.version
)
def test_an_edition_is_what_its_commit_held(edition: module.Edition) -> None:
    command = ["git", "-C", str(REPOSITORY), "cat-file", "-e", edition.commit]
    if shutil.which("git") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"needs commit {edition.commit}, which this clone does not have")
    assert state_text(state_of_chapters(tool.chapters(edition.commit))) == edition.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("edition", PUBLISHED, ids=lambda edition: edition.version)
def test_no_id_is_gone_or_has_become_another_rule(edition: module.Edition) -> None:
    assert recorded(edition).keys() <= requirements().keys()


def test_the_list_of_changes_names_each_change() -> None:
    old = {"SEG-XXX-001": RULE, "SEG-XXX-002": RULE, "SEG-XXX-003": RULE, "SEG-XXX-004": RULE | {"brokers": ""}}
    new = {
        "SEG-XXX-001": RULE | {"text": "Two | three.", "level": "MAY"},
        "SEG-XXX-002": RULE | {"chapter": "20-b", "since": ""},
        "SEG-XXX-004": RULE,
        "SEG-XXX-005": RULE | {"text": "Five."},
    }
    edition = module.Edition(4, "2027.02", "4.4")
    assert [line for line in edition_pages.change_list(old, new, edition) if "SEG-XXX-" in line or "rules" in line] == [
        "1 rules are new, 2 changed, 1 withdrawn, 0 only reworded; 1 are the same.",
        "| SEG-XXX-001 | One. | Two \\| three. |",
        "- SEG-XXX-005 (MUST): Five.",
        "- `SEG-XXX-003`: One.",
        "| SEG-XXX-001 | level | MUST | MAY |",
        "| SEG-XXX-002 | since | 0.8.0 | none |",
        "| SEG-XXX-002 | 10-a | 20-b |",
    ]


def test_the_list_of_changes_shows_meaning_first_and_folds_rewording_away() -> None:
    old = {"SEG-XXX-001": RULE, "SEG-XXX-002": RULE}
    new = {"SEG-XXX-001": RULE | {"text": "Two."}, "SEG-XXX-002": RULE | {"text": "A MUST."}, "SEG-XXX-003": RULE}
    lines = list(edition_pages.change_list(old, new, module.Edition(4, "2027.02", "4.4", meaning=("SEG-XXX-001",))))
    assert lines[0] == "1 rules are new, 1 changed, 0 withdrawn, 1 only reworded; 0 are the same."
    titles = [line for line in lines if line.startswith(("###", "| SEG", "- SEG", "<", "</"))]
    assert titles == [
        "### Changed in meaning",
        "| SEG-XXX-001 | One. | Two. |",
        "### New",
        "- SEG-XXX-003 (MUST): One.",
        "### Worded otherwise",
        "<details markdown><summary>1 rules</summary>",
        "| SEG-XXX-002 | One. | A MUST. |",
        "</details>",
    ]


def test_a_change_of_meaning_is_an_erratum_and_the_other_way_round() -> None:
    for before, after in pairwise(editions()):
        if after.meaning is not None:
            wrong = {
                rule
                for fields in errata().values()
                if (fields["Edition"], fields["Mark"]) == (before.version, "text")
                for rule in fields["Rules"].split(", ")
            }
            assert wrong == set(after.meaning)


def test_every_difference_of_two_editions_is_on_the_page() -> None:
    page = (REPOSITORY / edition_pages.PAGE).read_text(encoding="utf-8")
    for before, after in pairwise(editions()):
        old, new = rules_of(before), rules_of(after)
        assert f"## {after.title}, compared with edition {before.number}" in page
        for identifier, kept in new.items():
            if identifier not in old:
                assert f"- {identifier} ({kept['level']}): {kept['text']}" in page
            elif changed_marks(old[identifier], kept):
                assert f"| {identifier} |" in page


def test_a_rule_is_only_reworded_unless_its_edition_says_more() -> None:
    last = editions()[-1]
    assert "wording" in standing("SEG-IDX-004")["changed"]
    assert not module.is_only_reworded(last, "SEG-MSG-016")
    assert "text" in standing("SEG-MSG-016")["changed"]
    assert not module.is_only_reworded(replace(last, meaning=None), "SEG-IDX-004")


def test_a_rule_tells_how_it_stands_to_the_edition_before(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, before, last = editions()
    state = dict(rules_of(before))
    gone = next(iter(state))
    del state[gone]
    changed = next(iter(state))
    state[changed] = state[changed] | {"level": "MAY", "text": "Another."}
    monkeypatch.setattr(module, "recorded", lambda edition: state if edition == before else recorded(edition))
    assert standing(gone) == {"edition": last.name}
    found = standing(changed)
    assert (found["edition"], found["before"]) == (last.name, before.name)
    assert {"level", "wording"} <= set(found["changed"])


def test_explain_names_editions_by_their_numbers() -> None:
    *_, before, last = editions()
    for identifier in ("SEG-BAT-001", next(iter(requirements()))):
        output = CliRunner().invoke(seglog, ["explain", identifier]).output
        (line,) = [line for line in output.splitlines() if line.startswith("  edition ")]
        assert line.startswith(f"  edition   {last.number} ({last.published or 'draft'}), "), line
        assert line.endswith((f" since {before.number} ({before.published})", ", new in it")), line
        found = json.loads(CliRunner().invoke(seglog, ["explain", identifier, "--json"]).output)
        assert found["edition"] == f"{last.number} ({last.published or 'draft'})"
        assert found.get("before", before.name) == f"{before.number} ({before.published})"


def test_the_specification_names_its_licence_and_how_to_cite_the_present_edition() -> None:
    text = (REPOSITORY / "spec" / "00-terms.md").read_text(encoding="utf-8")
    _, _, section = text.partition("\n## Licence and citation\n")
    assert "Apache License, Version 2.0" in section
    assert f"{editions()[-1].title}." in section


def test_the_rules_of_the_present_edition_are_a_file_for_programs() -> None:
    made = json.loads(machine_readable.pages()[machine_readable.RULES])
    assert made["edition"] == {"number": 3, "version": "2027.01", "published": "", "kafka": "0.8.0 to 4.4.0"}
    assert [rule["id"] for rule in made["rules"]] == [*requirements()]
    assert made["rules"][1] == {
        "id": "SEG-PDR-017",
        "level": "SHOULD",
        "binds": ["writer", "validator"],
        "since": {"version": "0.8.0", "basis": "source"},
        "brokers": {"kept": "yes", "version": "4.3.0", "basis": "bytes"},
        "check": "auto",
        "chapter": "10-partition-directory",
        "text": requirements()["SEG-PDR-017"].text,
    }


def test_the_first_sentence_of_a_rule_does_not_end_inside_of_a_quoted_list() -> None:
    title = requirements()["SEG-PDR-002"].title
    assert title == requirements()["SEG-PDR-002"].text
    assert title.endswith("`a-z A-Z 0-9 . _ -` and be neither `.` nor `..`.")


def test_an_example_of_a_may_is_not_an_illegal_encoding() -> None:
    chapters = {rule.chapter for rule in requirements().values()}
    broken = [line for chapter in chapters for line in page_examples.broken_examples(chapter)]
    unusual = [line for chapter in chapters for line in page_examples.unusual_examples(chapter)]
    named = {
        key: re.findall(r"<summary markdown>(SEG-[A-Z]{3}-\d{3})", "".join(lines))
        for key, lines in (("broken", broken), ("unusual", unusual))
    }
    assert {requirements()[rule].level for rule in named["broken"]} == {"MUST", "SHOULD"}
    assert {requirements()[rule].level for rule in named["unusual"]} == {"MAY"}
    assert "SEG-LOG-005" in named["unusual"]


def test_errata_have_one_form() -> None:
    found = errata()
    assert list(found) == [f"ERR-{number + 1:03}" for number in range(len(found))]
    assert found
    for number, fields in found.items():
        assert list(fields) == FIELDS, number
        assert all(value.endswith(".") for key, value in fields.items() if key in FIELDS[3:]), number
    template = re.search(r"^```text\n(.*?)^```", ERRATA, re.MULTILINE | re.DOTALL)
    assert template is not None
    assert re.findall(r"\*\*(\w+):\*\*", template[1]) == FIELDS


@each_of(("number", "fields"), errata().items())
def test_an_erratum_is_about_a_published_rule_that_was_changed(number: str, fields: dict[str, str]) -> None:
    (edition,) = (edition for edition in PUBLISHED if edition.version == fields["Edition"])
    after = next(later for earlier, later in pairwise(editions()) if earlier == edition)
    for identifier in fields["Rules"].split(", "):
        old, new = recorded(edition)[identifier], rules_of(after)[identifier]
        assert fields["Mark"] in changed_marks(old, new), (number, identifier)
        if fields["Mark"] in {"since", "level"}:
            assert new[fields["Mark"]] in fields["Is"], (number, identifier)


def test_every_wrong_level_and_release_is_an_erratum() -> None:
    named = {
        (rule, fields["Edition"], fields["Mark"])
        for fields in errata().values()
        for rule in fields["Rules"].split(", ")
    }
    for before, after in pairwise(editions()):
        old, new = rules_of(before), rules_of(after)
        for identifier in old.keys() & new.keys():
            for mark in {"since", "level"} & set(changed_marks(old[identifier], new[identifier])):
                assert (identifier, before.version, mark) in named


def test_the_glossary_is_sorted_and_defines_what_a_reader_looks_up() -> None:
    page = (REPOSITORY / glossary_page.PAGE).read_text(encoding="utf-8")
    listed = re.findall(r"^\| (?:<a id=\"[^\"]+\"></a>)+([^|]+) \|", page, re.MULTILINE)
    assert listed == sorted(glossary_page.terms(), key=str.casefold)
    short = {name for term in listed for name in glossary_page.names_of(term)}
    assert short >= {
        "LSO",
        "LEO",
        "HW",
        "ISR",
        "KRaft",
        "high watermark",
        "delete horizon",
        "leader epoch",
        "tombstone",
    }
    anchors = re.findall(r'<a id="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert "SEG-LKP-012" in next(line for line in page.splitlines() if 'id="lso"' in line)
