"""Each report tells how it was made, its command can be repeated, and the page of reports says what they found."""

from __future__ import annotations

import copy
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from helpers.walking import each_of

from proofs import report_facts
from tools import release_reports, reports

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

EVERY = reports.every()


def new_report() -> dict[str, Any]:
    made = report_facts.run_conditions("make proof NAME=kills", seed=1)
    made |= {"commit": "0" * 40, "dirty": False}
    made["machine"] |= {"processor": "a processor", "loadAverageAtEnd": 0.5}
    return {"made": made, "failures": 0}


@each_of("name", EVERY)
def test_every_report_tells_how_it_was_made(name: str) -> None:
    assert list(reports.problems(name, EVERY[name])) == []
    assert reports.found(name, EVERY[name])
    assert EVERY[name]["made"]["commit"][:8] in reports.birth(EVERY[name])


def test_every_description_has_its_report_and_the_page_is_that_of_the_reports() -> None:
    assert reports.ABOUT.keys() == EVERY.keys()
    assert (report_facts.ROOT / reports.README).read_text(encoding="utf-8") == reports.page()


def without(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(report: dict[str, Any]) -> None:
        *parents, last = path
        for name in parents:
            report = report[name]
        del report[last]

    return change


def with_value(value: object, *path: str) -> Callable[[dict[str, Any]], None]:
    def change(report: dict[str, Any]) -> None:
        *parents, last = path
        for name in parents:
            report = report[name]
        report[last] = value

    return change


def with_command(command: str) -> Callable[[dict[str, Any]], None]:
    return with_value(command, "made", "command")


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "no conditions": (without("made"), "does not say how it was made"),
    "no commit": (without("made", "commit"), "made.commit is missing"),
    "an empty commit": (with_value("", "made", "commit"), "made.commit is missing or empty"),
    "a short commit": (with_value("e6e47325", "made", "commit"), "not 40 hex digits"),
    "changed files": (with_value("yes", "made", "dirty"), "files were changed"),
    "nobody looked for changed files": (without("made", "dirty"), "files were changed"),
    "no digests": (with_value({}, "made", "digests"), "made.digests is missing"),
    "no date": (without("made", "date"), "made.date is missing"),
    "no versions": (without("made", "versions"), "made.versions is missing"),
    "no machine": (without("made", "machine"), "made.machine is missing"),
    "no processor": (with_value("", "made", "machine", "processor"), "made.machine.processor is missing"),
    "no load": (with_value(None, "made", "machine", "loadAverage"), "made.machine.loadAverage is missing"),
    "no command": (with_command(""), "is none of"),
    "half a quotation": (with_command("make proof NAME='"), "No closing quotation"),
    "a target that is gone": (with_command("make spark-damage"), "no target 'spark-damage'"),
    "words in brackets": (with_command("make bench (--scale 1)"), "no NAME=VALUE"),
    "a proof that is gone": (with_command("make proof NAME=nothing"), "no proof 'nothing'"),
    "a benchmark that is gone": (with_command("make bench NAME=nothing"), "no benchmark 'nothing'"),
    "a script that is gone": (with_command("python tools/serve_kills.py --broker"), "is none of"),
    "a module that is gone": (with_command("python -m tools.nothing"), "no module tools.nothing"),
    "data beside the repository": (
        with_command("python -m proofs resurrect --more ../shared/x"),
        "does not have ../shared/x",
    ),
    "data of one machine": (with_command("make proof NAME=resurrect ARGS='--more /srv/x'"), "does not have /srv/x"),
}


def test_a_new_report_has_no_problem() -> None:
    assert list(reports.problems("kills", new_report())) == []
    assert list(reports.problems("unheard-of", new_report())) == ["about.toml does not say what the report is about"]


@each_of("name", CHANGES)
def test_a_report_that_was_edited_is_named(name: str) -> None:
    change, expected = CHANGES[name]
    report = copy.deepcopy(new_report())
    change(report)
    assert expected in "\n".join(reports.problems("kills", report))


def test_reports_from_before_the_rule_still_need_a_command_and_a_commit() -> None:
    made = {"command": "make spark-kills", "commit": "", reports.OLD: True}
    found = "\n".join(reports.problems("kills", {"made": made}))
    assert "no target 'spark-kills'" in found
    assert "not 40 hex digits" in found


def test_a_report_of_other_code_is_noticed() -> None:
    today, other, old = new_report(), new_report(), new_report()
    assert (reports.other_code(today), reports.standing(today)) == ([], reports.TODAY)
    other["made"]["digests"]["seglog_format"] = "0" * 64
    assert (reports.other_code(other), reports.standing(other)) == (["seglog_format"], "other code")
    old["made"] |= {"digests": {}, reports.OLD: True}
    assert (reports.other_code(old), reports.standing(old)) == (["(not noted)"], "before the rule")
    all_of_them = {"a": old, "b": today, "c": other | {"seconds": 5}, "d": old | {"seconds": 2}}
    assert release_reports.stale(all_of_them) == ["d", "c", "a"]


NEW = json.dumps({"runs": 3, "failures": 0})
SHELL = "import pathlib, sys; pathlib.Path(sys.argv[2]).write_text({!r}); sys.exit({})"


@each_of(("status", "text"), [(0, NEW), (1, NEW), (2, NEW), (77, NEW), (0, '{"kills": 3}'), (1, "no JSON"), (0, "old")])
def test_a_report_stays_if_its_command_was_not_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, text: str
) -> None:
    (path := tmp_path / "kills.json").write_text("old", encoding="utf-8")
    monkeypatch.setattr(release_reports, "REPORTS", tmp_path)
    command = shlex.join(["python", "-c", SHELL.format(text, status)])
    complaint = release_reports.remake("kills", command)
    is_new = status in release_reports.COMPLETED and text == NEW
    assert path.read_text(encoding="utf-8") == (NEW if is_new else "old")
    assert (complaint == "") == (is_new and status == 0)


def test_a_report_is_skipped_if_a_program_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_reports, "ABOUT", {"kills": {"needs": ["no-such-program"]}})
    monkeypatch.setattr(release_reports, "REPORTS", tmp_path)
    assert "skipped, since it needs no-such-program" in release_reports.remake("kills", "python -c 1")


@each_of("name", EVERY)
def test_a_command_of_make_or_python_writes_its_report(name: str) -> None:
    first, *_, last = release_reports.words(name, EVERY[name]["made"]["command"])
    assert first == "make" or (first == sys.executable and last.endswith(f"{name}.json"))


def test_digest_changes_with_a_byte_and_with_a_name(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_bytes(b"1")
    first = report_facts.tree_digest(tmp_path)
    (tmp_path / "one.py").write_bytes(b"2")
    second = report_facts.tree_digest(tmp_path)
    (tmp_path / "one.py").rename(tmp_path / "two.py")
    third = report_facts.tree_digest(tmp_path)
    assert len({first, second, third}) == 3
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "kernels.so").write_bytes(b"built here, other bytes elsewhere")
    assert report_facts.tree_digest(tmp_path) == third


def test_the_page_counts_failures_that_a_report_holds() -> None:
    report = copy.deepcopy(EVERY["damages"]) | {"failures": 7}
    assert "7 failures" in reports.found("damages", report)


def test_writer_keeps_the_load_of_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    text = report_facts.write_report(path, report_facts.run_conditions("make proof NAME=kills"), {"runs": 3})
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(text)
    assert {"loadAverage", "loadAverageAtEnd"} <= json.loads(text)["made"]["machine"].keys()
    assert json.loads(text)["runs"] == 3
