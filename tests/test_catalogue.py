"""The catalogue of the corpus names every directory of a broker, and a new one appears without another edit."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

from helpers.support import FIXTURES, bundled_cases

from seglog_format.requirements import requirements
from tools import witnesses
from tools.docs import catalogue_page, witness_part

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROW = re.compile(r"^\| `([\w.-]+)` \| ", re.MULTILINE)


def sections(page: str) -> dict[str, str]:
    """Return the part of the page about each release."""
    return dict(re.findall(r"^## Kafka ([\d.]+) [^\n]*\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL))


def test_every_bundled_case_has_a_row_below_its_release() -> None:
    found = sections(catalogue_page.pages("")[catalogue_page.PAGE])
    rows = [f"{release}/{name}" for release, part in found.items() for name in ROW.findall(part)]
    assert sorted(rows) == sorted(bundled_cases())


def test_every_rule_of_a_case_is_listed_with_it() -> None:
    page = catalogue_page.pages("")[catalogue_page.PAGE].partition("## Rules")[2]
    listed = dict(re.findall(r"^\| (SEG-\w{3}-\d{3}) \| (\d+) \|", page, re.MULTILINE))
    assert listed.keys() <= requirements().keys()
    exercised = [rule for case in catalogue_page.cases() for rule in case.facts["requirements"]]
    assert {rule: int(count) for rule, count in listed.items()} == {rule: exercised.count(rule) for rule in listed}
    assert set(exercised) == listed.keys()


def test_every_part_of_the_corpus_has_a_row_with_its_size() -> None:
    page = catalogue_page.pages("")[catalogue_page.PAGE]
    for part in (
        "clusters/kafka-VERSION/",
        "leaders/kafka-VERSION/",
        "coordinators/VERSION/",
        "tiered/CASE/",
        "damaged/",
    ):
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{part}` |")]
        assert not row.endswith("| 0.1 KB |")


def test_the_picture_has_a_field_for_each_release_and_kind() -> None:
    cases = catalogue_page.cases()
    fields = catalogue_page.pages("")[catalogue_page.PICTURE].count("<title>")
    assert fields == len({case.release for case in cases}) * len({case.kind for case in cases})


def test_a_new_case_appears_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixtures = tmp_path / "fixtures"
    new = fixtures / "kafka-9.9.9" / "novel-thing"
    new.mkdir(parents=True)
    shutil.copyfile(FIXTURES / "kafka-4.4.0" / "txn" / "case.toml", new / "case.toml")
    shutil.copyfile(FIXTURES / "README.md", fixtures / "README.md")
    files = {
        "kafka-9.9.9/novel-thing/case.toml": {"bytes": 1500},
        "kafka-9.9.9/novel-thing/files.tar.gz": {"bytes": 500},
    }
    (fixtures / "manifest.json").write_text(json.dumps({"files": files}), encoding="utf-8")
    monkeypatch.setattr(catalogue_page, "FIXTURES", fixtures)
    made = catalogue_page.pages("")
    assert "| `novel-thing` | interleaved transactions" in made[catalogue_page.PAGE]
    assert "| 2.0 KB | BAT 5," in made[catalogue_page.PAGE]
    assert "Kafka 9.9.9, novel: 1 case" in made[catalogue_page.PICTURE]


def test_the_page_on_the_code_has_every_fact_and_every_missing_witness() -> None:
    table = "\n".join(witness_part.lines())
    known = witnesses.read()
    assert [fact.fact for fact in known.facts if f"| {fact.fact} |" not in table] == []
    assert [each.fact for each in known.missing if each.fact not in table] == []
