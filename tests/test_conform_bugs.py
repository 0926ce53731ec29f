"""Claims about fixed defects: they are read, both releases are asked, and what does not hold is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers.serving import serving
from helpers.support import REPOSITORY, need
from helpers.walking import each_of
from seglog_conformance.bugs import read_bugs, read_program
from seglog_conformance.cases import load_cases
from seglog_conformance.commands.conform import command
from seglog_conformance.registry import BUILDS, AdapterError, Builder, adapters, listed, read_adapter

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_conformance.bugs import Bug
    from seglog_conformance.protocol import Json
    from seglog_conformance.registry import Adapter

EVERY = load_cases()
ADAPTER = """
name = "mine"
language = "Python"
versions = ["2", "1"]
run = ["{python}", "{adapter}/a.py", "{version}"]
"""
FAKE = """
import sys

from seglog_conformance.reference.__main__ import Reference, serve


class Old(Reference):
    def answer(self, request):
        answer = super().answer(request)
        for batch in answer.get("batches", ()):
            for record in batch["records"]:
                record["key"] = record["key"] or ""
        return answer


serve(Old() if sys.argv[1] == "1" else Reference())
"""
"""A library whose first release takes null keys for empty ones."""

BUG = {
    "summary": "Null keys are read as empty ones.",
    "links": ["https://example.org/1"],
    "old": "1",
    "new": "2",
    "verdict": "DIFFER",
    "cases": ["null-and-empty/key-null-value-some"],
}


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the cases once for all tests: reading them takes longer than asking one."""
    monkeypatch.setattr("seglog_conformance.cases.load_cases", lambda: EVERY)


def written_claims(tmp_path: Path, *claims: Json, **fields: object) -> Path:
    """Return a directory with an adapter and what is claimed about its library."""
    directory = tmp_path / "mine"
    directory.mkdir()
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    (directory / "adapter.toml").write_text(ADAPTER + "\n".join(lines), encoding="utf-8")
    (directory / "a.py").write_text(FAKE, encoding="utf-8")
    entries = [["[[bug]]", *(f"{name} = {json.dumps(value)}" for name, value in claim.items())] for claim in claims]
    (directory / "bugs.toml").write_text("\n".join(line for entry in entries for line in entry), encoding="utf-8")
    return directory


def invoke(directory: Path, *arguments: str) -> tuple[int, str]:
    build = str(directory.parent / "build")
    words = ["bugs", "--adapter", str(directory), "--build", build, *arguments]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exception is None, done.exception
    return int(done.return_value or 0), done.stdout


def test_a_claim_holds(tmp_path: Path) -> None:
    report = tmp_path / "bugs.json"
    directory = written_claims(tmp_path, BUG)
    status, text = invoke(directory, "--report", str(report))
    assert status == 0
    assert "DIFFER: 1" in text
    assert "PASS: 1" in text
    assert text.endswith("1 of 1 claims hold, about 1 implementations\n")
    stored = json.loads(report.read_text(encoding="utf-8"))
    assert [stored[name] for name in ("claims", "holding", "implementations")] == [1, 1, 1]
    status, text = invoke(directory, "--json")
    assert status == 0
    line = json.loads(text)
    assert stored["bugs"] == [line]
    assert line["holds"] is True
    assert line["old"] == {"version": "1", "verdicts": {"null-and-empty/key-null-value-some": "DIFFER"}}
    assert line["new"] == {"version": "2", "verdicts": {"null-and-empty/key-null-value-some": "PASS"}}


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"verdict": "SILENT"}, "DIFFER and PASS instead of SILENT and PASS"),
        ({"new": "1"}, "DIFFER and DIFFER instead of DIFFER and PASS"),
        ({"old": "2"}, "PASS and PASS instead of DIFFER and PASS"),
        (
            {"cases": ["null-and-empty/key-null-value-some", "null-and-empty/key-some-value-some"]},
            "key-some-value-some: PASS and PASS instead of DIFFER and PASS",
        ),
    ],
)
def test_a_claim_does_not_hold(tmp_path: Path, change: Json, reported: str) -> None:
    status, text = invoke(written_claims(tmp_path, BUG | change))
    assert status == 1
    assert reported in text
    assert text.endswith("0 of 1 claims hold, about 0 implementations\n")


def test_what_cannot_be_built_here_is_passed_over(tmp_path: Path) -> None:
    status, text = invoke(written_claims(tmp_path, BUG, toolchain=["no-such-compiler"]))
    assert status == 0
    assert "not run: mine 1: mine needs no-such-compiler" in text
    _, text = invoke(tmp_path / "mine", "--json")
    assert json.loads(text)["holds"] is None


def test_a_release_that_does_not_come_up_is_no_proof(tmp_path: Path) -> None:
    directory = written_claims(tmp_path, BUG)
    (directory / "a.py").write_text("print('hello')", encoding="utf-8")
    status, text = invoke(directory)
    assert status == 1
    assert "it does not hold: mine 1:" in text


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"cases": ["gone/for-good"]}, "gone/for-good"),
        ({"links": []}, "links"),
        ({"verdict": "PASS"}, "verdict"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_claim_that_cannot_be_checked_is_refused(tmp_path: Path, change: Json, reported: str) -> None:
    directory = written_claims(tmp_path, BUG | change)
    done = CliRunner().invoke(command, ["bugs", "--adapter", str(directory)], standalone_mode=False)
    assert reported in str(done.exception)


def test_an_adapter_without_claims_has_none(tmp_path: Path) -> None:
    directory = written_claims(tmp_path, BUG)
    (directory / "bugs.toml").write_text("[[bug", encoding="utf-8")
    with pytest.raises(AdapterError, match=r"bugs\.toml"):
        read_bugs(read_adapter(directory))
    (directory / "bugs.toml").unlink()
    assert read_bugs(read_adapter(directory)) == []
    status, text = invoke(directory)
    assert (status, text.splitlines()[-1]) == (0, "0 of 0 claims hold, about 0 implementations")


def test_a_new_claim_builds_nothing_anew(tmp_path: Path) -> None:
    touch = [sys.executable, "-c", "open('count', 'a').write('x')"]
    directory = written_claims(tmp_path, BUG, build=[touch])
    for _ in range(2):
        assert invoke(directory)[0] == 0
        with (directory / "bugs.toml").open("a", encoding="utf-8") as file:
            file.write("# more\n")
    assert (tmp_path / "build" / "mine-1" / "count").read_text(encoding="ascii") == "x"


CLAIMS = [bug for adapter in adapters() for bug in read_bugs(adapter)]


def test_eight_defects_of_five_implementations_are_claimed() -> None:
    assert len(CLAIMS) >= 8
    assert len({bug.adapter.homepage for bug in CLAIMS}) >= 5


@each_of("bug", CLAIMS, ids=lambda bug: f"{bug.adapter.name}-{bug.old}-{bug.cases[0]}")
def test_claims_are_about_cases_that_there_are(bug: Bug) -> None:
    assert set(bug.cases) <= {case.id for case in EVERY}
    assert bug.old != bug.new


WHOLE = [adapter for adapter in adapters() if "seglog_conformance.wire" in adapter.run and read_bugs(adapter)]


@pytest.mark.parametrize("adapter", WHOLE, ids=lambda adapter: adapter.name)
def test_claims_about_whole_clients_have_a_program_of_about_ten_lines(adapter: Adapter) -> None:
    lines = [line for line in read_program(adapter).splitlines() if line.strip()]
    assert 0 < len(lines) <= 11
    assert "127.0.0.1:9092" in read_program(adapter)


def test_the_program_shows_what_the_application_gets(tmp_path: Path) -> None:
    adapter = listed("kafka-python-wire").adapter
    assert adapter is not None
    need(adapter.name, adapter.toolchain)
    builder = Builder(REPOSITORY / BUILDS)
    python = builder.build_directory(adapter, adapter.versions[0]) / "bin" / "python"
    if not python.exists():
        if not os.environ.get("CI"):
            pytest.skip("kafka-python-wire is not built; seglog conform smoke --testee kafka-python-wire builds it")
        builder.testee(listed(adapter.name))
    case = next(case for case in EVERY if case.id == "control-records/data-commit-data")
    partition = tmp_path / "case-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(bytes.fromhex(case.request["data"]))
    with serving(tmp_path) as served:
        program = read_program(adapter).replace(":9092", f":{served.port}")
        done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    batches = [batch for batch in case.expect["batches"] if not batch["isControl"]]
    expected = [record["offset"] for batch in batches for record in batch["records"]]
    assert [line.split()[0] for line in done.stdout.splitlines()] == expected
