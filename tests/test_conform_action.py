"""The action that runs the suite in another project's CI: its steps, as a runner would take them, for each language.

What a step takes from elsewhere (`uses`) is recorded and not fetched. The Python that the action installs is the one
that runs the tests, with its `seglog`: `pip` is only asked.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.filled_templates import written
from helpers.support import REPOSITORY, need
from seglog_conformance.registry import read_adapter

ACTION = yaml.safe_load((REPOSITORY / "conformance" / "action" / "action.yml").read_text(encoding="utf-8"))
SEGLOG = Path(sys.executable).with_name("seglog")
KINDS = {
    "python": {},
    "javascript": {"node-version": "20"},
    "go": {"go-version": "1.24"},
    "java": {"java-version": "17"},
    "rust": {"rust-version": "1.85"},
}
"""Languages, and what a workflow gives the action for a library in each."""
SETUPS = {
    "node-version": "actions/setup-node@v4",
    "go-version": "actions/setup-go@v5",
    "java-version": "actions/setup-java@v4",
}
ALWAYS = ["actions/setup-python@v5", "actions/cache@v4"]
UPLOAD = "actions/upload-artifact@v4"


@dataclass
class Run:
    """What the steps of the action did."""

    status: int = 0
    said: str = ""
    used: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """What was asked of `pip` and `rustup`."""


class Runner:
    """Takes the steps of the action in a workspace."""

    def __init__(self, workspace: Path, inputs: dict[str, str]) -> None:
        self.workspace = workspace
        self.temporary = workspace.parent / "temporary"
        self.asked = workspace.parent / "asked"
        self.programs = workspace.parent / "programs"
        declared = {name: one.get("default") for name, one in ACTION["inputs"].items()}
        assert inputs.keys() <= declared.keys()
        self.inputs = {**declared, **inputs}
        assert None not in self.inputs.values(), "a required input is missing"
        for directory in (self.temporary, self.programs):
            directory.mkdir()
        asks = f'echo "$(basename "$0") $*" >> {self.asked}'
        self._program("rustup", asks)
        pip, own = self.temporary / "seglog" / "bin" / "pip", self.temporary / "seglog" / "bin" / "seglog"
        made = f"mkdir -p {pip.parent}\ncp {self.programs}/rustup {pip}\nln -s {SEGLOG} {own}"
        self._program("python", f'[ "$*" = "-m venv {pip.parents[1]}" ] || exit 64\n{made}')

    def _program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\nset -e\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def filled(self, text: str) -> str:
        values = {
            **{f"inputs.{name}": value for name, value in self.inputs.items()},
            "runner.os": "Linux",
            "hashFiles(format('{0}/**', inputs.adapter))": "digest",
        }
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], text)

    def is_taken(self, step: dict[str, Any], status: int) -> bool:
        parts = step.get("if", "success()").split(" && ")
        holds = [name for name, value in self.inputs.items() if value]
        known = {"always()": True, "success()": True, **{f"inputs.{name} != ''": name in holds for name in self.inputs}}
        return all(known[part] for part in parts) and (status == 0 or "always()" in parts)

    def run(self) -> Run:
        found = Run()
        for step in ACTION["runs"]["steps"]:
            if not self.is_taken(step, found.status):
                continue
            if "uses" in step:
                found.used[step["uses"]] = {name: self.filled(str(one)) for name, one in step["with"].items()}
            else:
                assert step["shell"] == "bash"
                done = self._shell(step)
                found.status, found.said = done.returncode, found.said + done.stdout
        found.asked = self.asked.read_text(encoding="utf-8").splitlines()
        return found

    def _shell(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        environment = {name: self.filled(value) for name, value in step["env"].items()}
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [shutil.which("bash") or "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env={**os.environ, **environment, "PATH": path, "CI": "true", "RUNNER_TEMP": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Provide the clone of another project."""
    directory = tmp_path / "workspace"
    (directory / "conformance").mkdir(parents=True)
    return directory


def acted(workspace: Path, **inputs: str) -> Run:
    arguments = f"--family encoding --build {workspace.parent / 'build'}"
    given = {"adapter": "conformance/adapter", "known": "conformance", "package": "./suite", "arguments": arguments}
    return Runner(workspace, given | inputs).run()


@pytest.mark.parametrize("language", KINDS)
def test_the_action_judges_a_library_of_each_kind(language: str, workspace: Path) -> None:
    """The action installed no tool chain, cached nothing, and wrote no badge."""
    adapter = workspace / "conformance" / "adapter"
    written(language, adapter, ["encode"])
    need("the template", read_adapter(adapter).toolchain)
    found = acted(workspace, **KINDS[language])
    assert found.status == 0, found.said
    setups = [SETUPS[name] for name in KINDS[language] if name in SETUPS]
    assert list(found.used) == [ALWAYS[0], *setups, ALWAYS[1], UPLOAD]
    rust = [f"rustup {words}" for words in ("toolchain install 1.85 --profile minimal", "default 1.85")]
    assert found.asked == [*(rust if language == "rust" else []), "pip install --quiet ./suite"]
    report = workspace / found.used[UPLOAD]["path"]
    assert {path.name for path in report.iterdir()} == {
        "matrix.html",
        "results.xml",
        "results.jsonl",
        "your-library.svg",
    }
    assert ET.parse(report / "results.xml").getroot().iter("testcase")  # noqa: S314 - written by the suite
    badge = (report / "your-library.svg").read_text(encoding="utf-8")
    assert re.search(r"segmented log format: your-library \S+ (\d+) of \1 must", badge), badge


def test_reports_of_a_failing_library_are_uploaded(workspace: Path) -> None:
    written("python", workspace / "conformance" / "adapter", ["encode"], wrong=["encode"])
    found = acted(workspace)
    assert found.status == 1
    assert "the adapter is broken" in found.said or "DIFFER" in found.said, found.said
    assert (workspace / found.used[UPLOAD]["path"] / "results.xml").is_file()


def test_a_tool_chain_that_the_action_was_not_given_is_named(workspace: Path) -> None:
    adapter = workspace / "conformance" / "adapter"
    written("javascript", adapter, ["encode"])
    description = adapter / "adapter.toml"
    text = description.read_text(encoding="utf-8")
    description.write_text(text.replace('"node >= 14.8"', '"node >= 99"'), encoding="utf-8")
    need("the template", ["node"])
    found = acted(workspace)
    assert found.status == 1, found.said
    assert "your-library needs node >= 99, and the PATH has " in found.said


def test_an_action_without_an_artifact_uploads_nothing(workspace: Path) -> None:
    written("python", workspace / "conformance" / "adapter", ["encode"])
    found = acted(workspace, artifact="")
    assert found.status == 0
    assert list(found.used) == ALWAYS


def test_the_caches_are_those_of_every_tool_chain(workspace: Path) -> None:
    written("python", workspace / "conformance" / "adapter", ["encode"])
    cache = acted(workspace).used[ALWAYS[1]]
    assert cache["path"].split() == ["~/.cache/pip", "~/.cargo/registry", "~/.m2/repository", "~/.npm", "~/go/pkg/mod"]
    assert cache["key"] == "seglog-conform-Linux-digest"
    assert cache["key"].startswith(cache["restore-keys"])


def test_the_example_on_the_page_gives_inputs_that_exist() -> None:
    text = (REPOSITORY / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    example = next(
        block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "conformance/action" in block
    )
    steps = yaml.safe_load(example)["steps"]
    given = next(step["with"] for step in steps if "conformance/action" in step.get("uses", ""))
    assert given.keys() <= ACTION["inputs"].keys()
    assert {name for name, one in ACTION["inputs"].items() if one.get("required")} <= given.keys()
