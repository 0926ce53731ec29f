"""``seglog conform export``: what its file holds, what it keeps and leaves out, and how exactly it compares."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from seglog_conformance import language_files
from seglog_conformance.case_text import LARGEST_MADE, LeftOutError, batch_fields, lines_of, packed, record_fields
from seglog_conformance.cases import Case, load_cases, scale_directory
from seglog_conformance.commands.conform_options import LANGUAGES as OFFERED
from seglog_conformance.known import Known, KnownFailures
from seglog_conformance.language_files import LANGUAGES, MOST, OPS, LanguageFileError, language_file
from seglog_conformance.reference import decode as reference_decode
from seglog_conformance.verdicts import Verdict

from seglog_format.cli.main import seglog
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

RECORD = {"offset": "3", "timestamp": "1000", "key": None, "value": "", "headers": [["61", None], ["", "62"]]}
BATCH = {"baseOffset": "3", "codec": "none", "isControl": False, "deleteHorizonMs": None, "records": [RECORD]}
MADE = Case(
    id="made/one",
    family=1,
    family_name="made",
    op="decode",
    requirements=("SEG-BAT-001", "SEG-REC-001"),
    level="must",
    result="valid",
    why='A "reason" with a \\ and a `word`.',
    stored_request={"data": "00" * 12 + "0a0b", "options": {"crc": True}},
    stored_expect={"batches": [BATCH], "consumed": 14, "tail": None},
    needs=("magic:2",),
)
LARGE = {"sha256": "a" * 64, "bytes": 5000}


@cache
def every_case() -> list[Case]:
    return [*load_cases(), *load_cases(scale_directory())]


def must_cases(*ops: str) -> list[Case]:
    return [case for case in every_case() if case.op in ops and case.level == "must"]


def is_left_out(case: Case) -> bool:
    has_choice = case.op == "encode" and "allowed" in case.stored_expect
    return has_choice or case.is_summed_up or (case.is_made and case.input_size > LARGEST_MADE)


def exported(*arguments: object) -> Result:
    return CliRunner().invoke(seglog, ["conform", "export", *map(str, arguments)])


def written(case: Case) -> list[str]:
    return lines_of(case, batch_fields([case]), record_fields([case]))


def test_a_case_is_lines_of_plain_text() -> None:
    assert written(MADE) == [
        "case decode made/one",
        "rules SEG-BAT-001 SEG-REC-001",
        "needs magic:2",
        "why A 'reason' with a / and a 'word'.",
        "data 00*12+0a0b",
        "answer read",
        "b 3 none false -",
        "r 3 1000 - .",
        "h 61 -",
        "h . 62",
        "end 14 -",
    ]


def test_what_a_case_does_not_state_is_a_question_mark() -> None:
    other = {**BATCH, "magic": 1, "records": [{**RECORD, "value": LARGE, "crc": 7}]}
    case = replace(MADE, stored_expect={"batches": [BATCH, other]})
    lines = written(case)
    assert lines[6:8] == ["b 3 none false - ?", "r 3 1000 - ."]
    assert lines[10:12] == ["b 3 none false - 1", f"r 3 1000 - sha256:5000:{'a' * 64} 7"]


def test_each_allowed_answer_is_written() -> None:
    allowed = [{"branch": "reads", "batches": []}, {"branch": "refuses", "reject": {"class": "crc"}}]
    case = replace(MADE, result="acceptable", stored_expect={"allowed": allowed})
    assert [line for line in written(case) if line.startswith("answer")] == ["answer read", "answer refuse"]


def test_a_request_without_a_line_is_left_out_with_its_reason() -> None:
    case = replace(MADE, stored_request={"data": "", "options": {"crc": True, "new": 1}})
    with pytest.raises(LeftOutError, match="they ask for new"):
        written(case)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "."),
        (b"\1\2", "0102"),
        (bytes(11), "00" * 11),
        (bytes(12), "00*12"),
        (b"\7" + b"\1\2" * 20 + b"\3", "07+0102*20+03"),
        (b"a\n" * 12, "610a*12"),
        (bytes(range(251)) * 12 + b"\0", f"{bytes(range(251)).hex()}*12+00"),
    ],
)
def test_repeated_bytes_are_written_once(data: bytes, text: str) -> None:
    assert packed(data) == text


def test_the_command_offers_the_languages_and_operations_of_the_suite() -> None:
    assert set(OFFERED) == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_has_every_must_case_and_at_most_two_megabytes(language: str) -> None:
    made = language_file(language, every_case(), OPS)
    wanted = must_cases(*OPS)
    large = [case for case in wanted if is_left_out(case)]
    absent = [case for case in wanted if case not in large and f"case {case.op} {case.id}" not in made.text]
    assert len(absent) == made.left_out[language_files.TOO_LARGE] <= {"c": 4, "java": 2}.get(language, 1)
    assert made.count == len(wanted) - len(large) - len(absent)
    assert sum(made.left_out.values()) == len(large) + len(absent)
    assert len(made.text) <= MOST
    assert made.text.isascii()
    assert "@" not in made.text.partition("case decode")[0].replace("@TestFactory", "")


def test_the_command_writes_the_file_and_prints_what_it_left_out(tmp_path: Path) -> None:
    done = exported("--for", "python", "-o", tmp_path)
    made = language_file("python", every_case(), ["decode"], edition="3 (draft)")
    assert done.exit_code == 0, done.output
    assert (tmp_path / LANGUAGES["python"].file).read_text(encoding="ascii") == made.text
    ((reason, count),) = made.left_out.items()
    assert f"wrote {made.count:,} cases to {tmp_path}" in done.output
    assert f"left out {count} cases: {reason}" in done.output


def test_what_would_be_too_large_is_counted_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_files, "MOST", 60_000)
    cases = must_cases("decode")[:200]
    made = language_file("python", cases, ["decode"])
    assert len(made.text) <= 60_000
    assert made.count + made.left_out[language_files.TOO_LARGE] == 200
    largest = max(cases, key=lambda case: case.input_size)
    assert largest.id not in made.text
    monkeypatch.setattr(language_files, "MOST", 1)
    with pytest.raises(LanguageFileError, match="no case of decode is left"):
        language_file("python", cases, ["decode"])


def test_an_encoder_alone_gets_the_cases_whose_bytes_are_fixed() -> None:
    made = language_file("go", every_case(), ["encode"])
    small = [case for case in must_cases("encode") if not is_left_out(case)]
    fixed = [case for case in small if "data" in case.expect]
    assert made.count == len(fixed) > 20
    (count,) = (number for reason, number in made.left_out.items() if "add decode to --ops" in reason)
    assert count == len(small) - len(fixed)


def test_what_the_maintainer_wrote_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    assert exported("--for", "python", "--family", "crc", "--known", "kafkajs", "-o", path).exit_code == 0
    first = path.read_text()
    assert first.count("SILENT: ") + first.count("ACCEPTS-INVALID: ") > 10
    mine = first.replace("    raise NotConnected\n", "    return mine(data)\n").replace(
        "KNOWN_FAILURES = {\n", 'KNOWN_FAILURES = {\n    "x/y": "mine",\n'
    )
    path.write_text(mine.replace("case decode crc/", "case decode old/"))
    done = exported("--for", "python", "--family", "crc", "-o", path)
    assert "and kept its yours and known failures" in done.output
    assert path.read_text() == mine
    done = exported("--for", "python", "--family", "crc", "--known", "kafkajs", "-o", path)
    assert "and kept its yours\n" in done.output
    assert path.read_text() == first.replace("    raise NotConnected\n", "    return mine(data)\n")


def test_another_file_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "test_seglog_conformance.py"
    path.write_text("mine")
    done = exported("--for", "python", "--family", "crc", "-o", tmp_path)
    assert isinstance(done.exception, UsageError)
    assert "has no marks of a test file" in str(done.exception)
    assert path.read_text() == "mine"


def test_an_output_without_an_ending_is_a_directory(tmp_path: Path) -> None:
    exported("--for", "python", "--family", "crc", "-o", tmp_path / "new" / "tests")
    assert [path.name for path in (tmp_path / "new" / "tests").iterdir()] == ["test_seglog_conformance.py"]


def test_a_list_of_ones_own_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'implementation = "mine"\nversion = "1"\n\n[[failure]]\ncase = "crc/flip-crc-byte-0"\nverdict = "SILENT"\n'
        'reason = "It \\"checks\\" nothing."\nissue = "unreported"\n'
    )
    done = exported("--for", "js", "--family", "crc", "--known", tmp_path / "mine.toml", "-o", tmp_path)
    assert done.exit_code == 0, done.output
    text = (tmp_path / LANGUAGES["js"].file).read_text()
    assert "  ['crc/flip-crc-byte-0', 'SILENT: It checks nothing.']," in text


def test_an_older_edition_lacks_the_cases_of_younger_rules(tmp_path: Path) -> None:
    fields = ("id", "op", "requirements", "level", "result", "why")
    stored = {
        **{name: getattr(MADE, name) for name in fields},
        "request": MADE.stored_request,
        "expect": MADE.stored_expect,
    }
    younger = {**stored, "id": "made/two", "requirements": ["SEG-BAT-001", "SEG-APP-018"]}
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps({"family": 1, "name": "made", "cases": [stored, younger]}))
    arguments = ("--for", "c", "--cases", cases, "-o", tmp_path)
    assert "wrote 2 cases" in exported(*arguments).output
    done = exported(*arguments, "--edition", "2026.11")
    assert "wrote 1 case to " in done.output
    assert "left out 1 case: their rules are newer than edition 1 (2026-11-22)" in done.output
    text = (tmp_path / "seglog_conformance.c").read_text()
    assert "edition 1 (2026-11-22);" in text
    assert "made/two" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ops", "decode,recover"), "no operation 'recover' for a test file: there are decode and encode"),
        (("--ops", ""), "no operation ''"),
        (("--edition", "1999"), "no edition '1999': there are 1 (2026.11), 2 (2026.12)"),
        (("--known", "nothing-of-that-name"), "no list of known failures"),
        (("--family", "lookup"), "no case of decode is left to write"),
        (("--family", "crcs"), "no family 'crcs'"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = exported("--for", "go", "-o", tmp_path, *arguments)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_an_unknown_language_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    done = exported("--for", "cobol", "-o", tmp_path)
    assert "'c', 'go', 'java', 'js', 'python', 'rust'" in str(done.exception) + done.output


def test_only_known_failures_of_cases_in_the_file_are_listed() -> None:
    known = KnownFailures("mine", "1", {name: Known(name, Verdict.CRASH, "It 'ends'.") for name in ("made/one", "x/y")})
    text = language_file("rust", [MADE], ["decode"], known=known).text
    assert '    ("made/one", "CRASH: It ends."),\n];' in text


# How exactly a file compares: the reference behind the file in Python, and answers with one thing too many.


def module(cases: list[Case]) -> dict[str, Any]:
    """Return the names of a test file in Python that reports everything, with the reference as its library."""
    names: dict[str, Any] = {"__name__": "exported"}
    exec(language_file("python", cases, ["decode"]).text, names)  # noqa: S102 - our own file
    names["BATCH_FIELDS"][:] = names["ALL_BATCH_FIELDS"]
    names["RECORD_FIELDS"][:] = names["ALL_RECORD_FIELDS"][4:]
    return names


def log_of(data: bytes, names: dict[str, Any]) -> dict[str, Any]:
    answer = reference_decode({"data": data.hex(), "options": {"crc": True}})
    for batch in answer["batches"]:
        for name in names["ALL_BATCH_FIELDS"]:
            batch.setdefault(name, None)
        for record in batch["records"]:
            pairs = record.get("headers") or []
            headers = [(bytes.fromhex(key), None if value is None else bytes.fromhex(value)) for key, value in pairs]
            usual = {name: None if record[name] is None else bytes.fromhex(record[name]) for name in ("key", "value")}
            kept = {name: record.get(name) for name in names["ALL_RECORD_FIELDS"]}
            record.clear()
            record |= {**kept, **usual, "headers": headers}
    log = {"batches": answer["batches"], "consumed": answer.get("consumed")}
    log["tail"] = (answer.get("tail") or {}).get("at")
    if not answer["ok"]:
        raise names["Refused"](answer["reject"], log)
    return log


def one_record_more(log: dict[str, Any]) -> None:
    log["batches"][-1]["records"].append(log["batches"][-1]["records"][-1])


def one_batch_more(log: dict[str, Any]) -> None:
    log["batches"].append({**log["batches"][-1], "records": []})


def one_header_more(log: dict[str, Any]) -> None:
    log["batches"][0]["records"][0]["headers"].append((b"h", None))


def one_field_of_a_batch_more(log: dict[str, Any]) -> None:
    log["batches"][0]["colour"] = "red"


def one_field_of_a_record_more(log: dict[str, Any]) -> None:
    log["batches"][0]["records"][0]["colour"] = "red"


def a_tail_more(log: dict[str, Any]) -> None:
    log["tail"] = 1


def one_record_fewer(log: dict[str, Any]) -> None:
    del log["batches"][-1]["records"][-1]


def empty_for_null(log: dict[str, Any]) -> None:
    log["batches"][0]["records"][0]["key"] = b""


CHANGES = (
    one_record_more,
    one_batch_more,
    one_header_more,
    one_field_of_a_batch_more,
    one_field_of_a_record_more,
    a_tail_more,
    one_record_fewer,
    empty_for_null,
)


def problem_of(names: dict[str, Any], case: Any) -> str | None:  # noqa: ANN401 - a case of the file
    """Return what the test of a case says; a field that is not declared is an error of the test."""
    try:
        found: str | None = names["problem_of"](case)
    except AssertionError as error:
        return str(error)
    return found


def asked(text: str) -> list[Case]:
    return [
        case
        for case in must_cases("decode")
        if case.id.partition("/")[0] in text.split() and "sha256" not in str(case.expect)
    ]


def test_the_reference_passes() -> None:
    names = module(asked("plain-batches crc tails zstd magic-1-wrappers"))
    names["decode"] = lambda data, _: log_of(data, names)
    assert [(case.id, problem) for case in names["ALL"] if (problem := problem_of(names, case))] == []
    assert len(names["ALL"]) > 100


@pytest.mark.parametrize("change", CHANGES)
def test_one_thing_too_many_or_too_few_fails(change: Any) -> None:  # noqa: ANN401 - one of the functions above
    names = module([case for case in asked("null-and-empty") if case.id == "null-and-empty/key-null-value-some"])

    def decode(data: bytes, _: dict[str, str]) -> dict[str, Any]:
        log = log_of(data, names)
        change(log)
        return log

    (case,) = names["ALL"]
    names["decode"] = decode
    assert problem_of(names, case) is not None


def test_what_is_delivered_from_damage_on_fails() -> None:
    """The case that stands for the kind: damage that is passed over, with all records behind it, and no error."""
    names = module([case for case in asked("crc") if case.id == "crc/third-batch"])
    (case,) = names["ALL"]
    good = log_of(case.data[:140], names)
    for log, error, problem in (
        (good, None, "it was read, and has to be refused"),
        (good, ValueError("crc"), None),
        ({"batches": []}, ValueError("crc"), None),
        (
            {"batches": [*good["batches"], *good["batches"]]},
            ValueError("crc"),
            "before the damage: expected 2 entries, found 4",
        ),
    ):

        def decode(_: bytes, __: dict[str, str], log: Any = log, error: Any = error) -> Any:  # noqa: ANN401 - as above
            if error:
                raise names["Refused"](error, log)
            return log

        names["decode"] = decode
        assert problem_of(names, case) == problem
