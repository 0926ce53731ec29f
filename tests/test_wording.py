"""Text and names that the glossary replaces are noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools import tidy

if TYPE_CHECKING:
    from pathlib import Path

GLOSSARY = """| term | meaning | not |
|---|---|---|
| random | drawn from a generator | by luck |
| position | of a byte | place |
| gap | offsets that are missing | |
"""


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def test_a_phrase_that_the_glossary_replaces_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, "docs/glossary.md", GLOSSARY)
    write(tmp_path, "spec/00-terms.md", "drawn by luck\n")
    write(tmp_path, "docs/page.md", "drawn at random\ndrawn by luck, or at some place\n")
    assert list(tidy.text_follows_glossary(tmp_path)) == ["docs/page.md:2: the glossary has another word for 'by luck'"]


@pytest.mark.parametrize("directory", ["seglog_format/state", "tests/helpers", "proofs", "conformance/authoring"])
def test_a_name_with_a_word_that_the_glossary_replaces_is_noticed(directory: str, tmp_path: Path) -> None:
    write(tmp_path, "docs/glossary.md", GLOSSARY)
    source = (
        "class FirstPlace:\n    def misplaced(self, place_of: int) -> None:\n        self.PLACE = replace = place_of\n"
    )
    write(tmp_path, f"{directory}/places.py", source)
    where = f"{directory}/places.py"
    assert sorted(tidy.identifiers_follow_glossary(tmp_path)) == [
        f"{where}:1: FirstPlace: the glossary has another word for 'place'",
        f"{where}:2: place_of: the glossary has another word for 'place'",
        f"{where}:3: PLACE: the glossary has another word for 'place'",
    ]


def test_a_module_with_such_a_name_is_noticed_and_a_sentence_is_not(tmp_path: Path) -> None:
    write(tmp_path, "docs/glossary.md", GLOSSARY)
    write(tmp_path, "tests/test_a_place.py", "def test_every_place_is_found() -> None:\n    in_place = 1\n")
    write(tmp_path, "tools/place_of.py", "")
    assert list(tidy.identifiers_follow_glossary(tmp_path)) == [
        "tools/place_of.py:1: place_of: the glossary has another word for 'place'"
    ]
