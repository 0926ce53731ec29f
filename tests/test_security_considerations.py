"""Chapter 80: every sentence names a rule and a family of cases that is about it, and both are there."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of
from seglog_conformance.cases import load_cases

from seglog_format.requirements import requirements

CHAPTER = REPOSITORY / "spec" / "80-security-considerations.md"
SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
CITED = re.compile(r" \(((?:SEG-[A-Z]{3}-\d{3}|`[\w/-]+`)(?:, (?:SEG-[A-Z]{3}-\d{3}|`[\w/-]+`))*)\)")
TOPICS = {"Bombs", "Counts", "Lengths", "Tails", "Names", "Symbolic links", "Terminal escapes"}


def sentences(text: str) -> list[str]:
    """Return the sentences of a chapter, headings left out."""
    paragraphs = [" ".join(block.split()) for block in text.split("\n\n") if not block.startswith("#")]
    return [sentence for paragraph in paragraphs for sentence in SENTENCE.split(paragraph) if sentence]


def cited(sentence: str) -> tuple[list[str], list[str]]:
    """Rules and families that a sentence names; the last of its parentheses ends it."""
    found = list(CITED.finditer(sentence))
    names = [name for match in found for name in match[1].split(", ")]
    assert found, sentence
    assert sentence[found[-1].end() :] == ".", sentence
    rules, families = [one for one in names if one[0] != "`"], [one.strip("`") for one in names if one[0] == "`"]
    assert rules, sentence
    assert families, sentence
    return rules, families


@cache
def about() -> dict[str, set[str]]:
    """Return the rules that the cases of each family are about."""
    found: dict[str, set[str]] = {}
    for case in load_cases():
        found.setdefault(case.family_name, set()).update(case.requirements)
    return found


@cache
def damages() -> frozenset[str]:
    """Return the kinds of random damages, of which there is a report."""
    report = json.loads((REPOSITORY / "reports" / "damages.json").read_text(encoding="utf-8"))
    return frozenset(f"damages/{kind}" for kind, count in report["damages"].items() if count)


TEXT = CHAPTER.read_text(encoding="utf-8")


def test_the_chapter_covers_what_an_attacker_can_choose() -> None:
    assert set(re.findall(r"^## (.+)$", TEXT, re.MULTILINE)) == TOPICS
    assert len(sentences(TEXT)) > 30


@each_of("sentence", sentences(TEXT))
def test_every_sentence_names_a_rule_and_a_family_that_is_about_it(sentence: str) -> None:
    rules, families = cited(sentence)
    assert set(rules) <= requirements().keys()
    for family in families:
        assert family in damages() or about()[family] & set(rules), (family, sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Nothing is named here.",
        "Only a rule (SEG-COD-016).",
        "Only a family (`bombs`).",
        "It goes on (SEG-COD-016, `bombs`) afterwards.",
    ],
)
def test_a_sentence_without_both_is_noticed(sentence: str) -> None:
    with pytest.raises(AssertionError):
        cited(sentence)


def test_a_paragraph_is_cut_into_its_sentences() -> None:
    assert sentences("# 80 Title\n\nOne (SEG-COD-016,\n`bombs`). Two.\n\n## Head\n\nThree.") == [
        "One (SEG-COD-016, `bombs`).",
        "Two.",
        "Three.",
    ]
