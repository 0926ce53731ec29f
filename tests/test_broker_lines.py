"""The words of a broker's own log lead to what they mean, and to a command that exists."""

from __future__ import annotations

import errno
import json
import os
import shlex
from typing import TYPE_CHECKING, Any, Final

import click
from helpers.support import REPOSITORY
from helpers.walking import each_of

from seglog_format.cli.explain import broker_lines
from seglog_format.cli.main import DONE, USAGE, run, seglog
from tools.docs import broker_lines_page

if TYPE_CHECKING:
    import pytest

WITNESS: Final = json.loads((REPOSITORY / "fixtures/witnesses/broker_lines.json").read_text("utf-8"))
LINES: Final = broker_lines()


@each_of("word", [word for line in LINES for word in line["words"]])
def test_kafkas_classes_hold_each_word_and_explain_finds_it_in_a_line(
    capsys: pytest.CaptureFixture[str], word: str
) -> None:
    meant, errors = next((line["means"], line.get("errors", ())) for line in LINES if word in line["words"])
    by_system = [os.strerror(getattr(errno, name)) for name in errors]
    assert word in by_system or any(word in words for words in WITNESS["lines"].values())
    assert (
        run(["explain", "--json", f"[2026-11-29 10:00:00,123] WARN [Log dir=/data] {word} x (kafka.log.Log)"]) == DONE
    )
    found = [json.loads(line)["means"] for line in capsys.readouterr().out.splitlines()]
    assert meant in found


@each_of("line", LINES, ids=lambda line: line["words"][0])
def test_the_command_of_a_line_is_understood_and_changes_nothing(line: dict[str, Any]) -> None:
    _, name, *words = shlex.split(line["run"].replace("...", ""))
    context = click.Context(seglog)
    command = seglog.get_command(context, name)
    assert command is not None
    assert "--write" not in words
    command.make_context(name, words, parent=context)


@each_of("words", ["lso", "LSO", "last  stable offset"])
def test_explain_says_what_a_term_means(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--json", words]) == DONE
    (found,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (found["type"], found["term"]) == ("term", "last stable offset, LSO")
    assert "oldest open transaction" in found["means"]
    assert run(["explain", "meaning"]) == USAGE


def test_explain_says_what_a_line_means(capsys: pytest.CaptureFixture[str]) -> None:
    line = "Found invalid messages in log segment /data/orders-0/00000000000000000000.log at byte offset 4321: x"
    assert run(["explain", line]) == DONE
    out = capsys.readouterr().out
    assert out.startswith("Found invalid messages in log segment\n  Recovery after an unclean shutdown")
    assert out.endswith("  run: seglog recover PATH\n")
    assert run(["explain", *line.lower().split()]) == DONE
    assert capsys.readouterr().out == out
    assert run(["explain", "found invalid messages in"]) == DONE
    assert capsys.readouterr().out.startswith("Found invalid messages in log segment\n")


def test_an_unknown_line_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "Something that no broker says"]) == USAGE
    error = capsys.readouterr().err
    assert "no known line of a broker's log 'Something that no broker says'; seglog doctor PATH" in error


def test_an_unknown_line_is_answered_with_those_that_share_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "Found invalid offsets"]) == USAGE
    assert "is it 'Found invalid messages in log segment' or " in capsys.readouterr().err


def test_the_page_is_what_the_table_says() -> None:
    ((path, text),) = broker_lines_page.pages().items()
    assert (REPOSITORY / path).read_text("utf-8") == text, "make docs writes it anew"
