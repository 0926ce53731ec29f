"""What the documents show is what happens: commands, Python, pictures and links."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of

from seglog_format.cli.main import seglog
from tools import demo_data
from tools.docs import chapter_tables, pictures, transcripts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = sorted(["README.md", *(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("docs/**/*.md"))])
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
IGNORED_BY_GIT = {"demo", "try"}
"""What the pages may write into, beside temporary directories."""
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MADE_BY_THE_SITE = ("spec/", "contributing.md")


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("documents")
    demo_data.unpack(parent / "demo")
    return parent


@pytest.mark.parametrize("page", PAGES)
def test_transcripts_are_what_happens(page: str, directory: Path) -> None:
    shown = (REPOSITORY / page).read_text(encoding="utf-8")
    assert transcripts.refreshed(shown, directory) == shown, "make docs writes transcripts anew"
    assert {path.name for path in directory.iterdir()} <= IGNORED_BY_GIT


@each_of("page", [*PAGES, "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = REPOSITORY / page
    targets = LINK.findall(FENCED.sub("", path.read_text(encoding="utf-8")))
    for target in targets:
        made = any(part in target for part in MADE_BY_THE_SITE) and page.startswith("docs/")
        assert made or (path.parent / target).exists(), target


def test_picture_shows_the_fixture() -> None:
    committed = (REPOSITORY / "docs" / "assets" / "partition.svg").read_text(encoding="utf-8")
    assert committed == pictures.partition_picture(), "make docs draws it anew"


@pytest.mark.parametrize("path", chapter_tables.CHAPTERS)
def test_tables_of_a_chapter_are_those_of_the_declarations(path: str) -> None:
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    assert chapter_tables.with_tables(text) == text, "make docs writes them anew"
    emptied = chapter_tables.BLOCK.sub(lambda match: match["mark"], text)
    assert emptied.count("| `") == 0
    assert chapter_tables.with_tables(emptied) == text


def test_a_command_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = "```console\n$ echo one; echo two\none\nthree\n```"
    assert transcripts.refreshed(page, tmp_path) == "```console\n$ echo one; echo two\none\ntwo\n```"


def test_an_elision_stands_for_any_number_of_lines(tmp_path: Path) -> None:
    page = "```console\n$ seq 9\n1\n2\n...\n```"
    assert transcripts.refreshed(page, tmp_path) == page


def test_a_long_line_is_cut_and_still_compared(tmp_path: Path) -> None:
    page = transcripts.refreshed("```console\n$ echo {1..200}\n```", tmp_path)
    assert page.splitlines()[2].endswith("...")
    assert transcripts.refreshed(page, tmp_path) == page
    assert transcripts.refreshed(page.replace("1 2 3", "1 2 4"), tmp_path) == page


def test_python_that_answers_something_else_is_noticed(tmp_path: Path) -> None:
    page = "```pycon\n>>> one = 1\n>>> one + 1\n3\n>>> int('x')\n```"
    assert transcripts.refreshed(page, tmp_path).splitlines()[2:6] == [
        ">>> one + 1",
        "2",
        ">>> int('x')",
        "Traceback (most recent call last):",
    ]


FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NOT_PARSED = ("seglog help", "seglog fsck", "seglog dump --files")
"""Commands that pages show as what another program takes, or that click does not resolve."""
OF_THE_SHELL = re.compile(r"\$\(|--(?:html|remote)$")
"""What only a shell reads, and options that a sentence names without their value."""


def shown_commands(page: str) -> Iterator[str]:
    """Yield each call of seglog in the blocks and the sentences of a page, up to a pipe, a redirection or a comment."""
    text = (REPOSITORY / page).read_text("utf-8")
    blocks = [body.replace("\\\n", " ") for kind, body in FENCE.findall(text) if kind in {"sh", "text", "console"}]
    lines = [line.strip().removeprefix("$ ") for body in blocks for line in body.splitlines()]
    lines += [" ".join(line.split()) for line in re.findall(r"`(seglog [^`]+)`", FENCE.sub("", text))]
    parts = (re.split(r" #|>|<", part)[0].strip() for line in lines for part in re.split(r"\\?[|;]|&&", line))
    yield from (part for part in parts if part.startswith("seglog ") and not part.startswith(NOT_PARSED))


def misunderstood(shown: str) -> str:
    """Return why click refuses a command, though all its paths were there; empty if it does not."""
    command: click.Command = seglog
    words = ["absent" if word == "-" else word for word in shlex.split(shown)[1:]]  # no standard input is read
    context = click.Context(seglog)
    try:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            _, found, words = command.resolve_command(context, words)
            assert found is not None
            command = found
        if words and not isinstance(command, click.Group):
            command.make_context(command.name, words, parent=context)
    except (click.MissingParameter, click.exceptions.Exit):
        return ""
    except click.UsageError as error:
        return "" if "does not exist" in error.message else f"{shown}: {error.message}"
    return ""


@each_of("page", [page for page in PAGES if page != "docs/reference/command-line.md"])  # the help pages, tested as such
def test_a_shown_command_is_understood(page: str) -> None:
    shown = dict.fromkeys(each for each in shown_commands(page) if not OF_THE_SHELL.search(each))
    assert list(filter(None, map(misunderstood, shown))) == []
