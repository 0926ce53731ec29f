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
    from collections.abc import Iterator
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


GUIDES = ("how-to", "tutorial", "explanation")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NEEDS = {
    "fast": re.compile(r"seglog export\b|\.scan\(|--engine columnar"),
    "serve": re.compile(r"seglog serve\b"),
    "spark": re.compile(r"seglog spark\b|import pyspark|from pyspark|\.format\(.seglog.\)"),
    "crash": re.compile(r"seglog conform crash\b"),
    "conform": re.compile(r"seglog_format\.strategies"),
    "iceberg": re.compile(r"--format iceberg\b"),
    "decode": re.compile(r"--(?:value|record-key) (?:avro|protobuf|json)"),
    "tier": re.compile(r"s3://"),
    "compile": re.compile(r"seglog warm\b"),
}
"""What in a block of a page needs an extra."""
BRINGS = {"spark": {"fast"}, "decode": {"fast"}, "iceberg": {"fast"}}
"""The extras that an extra brings."""
INSTALLED = re.compile(
    r"\b(?:(?:pip|pipx|uv tool|uv pip) install|uv add|pipx run|uvx)((?: +(?!and\b|then\b)[^\s`|&;,]+)+)"
)
"""What a page or a message installs, or runs from an index."""
SUFFIXES = {".md", ".py", ".html", ".js", ".yml", ".yaml", ".toml", ".sh", ""}
READ = ("docs", "spec", "seglog_format", "conformance", "fixtures/seglog_testdata", ".github")


def texts() -> Iterator[tuple[str, str]]:
    """Yield the pages and the sources with messages: what a reader may type after."""
    paths = [path for name in READ for path in (REPOSITORY / name).rglob("*")]
    for path in [*REPOSITORY.glob("*"), *(REPOSITORY / "fixtures").glob("*.md"), *paths]:
        if path.is_file() and path.suffix in SUFFIXES and path.stat().st_size < 1 << 20:
            yield str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8", errors="replace")


def test_nothing_installs_a_distribution_of_somebody_else() -> None:
    named = [(name, found[1]) for name, text in texts() for found in INSTALLED.finditer(text)]
    assert len(named) > 40
    foreign = re.compile(r"(?<!seglog-format )(?<![\w./-])(?:\w+[-_])?seglog(?!-format\b|_format-|-testdata\b)")
    assert [each for each in named if foreign.search(each[1])] == []
    assert [each for each in named if re.search(r" [\w.-]+\[", each[1])] == [], "shells expand unquoted brackets"


def test_a_page_names_an_extra_before_it_needs_it() -> None:
    guides = (path for part in GUIDES for path in sorted((REPOSITORY / "docs" / part).glob("*.md")))
    late, found = [], set()
    for page in [REPOSITORY / "README.md", *guides]:
        text = page.read_text(encoding="utf-8")
        for extra, need in NEEDS.items():
            uses = [match for block in BLOCK.finditer(text) for match in need.finditer(text, *block.span())]
            if not uses:
                continue
            found.add(extra)
            before = text[: text.find("\n", uses[0].start())]
            names = "|".join([extra, *(more for more, brought in BRINGS.items() if extra in brought)])
            if not re.search(rf"\[[a-z,]*\b({names})\b[a-z,]*\]'|extras? [^.]*`({names})`", before):
                late.append((page.name, extra, uses[0][0]))
    assert (late, found) == ([], NEEDS.keys())
