"""``seglog conform new``, and the commands that other projects run: the hooks, the action, the container."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner
from helpers.support import REPOSITORY
from seglog_conformance.commands.conform import LANGUAGES
from seglog_conformance.parts import part
from seglog_conformance.registry import read_adapter

from seglog_format.cli.main import seglog
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

OTHER_FILES = (".pre-commit-hooks.yaml", "conformance/action/action.yml", "Containerfile")


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_adapter_to_begin_with_can_be_read_as_one(language: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(seglog, ["conform", "new", language, str(tmp_path / "mine")])
    assert done.exit_code == 0, done.output
    assert read_adapter(tmp_path / "mine").run
    assert "seglog conform smoke --adapter" in done.output


def test_there_is_a_template_for_each_language() -> None:
    assert sorted(path.name for path in part("templates").iterdir()) == list(LANGUAGES)


def test_an_encoder_alone_is_judged_by_the_cases_of_encoders(tmp_path: Path) -> None:
    """At e6e47325, `smoke` and `run` called it broken: every case of the smoke test was one of decoders."""
    adapter = tmp_path / "mine"
    assert CliRunner().invoke(seglog, ["conform", "new", "python", str(adapter)]).exit_code == 0
    text = (adapter / "adapter.toml").read_text(encoding="utf-8")
    text = re.sub(r"^build = \[$.*?^\]$", "build = []", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^run = .*$", 'run = ["{python}", "{adapter}/encoder.py"]', text, flags=re.MULTILINE)
    (adapter / "adapter.toml").write_text(text, encoding="utf-8")
    options = ["--adapter", str(adapter), "--build", str(tmp_path / "build")]
    smoked = CliRunner().invoke(seglog, ["conform", "smoke", *options], standalone_mode=False)
    assert (smoked.return_value, "the adapter works" in smoked.output) == (0, True), smoked.output
    run = ["conform", "run", *options, "--strict", "--family", "encoding"]
    done = CliRunner().invoke(seglog, run, standalone_mode=False)
    assert done.return_value == 0, done.output
    assert "33 PASS" in done.output


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text("mine")
    done = CliRunner().invoke(seglog, ["conform", "new", "python", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert (tmp_path / "adapter.toml").read_text() == "mine"


@pytest.mark.parametrize("name", OTHER_FILES)
def test_what_others_run_are_commands_and_options_that_exist(name: str) -> None:
    text = (REPOSITORY / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"(?:entry: |bin/)seglog\"? ([^\n]*)", text)
    assert found or name == "Containerfile"
    for line in found:
        assert_is_known(line.split())


def assert_is_known(words: list[str]) -> None:
    command: click.Command = seglog
    context = click.Context(seglog)
    while isinstance(command, click.Group):
        inner = command.get_command(context, words.pop(0))
        assert inner is not None
        command = inner
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


def test_what_the_container_copies_is_there() -> None:
    text = (REPOSITORY / "Containerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (?!--from=)(.*) \S+$", text, re.MULTILINE)
    assert copied
    for name in " ".join(copied).split():
        assert (REPOSITORY / name).exists(), name
