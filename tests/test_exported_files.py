"""The test file of each language, with a library behind it: green as it is, red with faults planted.

`tests/exported/` has what a maintainer writes between the marks. In C it is a small decoder that was written for this
test: librdkafka has no function that decodes bytes, and its mock broker sets the offsets of what it serves by itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY, need
from seglog_conformance.cases import Case, load_cases
from seglog_conformance.known import Known, KnownFailures, read_known
from seglog_conformance.language_files import LANGUAGES, MARK, MOST, OPS, language_file
from seglog_conformance.registry import BUILDS, STAMP, Builder, listed
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    import re
    from pathlib import Path

CONNECTED = REPOSITORY / "tests" / "exported"
SECONDS = 1200


@dataclass(frozen=True)
class Tried:
    """A library behind the test file of a language.

    Attributes:
        library: testee of the suite whose library it is, and whose known failures are listed; empty for none.
        programs: programs that compile and run the file.
        folder: directory of the file.
        faults: texts of the connection, each with another that is a fault, and the case that shows it.
    """

    library: str
    programs: tuple[str, ...]
    folder: str
    faults: tuple[tuple[str, str, str], ...]


TRIED = {
    "c": Tried(
        "",
        ("gcc",),
        ".",
        (
            (
                "crc32c(batch + 21, (size_t)length - 9) != number_at(batch + 17)",
                "0",
                "crc/flip-base-timestamp-byte-0: FAILS",
            ),
            ('(uint64_t)number_of(batch, "baseSequence")', "0", "encoding/producer: FAILS"),
        ),
    ),
    "go": Tried(
        "franz-go",
        ("go",),
        ".",
        (
            (
                "KeepControlRecords: true,",
                "KeepControlRecords: true, DisableCRCValidation: true,",
                "crc/flip-base-timestamp-byte-0",
            ),
        ),
    ),
    "java": Tried(
        "kafka-clients@4.4.0",
        ("java", "mvn"),
        "src/test/java",
        (
            ("batch.ensureValid();", "", "crc/flip-base-timestamp-byte-0: "),
            ('Integer.parseInt(fields.getOrDefault("baseSequence", "-1"))', "0", "encoding/producer: "),
        ),
    ),
    "js": Tried(
        "kafkajs",
        ("node",),
        ".",
        (
            (
                "key: one.key, value: one.value, headers }",
                "key: one.key ?? Buffer.alloc(0), value: one.value, headers }",
                "null-and-empty/key-null-value-some: ",
            ),
            ("firstSequence: Number(batch.baseSequence)", "firstSequence: 0", "encoding/producer: "),
        ),
    ),
    "python": Tried(
        "kafka-python",
        (),
        ".",
        (
            ("if not batch.validate_crc():", "if False:", "crc/flip-base-timestamp-byte-0: "),
            ('base_sequence=int(batch["baseSequence"])', "base_sequence=0", "encoding/producer: "),
        ),
    ),
    "rust": Tried(
        "kafka-protocol",
        ("cargo",),
        "tests",
        (
            (
                "key: one.key.as_ref().map(|bytes| bytes.to_vec()),",
                "key: Some(one.key.as_ref().map(|bytes| bytes.to_vec()).unwrap_or_default()),",
                "null-and-empty/key-null-value-some: ",
            ),
            ('number("baseSequence") + one.offset', "one.offset", "encoding/producer: "),
        ),
    ),
}


def is_of_adapter(case: str) -> bool:
    """Return whether only the adapter of kafka-python fails: it takes the time of a wrapper from its messages."""
    return case.startswith("magic-1-wrappers/no-timestamp-")


TOGETHER = [pytest.param(language, marks=pytest.mark.xdist_group(f"exported {language}")) for language in LANGUAGES]
"""The languages; the tests of one share what it builds."""


@cache
def every_case() -> list[Case]:
    return load_cases()


def library_of(tried: Tried) -> Path | None:
    """Return where the library is built; where it is not, it is built now in CI, and the test is skipped elsewhere."""
    if not tried.library:
        return None
    wanted = listed(tried.library)
    assert wanted.adapter is not None
    need(wanted.label, wanted.adapter.toolchain)
    builder = Builder(REPOSITORY / BUILDS)
    directory = builder.build_directory(wanted.adapter, wanted.version)
    if not (directory / STAMP).is_file():
        if not os.environ.get("CI"):
            pytest.skip(
                f"{wanted.label} is not built; seglog conform smoke --build {BUILDS} --testee {tried.library} builds it"
            )
        builder.testee(wanted).close()
    return directory


def connected(language: str, faults: tuple[tuple[str, str, str], ...] = ()) -> str:
    """Return a test file with the library behind it, whose known failures are listed."""
    name, _, version = TRIED[language].library.partition("@")
    known = read_known(name, version) if name else None
    if known is not None:
        known = replace(known, entries={case: one for case, one in known.entries.items() if not is_of_adapter(case)})
    made = language_file(language, every_case(), OPS, known=known)
    text = (CONNECTED / f"{language}.txt").read_text(encoding="utf-8")
    for good, bad, _ in faults:
        assert text.count(good) == 1, good
        text = text.replace(good, bad)
    return filled(made.text, text)


def filled(made: str, text: str) -> str:
    """Return a test file with what a maintainer writes between its marks."""
    parts = iter(text.split("\n@@@@\n"))
    whole = MARK.sub(lambda found: found[0] if found[1].startswith("known") else replaced(found, next(parts)), made)
    assert next(parts, None) is None
    return whole


def replaced(found: re.Match[str], text: str) -> str:
    """Return marks with other text between them."""
    return found[0].replace(found[2], f"{found[2].partition(chr(10))[0]}\n{text}\n")


def commands(language: str, directory: Path, library: Path | None) -> list[list[str]]:
    """Return what compiles and runs the file."""
    name = LANGUAGES[language].file
    match language:
        case "c":
            warnings = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
            return [["gcc", "-std=c11", "-O1", *warnings, name, "-o", "run"], ["./run"]]
        case "go":
            shutil.copy(CONNECTED / "go.mod", directory)
            return [["go", "mod", "tidy"], ["go", "test", "."]]
        case "java":
            shutil.copy(CONNECTED / "pom.xml", directory)
            return [["mvn", "-q", "-B", "test"]]
        case "js":
            assert library is not None
            (directory / "node_modules").symlink_to(library / "node_modules")
            return [["node", "--test", name]]
        case "python":
            return [[str(library / "bin" / "python") if library else "", "-m", "unittest", name]]
        case _:
            # Two tests share the built libraries at the same time. cargo knows packages by their names and takes
            # a file that is older than the last compilation as compiled: the name says what the file holds.
            held = hashlib.sha256((directory / TRIED[language].folder / name).read_bytes()).hexdigest()[:16]
            package = (CONNECTED / "Cargo.toml").read_text(encoding="utf-8")
            assert package.count('"exported"') == 1
            (directory / "Cargo.toml").write_text(package.replace('"exported"', f'"exported-{held}"'), encoding="utf-8")
            (directory / "src").mkdir()
            (directory / "src" / "lib.rs").touch()
            target = str((REPOSITORY / BUILDS / "exported-rust").absolute())
            return [["cargo", "test", "-q", "--test", "seglog_conformance", "--target-dir", target]]


def run(language: str, directory: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Compile and run a file; only the last command may fail."""
    tried = TRIED[language]
    need(f"the test file in {language}", tried.programs)
    library = library_of(tried)
    folder = directory / tried.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LANGUAGES[language].file).write_text(text, encoding="utf-8")
    *before, last = commands(language, directory, library)
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "GOFLAGS": "-mod=mod"}
    environment.pop("NODE_TEST_CONTEXT", None)
    for command in before:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return subprocess.run(
        last, cwd=directory, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_each_language_is_tried() -> None:
    assert list(TRIED) == list(LANGUAGES)


@pytest.mark.parametrize("language", TOGETHER)
def test_a_library_passes_with_its_known_failures(language: str, tmp_path: Path) -> None:
    text = connected(language)
    assert len(text.encode()) <= MOST
    done = run(language, tmp_path, text)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


@pytest.mark.parametrize("language", TOGETHER)
def test_planted_faults_fail_and_are_named(language: str, tmp_path: Path) -> None:
    faults = TRIED[language].faults
    done = run(language, tmp_path, connected(language, faults))
    said = done.stdout + done.stderr
    assert done.returncode != 0, said[-5000:]
    for _, _, case in faults:
        assert case in said, said[-5000:]


@pytest.mark.parametrize("language", TOGETHER)
def test_a_file_without_a_library_fails(language: str, tmp_path: Path) -> None:
    """What is not connected yet is not green, and no compiler refuses it."""
    if language == "rust":
        pytest.skip("it is compiled with the library above; a third time would take minutes")
    made = language_file(language, every_case()[:30], ["decode"])
    done = run(language, tmp_path, made.text)
    assert done.returncode != 0, done.stdout


# What a file itself keeps of a record: the library behind it gives back what it was given.

KEPT: list[dict[str, object]] = [
    {
        "offset": str(2**53 + 1),
        "timestamp": "-62135596800000",
        "key": None,
        "value": "",
        "headers": [["61", None], ["61", ""], ["62", "01"], ["61", None], ["61", None]],
    },
    {
        "offset": str(2**63 - 1),
        "timestamp": str(-(2**63)),
        "key": "",
        "value": None,
        "headers": [["ff80", ""], ["", None], ["", ""], ["c0af", "00"]],
    },
]
ECHOES = {
    "c": (["gcc", "-std=c11", "seglog_conformance.c", "-o", "run"], ["./run"]),
    "go": (["go", "test", "."],),
    "java": (["mvn", "-q", "-B", "test"],),
    "js": (["node", "--test", "seglog-conformance.test.mjs"],),
    "python": ([sys.executable, "-m", "unittest", "test_seglog_conformance.py"],),
    "rust": (["rustc", "--edition", "2021", "--test", "seglog_conformance.rs", "-o", "run"], ["./run"]),
}
"""What compiles and runs the file of each language without a library."""


def echoing(name: str, records: list[dict[str, object]]) -> Case:
    """Return a case that wants certain records back for `KEPT`."""
    batch = {"isControl": False, "records": KEPT}
    return Case(
        id=f"echo/{name}",
        family=1,
        family_name="echo",
        op="encode",
        requirements=("SEG-REC-001",),
        level="must",
        result="valid",
        why="",
        stored_request={"batches": [batch]},
        stored_expect={"batches": [{**batch, "records": records}]},
    )


def losses() -> list[Case]:
    """Return cases that pass only if the file loses or changes something."""
    first, second = KEPT
    headers = [["61", None], ["61", ""], ["62", "01"]]
    changed = {
        "repeated": {**first, "headers": headers},
        "null": {**first, "key": ""},
        "empty": {**first, "value": None},
        "number": {**first, "offset": str(2**53)},
        "time": {**first, "timestamp": "62135596800000"},
    }
    other = [["efbfbdefbfbd", ""], ["", None], ["", ""], ["c0af", "00"]]
    return [
        *(echoing(name, [one, second]) for name, one in changed.items()),
        echoing("text", [first, {**second, "headers": other}]),
    ]


@pytest.mark.parametrize("language", TOGETHER)
def test_a_file_keeps_repeated_headers_nulls_bytes_and_64_bits(language: str, tmp_path: Path) -> None:
    commands_of = ECHOES[language]
    need(f"the test file in {language}", [commands_of[0][0]] if language != "python" else [])
    lost = losses()
    known = KnownFailures("echo", "1", {case.id: Known(case.id, Verdict.DIFFER, "lost") for case in lost})
    made = language_file(language, [echoing("kept", KEPT), *lost], OPS, known=known)
    text = filled(made.text, (CONNECTED / "echo" / f"{language}.txt").read_text(encoding="utf-8"))
    folder = tmp_path / ("src/test/java" if language == "java" else ".")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LANGUAGES[language].file).write_text(text, encoding="utf-8")
    shutil.copy(CONNECTED / "pom.xml", tmp_path)
    (tmp_path / "go.mod").write_text("module exported\n\ngo 1.21\n", encoding="utf-8")
    for command in commands_of:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
