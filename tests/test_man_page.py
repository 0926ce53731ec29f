"""The manual page: every command and option stands in it, and the program that shows it has no complaint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import click
import pytest
from helpers.support import REPOSITORY

from seglog_format.cli.main import seglog
from tools.docs import man_page


def shown() -> str:
    """Return the page as a reader sees it, without emphasis."""
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("showing a manual page needs man and groff, which this machine does not have")
    environment = os.environ | {"MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MANPAGER": "cat", "GROFF_NO_SGR": "1"}
    command = ["man", "--warnings=w", "--no-hyphenation", "--no-justification", "-l", str(REPOSITORY / man_page.PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
    return re.sub(r".\x08", "", done.stdout)


def test_what_is_committed_is_what_the_command_line_says() -> None:
    committed = (REPOSITORY / man_page.PAGE).read_text(encoding="utf-8")
    assert committed == man_page.page(), "make docs writes it anew"


def test_it_does_not_depend_on_who_asked_a_command_for_help_before() -> None:
    command = click.Command("bare")
    assert "-h, --help" not in command.get_help(click.Context(command))
    known = click.Context(command, help_option_names=["--help", "-h"])
    assert list(man_page._options(command, known)) == [".TP", ".B \\-h, \\-\\-help", "Show this message and exit."]


def commands(group: click.Group, context: click.Context) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = man_page.context_of(command, name, context)
        found.append((inner.command_path, command))
        found += commands(command, inner) if isinstance(command, click.Group) else []
    return found


def test_man_shows_every_command_and_option() -> None:
    page = shown()
    sections = dict(re.findall(r"^   (seglog [a-z -]+)\n(.*?)(?=^   seglog |^\S)", page, re.MULTILINE | re.DOTALL))
    for path, command in commands(seglog, man_page.context_of(seglog, "seglog", None)):
        options = [param.opts[0] for param in command.params if isinstance(param, click.Option) and not param.hidden]
        assert [name for name in options if name not in sections[path]] == []
    assert "$ " not in page
    assert "      seglog ls /var/lib/kafka/data\n" in page


def test_a_line_that_starts_like_a_macro_is_text() -> None:
    assert man_page._line(".log files") == "\\&.log files"
    assert man_page._line("'quoted'") == "\\&'quoted'"
