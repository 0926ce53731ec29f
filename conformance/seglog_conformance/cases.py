"""Cases: a request, the expected answer, and the reason."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.parts import part
from seglog_conformance.protocol import OPS, Json, schema_errors
from seglog_conformance.recipes import hex_size, is_recipe, made

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE: Final = Path(__file__).resolve().parent
FIXTURE_DIRECTORIES: Final = (PACKAGE / "_fixtures", PACKAGE.parent / "fixtures", PACKAGE.parent.parent / "fixtures")


SCALE: Final = "scale"


class CaseError(Exception):
    """A case file does not fit its schema."""


class MissingFixtureError(CaseError):
    """A case needs a file that is missing."""


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        id: a slug with the family's name before the slash; never used again for other bytes.
        family: number of its file; `family_name` is the file's name.
        op: operation that the testee is asked for.
        requirements: ids of the requirements that it is about.
        level: ``must`` (interoperability, loss of data), ``should`` (hostile bytes), ``may`` (quality).
        result: ``valid``, ``invalid``, ``acceptable`` or ``undefined``.
        needs: features that it requires of a testee.
        flags: kinds of reasons for the case; explained in its file.
        why: reason for the case, in one sentence.
        since: Kafka release from which the case holds; empty for all.
        older: what brokers of older releases did instead, oldest first; see `releases.as_of`.
        source: basis of the expected answer.
        stored_request: request as in the file; `request` has fixtures filled in.
        stored_expect: expected answer as in the file.
        smoke: whether it belongs to the smoke test.
        also: what an answer need not have, beside the expected answer; if it has it, it has to be this.
        untold: patterns of the paths of an answer about which the case says nothing; see `values.differences`.
    """

    id: str
    family: int
    family_name: str
    op: str
    requirements: tuple[str, ...]
    level: str
    result: str
    why: str
    stored_request: Json
    stored_expect: Json
    needs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    since: str = ""
    older: tuple[Json, ...] = ()
    source: str = ""
    smoke: bool = False
    also: Json = field(default_factory=dict)
    untold: tuple[str, ...] = ()
    families_flags: Json = field(default_factory=dict, repr=False, compare=False)

    @property
    def request(self) -> Json:
        """Return the request to the adapter, without ``seq`` and ``op``; the bytes of a recipe are made each time.

        Raises:
            MissingFixtureError: a fixture is missing, or has another digest than the case states.
        """
        return _filled(self.stored_request) if self.is_made else self._request

    @cached_property
    def _request(self) -> Json:
        filled: Json = _filled(self.stored_request)
        return filled

    @cached_property
    def is_made(self) -> bool:
        """Whether a part of the request is made by a recipe, because it is too large to store."""
        return _has_recipe(self.stored_request)

    @property
    def is_at_scale(self) -> bool:
        """Whether it belongs to the family whose cases take minutes."""
        return self.family_name == SCALE

    @property
    def is_summed_up(self) -> bool:
        """Whether counts and digests are expected instead of records, because there are too many records."""
        return "summary" in self.stored_expect

    @cached_property
    def expect(self) -> Json:
        """The expected answer.

        Raises:
            MissingFixtureError: a fixture is missing, or has another digest than the case states.
        """
        filled: Json = _filled(self.stored_expect)
        return filled

    @cached_property
    def digest(self) -> str:
        """Digest of everything in the case that a verdict can depend on."""
        parts: list[Any] = [self.op, self.level, self.result, self.needs, self.stored_request, self.stored_expect]
        parts += [*self.older, *(part for part in (self.also, self.untold) if part)]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def input_size(self) -> int:
        """Approximate number of bytes in the request."""
        return hex_size(self.request)

    @cached_property
    def answer_size(self) -> int:
        """Approximate number of bytes in the largest expected answer; a digest counts as the bytes that it replaces."""
        return hex_size(self.expect)

    @cached_property
    def answer_text_size(self) -> int:
        """Number of characters of the expected answers in JSON."""
        return len(json.dumps(self.expect, separators=(",", ":")))

    def request_with(self, seq: int, *, is_named: bool = False) -> Json:
        """Return the request line of the case.

        Args:
            seq: number of the request.
            is_named: whether the line has the id of the case, by which a program could look up the answer.
        """
        named = {"case": self.id} if is_named else {}
        return {"seq": seq, "op": self.op, **named, **self.request}


def _filled(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match value:
        case {"fixture": _, "sha256": _, **others} if not others:
            return _fixture(value)
        case dict() if is_recipe(value):
            return made(value)
        case dict():
            return {key: _filled(item) for key, item in value.items()}
        case list():
            return [_filled(item) for item in value]
        case _:
            return value


def _has_recipe(value: object) -> bool:
    if isinstance(value, dict):
        return is_recipe(value) or any(map(_has_recipe, value.values()))
    return isinstance(value, list) and any(map(_has_recipe, value))


def _fixture(value: Json) -> str:
    name = str(value["fixture"])
    for directory in FIXTURE_DIRECTORIES:
        path = directory / name
        if path.is_file() and path.resolve().is_relative_to(directory):
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() != value["sha256"]:
                msg = f"fixture {name} has another SHA-256 than the case states"
                raise MissingFixtureError(msg)
            return data.hex()
    msg = f"fixture {name} is missing"
    raise MissingFixtureError(msg)


def case_directory() -> Path:
    """Return the directory of the suite's cases."""
    return part("cases")


def case_files(directory: Path | None = None) -> list[Path]:
    """Return the files of cases, in the order of their families."""
    return sorted((directory or case_directory()).glob("*.json"))


def scale_directory() -> Path:
    """Return the directory of the cases that take minutes; a run asks them with `--scale`."""
    return case_directory() / SCALE


def every_case() -> list[Case]:
    """Return all cases of the suite, also those that take minutes."""
    return load_cases([*case_files(), *case_files(scale_directory())])


def load_cases(paths: Path | Iterable[Path] | None = None, *, checked: bool = False) -> list[Case]:
    """Read cases.

    Args:
        paths: files, or a directory with them; the suite's own by default.
        checked: whether to check the files against their schema, which takes a second for every few hundred cases.

    Raises:
        CaseError: a file does not hold cases.
    """
    files = case_files(paths) if paths is None or (isinstance(paths, Path) and paths.is_dir()) else _listed(paths)
    cases = [case for path in files for case in _cases_of(path, checked=checked)]
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            msg = f"case {case.id} is defined twice"
            raise CaseError(msg)
        seen.add(case.id)
    return cases


def _listed(paths: Path | Iterable[Path]) -> list[Path]:
    return [paths] if isinstance(paths, Path) else list(paths)


def _cases_of(path: Path, *, checked: bool) -> Iterator[Case]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        msg = f"{path}: {error}"
        raise CaseError(msg) from None
    if checked:
        errors = schema_errors(content, "case-file")
        if errors:
            msg = f"{path}: {'; '.join(errors[:5])}"
            raise CaseError(msg)
    try:
        for stored in content["cases"]:
            yield _case(content, stored)
    except (KeyError, TypeError) as error:
        msg = f"{path}: {error!r}: check the file against its schema: python -m seglog_conformance.check {path}"
        raise CaseError(msg) from None


REQUIRED: Final = frozenset({"id", "op", "requirements", "level", "result", "why", "request", "expect"})
KEYS: Final = REQUIRED | {"needs", "flags", "since", "older", "source", "smoke", "supersedes", "also", "untold"}


def _case(content: Json, stored: Json) -> Case:
    unknown = set(stored) - KEYS
    if unknown:
        msg = f"case {stored.get('id')} has unknown fields: {', '.join(sorted(unknown))}"
        raise CaseError(msg)
    return Case(
        id=stored["id"],
        family=content["family"],
        family_name=content["name"],
        op=stored["op"],
        requirements=tuple(stored["requirements"]),
        level=stored["level"],
        result=stored["result"],
        why=stored["why"],
        stored_request=stored["request"],
        stored_expect=stored["expect"],
        needs=tuple(stored.get("needs", ())),
        flags=tuple(stored.get("flags", ())),
        since=stored.get("since", ""),
        older=tuple(stored.get("older", ())),
        source=stored.get("source", ""),
        smoke=stored.get("smoke", False),
        also=stored.get("also", {}),
        untold=tuple(stored.get("untold", ())),
        families_flags=content.get("flags", {}),
    )


def case_problems(case: Case) -> list[str]:
    """Return the problems of a case that the schema of its file does not exclude; empty for a valid case."""
    problems = [f"op {case.op} is not known"] if case.op not in OPS else _body_problems(case)
    problems += [f"flag {flag} is not explained in its file" for flag in case.flags if flag not in case.families_flags]
    return problems


def _body_problems(case: Case) -> list[str]:
    try:
        request, expect = case.request, case.expect
    except MissingFixtureError as error:
        return [str(error)]
    problems = [f"request/{text}" for text in schema_errors(request, "protocol", f"body-{case.op}")]
    if case.is_summed_up:
        return problems
    match case.result:
        case "valid":
            problems += _result_problems(case.op, expect)
        case "invalid":
            problems += [] if "reject" in expect else ["expect has no reject"]
            problems += _result_problems(case.op, expect)
        case "acceptable":
            allowed = expect.get("allowed", [])
            problems += [] if len(allowed) > 1 else ["expect/allowed has fewer than two branches"]
            problems += [] if case.flags else ["an acceptable case has a flag that says why"]
            for branch in allowed:
                problems += [] if isinstance(branch.get("branch"), str) else ["a branch has no name"]
                answer = {key: value for key, value in branch.items() if key != "branch"}
                problems += _result_problems(case.op, answer)
        case _:
            problems += [] if not expect else ["an undefined case expects nothing"]
    return problems


def _result_problems(op: str, expect: Json) -> list[str]:
    """Return the schema violations of an expected answer; a refusal may include batches that were delivered before."""
    if "reject" not in expect:
        return [f"expect/{text}" for text in schema_errors(expect, "protocol", f"result-{op}")]
    answer = {"seq": 0, "ok": False, **expect}
    return [f"expect/{text}" for text in schema_errors(answer, "protocol", f"answer-{op}")]


def selected(cases: Iterable[Case], patterns: Iterable[str]) -> list[Case]:
    """Return the cases whose id, family number or family name matches one of some patterns; all without a pattern.

    Args:
        cases: to choose from.
        patterns: an id, a beginning of ids that ends in a slash, a family number, or a text with ``*``.
    """
    wanted = [_pattern(text) for text in patterns]
    if not wanted:
        return list(cases)
    return [case for case in cases if any(pattern.fullmatch(name) for pattern in wanted for name in _names(case))]


def _names(case: Case) -> tuple[str, ...]:
    return case.id, str(case.family), case.family_name, case.id.partition("/")[0] + "/"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")))
