"""Words and options of other tools lead to commands that exist, and to none that deletes."""

from __future__ import annotations

import json
import shlex
from typing import Final

import click
import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of

from seglog_format.cli.main import COMMANDS, DUMP_LOG_OPTIONS, OPTIONS, USAGE, WORDS, run, seglog

WITNESS: Final = json.loads((REPOSITORY / "fixtures/witnesses/dump_log_options.json").read_text("utf-8"))
PAGE: Final = REPOSITORY / "docs/how-to/come-from-kafka-dump-log.md"
DELETING: Final = {"retain", "recover", "resurrect"}
"""Commands that delete or cut something in the directory that they are given."""


@each_of(("word", "line"), [(word, line) for words, line in WORDS.items() for word in words.split()])
def test_a_word_of_another_tool_leads_to_a_command_that_is_understood_and_deletes_nothing(
    capsys: pytest.CaptureFixture[str], word: str, line: str
) -> None:
    assert word not in COMMANDS
    name, *arguments = shlex.split(line)
    assert name not in DELETING
    assert "--write" not in arguments
    assert run([word, "x"]) == USAGE
    assert capsys.readouterr().err.endswith(f"Did you mean 'seglog {line}'?\n")
    if name == "help":
        return
    context = click.Context(seglog)
    command = seglog.get_command(context, name)
    assert command is not None
    numbers = {"OFFSET": "7"}
    command.make_context(name, [numbers.get(each, each) for each in arguments], parent=context)


def test_every_option_of_kafkas_tool_has_its_equivalent_in_the_table_and_on_the_page() -> None:
    options = {option for release in WITNESS["options"].values() for option in release}
    assert set(DUMP_LOG_OPTIONS) == options
    rows = [line.split(" | ")[0] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `--")]
    assert {word.strip("`,") for row in rows for word in row.split() if word.startswith("`--")} == options


@each_of("option", sorted(DUMP_LOG_OPTIONS.keys() - {"--help"}))
def test_an_option_of_kafkas_tool_is_answered_with_its_equivalent(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert run(["dump", option, "x"]) == USAGE
    assert DUMP_LOG_OPTIONS[option] in capsys.readouterr().err


@each_of(("name", "line"), [(name, line) for name in COMMANDS for line in OPTIONS])
def test_an_option_that_a_command_lacks_is_answered_with_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str], name: str, line: str
) -> None:
    command = seglog.get_command(click.Context(seglog), name)
    assert command is not None
    options = {option for parameter in command.params for option in parameter.opts}
    first = next((option for option in line.split() if option in options), None)
    for word in {*line.split()} - options - DUMP_LOG_OPTIONS.keys():
        assert run([name, word, "x"]) == USAGE
        said = capsys.readouterr().err
        if first is not None:
            assert f"Did you mean '{first}'?" in said
        else:
            option, _, others = said.rpartition("'. ")[2].rstrip(".\n").partition(" is an option of ")
            for other in others.split(", "):
                described = seglog.get_command(click.Context(seglog), other)
                assert described is not None
                assert option in {each for parameter in described.params for each in parameter.opts}


@pytest.mark.parametrize("words", [["dump"], ["tier", "ls"], []], ids=" ".join)
def test_help_prints_the_help_page_of_a_command(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run(["help", *words]) == run([*words, "--help"]) == 0
    first, second = capsys.readouterr().out.split("Usage: ")[1:]
    assert first == second
