"""Test files: all MUST cases of some operations in one file, for the test runner of a library's own language.

What a file has around the cases, with the comparison, is in ``conformance/language_files/``. A maintainer connects the
library between two marks, and lists known failures between two others: both are kept when the file is written again.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_conformance.case_text import OPS, LeftOutError, batch_fields, lines_of, record_fields
from seglog_conformance.environment import suite_digest, suite_version
from seglog_conformance.parts import part
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.known import KnownFailures

MOST: Final = 2_000_000
"""Maximum size of a file in bytes."""
MOST_OF_A_LITERAL: Final = 60_000
"""Characters of a string literal in Java; a class file allows 65,535."""
MOST_IN_C: Final = 4_000
"""Characters of a string literal in C; the standard promises 4,095."""
LEVEL: Final = "must"
MARK: Final = re.compile(r"^[^\n]*\[seglog\] ([^:\n]+): begin(.*?)^[^\n]*\[seglog\] \1: end", re.MULTILINE | re.DOTALL)
ADDED_SIZE: Final = 9_000
"""Maximum characters of what the head of a file says about its cases, and of what connects a library to them."""
TOO_LARGE: Final = f"the file would have more than {MOST:,} bytes: the largest are left out"


class LanguageFileError(Exception):
    """A test file cannot be written."""


@dataclass(frozen=True, slots=True)
class Language:
    """How a test file looks in one language.

    Attributes:
        file: usual name of the file.
        run: command that runs it.
        literal: how the text of the cases is written.
        known: how one known failure is written, from its case and reason.
    """

    file: str
    run: str
    literal: Callable[[list[str]], str]
    known: Callable[[str, str], str]


def _raw(lines: list[str]) -> str:
    return "\n".join(lines)


def _strings(lines: list[str]) -> str:
    """Return strings of C, each of literals that every compiler takes."""
    parts = ([line[at : at + MOST_IN_C] for at in range(0, len(line), MOST_IN_C)] for line in lines)
    return "\n".join("\n".join(map(_quoted, pieces)) + "," for pieces in parts)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def _text_blocks(lines: list[str]) -> str:
    """Return text blocks of Java, none longer than a class file allows."""
    blocks: list[list[str]] = [[]]
    size = 0
    for line in lines:
        if size + len(line) > MOST_OF_A_LITERAL:
            blocks.append([])
            size = 0
        blocks[-1].append(line)
        size += len(line) + 1
    return ",\n".join('        """\n' + "\n".join(block) + '\n"""' for block in blocks)


LANGUAGES: Final = {
    "c": Language(
        "seglog_conformance.c",
        "cc -std=c11 -O1 seglog_conformance.c YOUR_LIBRARY -o seglog_conformance && ./seglog_conformance",
        _strings,
        '    {{"{}", "{}"}},'.format,
    ),
    "go": Language("seglog_conformance_test.go", "go test -run Seglog .", _raw, '\t"{}": "{}",'.format),
    "java": Language(
        "SeglogConformanceTest.java",
        "mvn test -Dtest=SeglogConformanceTest",
        _text_blocks,
        '        {{"{}", "{}"}},'.format,
    ),
    "js": Language("seglog-conformance.test.mjs", "node --test", _raw, "  ['{}', '{}'],".format),
    "python": Language(
        "test_seglog_conformance.py", "pytest test_seglog_conformance.py", _raw, '    "{}": "{}",'.format
    ),
    "rust": Language("seglog_conformance.rs", "cargo test --test seglog_conformance", _raw, '    ("{}", "{}"),'.format),
}


@dataclass(frozen=True, slots=True)
class LanguageFile:
    """A test file.

    Attributes:
        text: its content.
        count: number of its cases.
        left_out: number of cases that it lacks, by reason.
        kept: names of the parts that come from the file that was there before.
    """

    text: str
    count: int
    left_out: Counter[str] = field(default_factory=Counter)
    kept: tuple[str, ...] = ()


def language_file(
    language: str,
    cases: Iterable[Case],
    ops: Sequence[str],
    *,
    edition: str = "",
    known: KnownFailures | None = None,
    before: str | None = None,
) -> LanguageFile:
    """Return a test file.

    Args:
        language: one of `LANGUAGES`.
        cases: cases to choose from: those of the operations whose level is MUST are written.
        ops: operations, of ``decode`` and ``encode``.
        edition: the edition of the specification that the cases belong to.
        known: known failures to list; by default those of the file before.
        before: the file that is there; the parts between its marks are kept.

    Raises:
        LanguageFileError: there is a file that is no test file of the suite, or no case is left.
    """
    chosen = [case for case in cases if case.op in ops and case.level == LEVEL]
    names, left_out = (batch_fields(chosen), record_fields(chosen)), Counter[str]()
    blocks: dict[str, list[str]] = {}
    for case in chosen:
        try:
            blocks[case.id] = _written(case, ops, names)
        except LeftOutError as reason:
            left_out[str(reason)] += 1
    look = LANGUAGES[language]
    template = (part("language_files") / f"{language}.txt").read_text(encoding="utf-8")
    room = MOST - ADDED_SIZE - len(template) - len(_known(look, known, blocks)) - len(before or "")
    _leave_out_largest(blocks, look, room, left_out)
    if not blocks:
        msg = f"no case of {', '.join(ops)} is left to write"
        raise LanguageFileError(msg)
    written = [case for case in chosen if case.id in blocks]
    words = {
        "@TITLE@": f"Conformance of a reader and writer of Kafka's log format: {len(blocks)} cases.",
        "@ABOUT@": _about(look, ops, edition, written),
        "@BATCH_FIELDS@": " ".join(names[0]),
        "@RECORD_FIELDS@": " ".join(names[1]),
        "@KNOWN@": _known(look, known, blocks),
        "@CASES@": look.literal([line for block in blocks.values() for line in block]),
    }
    text = re.sub("|".join(words), lambda found: words[found[0]], _commented(template, words))
    return _keeping(LanguageFile(text, len(blocks), left_out), before, with_known=known is None)


def _written(case: Case, ops: Sequence[str], names: tuple[list[str], list[str]]) -> list[str]:
    lines = lines_of(case, *names)
    if case.op == "encode" and "decode" not in ops and "answer read" in lines:
        msg = "an encoder chooses their bytes, so that a decoder has to read them: add decode to --ops"
        raise LeftOutError(msg)
    return lines


def _leave_out_largest(blocks: dict[str, list[str]], look: Language, room: int, left_out: Counter[str]) -> None:
    """Remove the largest cases until the rest fits."""
    sizes = {name: len(look.literal(lines)) + 1 for name, lines in blocks.items()}
    total = sum(sizes.values())
    for name in sorted(sizes, key=lambda one: -sizes[one]):
        if total <= room:
            return
        total -= sizes[name]
        del blocks[name]
        left_out[TOO_LARGE] += 1


def _about(look: Language, ops: Sequence[str], edition: str, cases: Iterable[Case]) -> str:
    made = f"Written by `seglog conform export`, version {suite_version()}, for {', '.join(ops)}"
    digest = suite_digest(cases)
    return "\n".join(
        (
            f"{made}{f', edition {edition}' if edition else ''};",
            f"SHA-256 of the cases: {digest}.",
            "Each case has its bytes, the expected answer, the reason and the rules. `seglog explain SEG-BAT-003`",
            "prints a rule, and r/SEG-BAT-003/ is its page in the specification.",
            f"Run it: {look.run}",
        )
    )


def _commented(template: str, words: dict[str, str]) -> str:
    """Return a template whose lines about the file begin as the line of the place does."""
    found = re.search(r"^(.*)@ABOUT@$", template, re.MULTILINE)
    assert found is not None
    words["@ABOUT@"] = f"\n{found[1]}".join(words["@ABOUT@"].splitlines())
    return template


def _known(look: Language, known: KnownFailures | None, blocks: Iterable[str]) -> str:
    about = set(blocks)
    entries = known.entries.values() if known is not None else ()
    return "\n".join(
        look.known(entry.case, f"{entry.verdict}: {_quotable(entry.reason or entry.issue)}")
        for entry in entries
        if entry.case in about and entry.verdict is not Verdict.ACCIDENT  # it was refused: the case passes
    )


def _quotable(text: str) -> str:
    plain = "".join(character if " " <= character <= "~" else "?" for character in text)
    return plain.replace("\\", "/").replace('"', "").replace("'", "")


def _keeping(made: LanguageFile, before: str | None, *, with_known: bool) -> LanguageFile:
    """Return a test file with the maintainer's parts of the file before."""
    if before is None:
        return made
    old = {found[1]: found[0] for found in MARK.finditer(before)}
    if not old:
        msg = "the file exists, and has no marks of a test file: name another with -o"
        raise LanguageFileError(msg)
    kept = [name for name in old if with_known or not name.startswith("known")]
    text = MARK.sub(lambda found: old[found[1]] if found[1] in kept else found[0], made.text)
    return LanguageFile(text, made.count, made.left_out, tuple(kept))


__all__ = ["LANGUAGES", "OPS", "Language", "LanguageFile", "LanguageFileError", "language_file"]
