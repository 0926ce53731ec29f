"""The files for people who come to the repository: how to cite it, and what an issue should contain."""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import TYPE_CHECKING

import click
import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of

from seglog_format.cli.main import seglog

if TYPE_CHECKING:
    from pathlib import Path

PAGES = (REPOSITORY / "SECURITY.md", *sorted((REPOSITORY / ".github").rglob("*.md")))
COMMAND = re.compile(r"^seglog .*$|`(seglog [^`]*)`", re.MULTILINE)


def cited(name: str) -> str:
    text = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    found = re.search(rf'^ *{name}: "?([^"\n]*)"?$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_citation_names_the_version_the_licence_and_the_newest_recorded_edition() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (cited("version"), cited("license")) == (project["version"], project["license"])
    editions = tomllib.loads((REPOSITORY / "spec/editions.toml").read_text(encoding="utf-8"))["edition"]
    newest = [each for each in editions if "published" in each][-1]
    assert (cited("edition"), cited("date-released")) == (str(newest["number"]), newest["published"])


def commands(page: Path) -> list[str]:
    return [found[1] or found[0] for found in COMMAND.finditer(page.read_text(encoding="utf-8"))]


@each_of("page", PAGES, ids=lambda page: page.name)
def test_a_page_for_reporters_names_commands_and_options_that_exist(page: Path) -> None:
    assert commands(page)
    for line in commands(page):
        command: click.Command = seglog
        for word in shlex.split(line)[1:]:
            if word.startswith("--"):
                assert any(word in option.opts for option in command.params) or word == "--version", line
            elif isinstance(command, click.Group):
                found = command.get_command(click.Context(command), word)
                assert found is not None, line
                command = found


@pytest.mark.parametrize("title", ["wrong-verdict", "directory-read-wrongly", "wrong-rule"])
def test_each_kind_of_report_has_a_template_with_a_name_and_a_purpose(title: str) -> None:
    text = (REPOSITORY / f".github/ISSUE_TEMPLATE/{title}.md").read_text(encoding="utf-8")
    assert re.match(r"---\nname: \S.*\nabout: \S.*\ntitle: .*\n---\n", text)
