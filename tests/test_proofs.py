"""The harness of the long proofs: what a report holds, and what the exit status says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import Namespace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from helpers.walking import each_of

from proofs import harness
from proofs.report_facts import proof_command

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from pathlib import Path


def proof_of(*failures: str) -> SimpleNamespace:
    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--count", type=int, default=3)

    def prove(options: Namespace) -> harness.Outcome:
        return harness.Outcome({"done": options.count}, failures)

    return SimpleNamespace(add_arguments=add_arguments, prove=prove)


@pytest.mark.parametrize(("failures", "status"), [((), 0), (("one was lost",), 1)])
def test_report_says_what_was_run_and_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: tuple[str, ...], status: int
) -> None:
    monkeypatch.setattr(harness, "load", lambda _name: proof_of(*failures))
    monkeypatch.setattr(harness, "description", lambda _name: "Count.")
    path = tmp_path / "report.json"
    assert harness.main(["counting", "--count", "5", "--seed", "7", "--report", str(path)]) == status
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["made"]["command"] == "python -m proofs counting --count 5 --seed 7"
    assert (report["done"], report["failures"], report["failed"]) == (5, len(failures), list(failures))
    assert report["made"]["versions"]["python"]


def test_an_unknown_proof_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(SystemExit, match="no proof is called 'nothing'"):
        harness.main(["nothing"])


@each_of("name", harness.names())
def test_every_proof_has_a_description(name: str) -> None:
    assert harness.description(name).endswith(".")
    assert "\n" not in harness.description(name)


@each_of("name", [name for name in harness.names() if name not in harness.PROGRAMS])
def test_every_proof_declares_its_options(name: str) -> None:
    assert callable(harness.load(name).add_arguments)


@each_of("name", sorted(harness.PROGRAMS.keys() - {"conform"}))
def test_a_program_writes_all_its_options_into_the_report(name: str) -> None:
    source = (harness.ROOT / harness.PROGRAMS[name].replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    assert f'proof_command("{name}", ' in source


def test_a_command_has_its_defaults_but_not_the_place_of_the_report() -> None:
    options = Namespace(report="x", role="all", seed=1, kind=None, unclean=True, verbose=False, only_these=["a b", "c"])
    assert proof_command("x-y", options) == "python -m proofs x-y --only-these 'a b' c --seed 1 --unclean"


def test_an_option_that_is_empty_by_default_may_be_empty_in_a_recorded_command() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in (harness.ROOT / "proofs").rglob("*.py")}
    assert [path for path, text in sources.items() if re.search(r'nargs="\+".*default=\[\]', text)] == []


def test_a_program_gets_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        harness.main(["trace-kill", "--help"])
    assert ended.value.code == 0
    assert "usage: python -m proofs trace-kill" in capsys.readouterr().out


def test_a_program_shares_its_work_with_other_processes() -> None:
    command = [sys.executable, "-m", "proofs", "columnar", "--logs", "2", "--workers", "2"]
    ran = subprocess.run(command, cwd=harness.ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
