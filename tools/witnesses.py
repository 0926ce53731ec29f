"""The table of facts about Kafka with their owners and witnesses, `fixtures/witnesses.toml`, and what is wrong with it.

``python -m tools.witnesses`` prints what is wrong: an owner, a witness, a script or a test that does not exist, a
recorded run that no fact names, a fact without a witness that no reason excuses.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import tomllib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

REPOSITORY: Final = Path(__file__).resolve().parent.parent
TABLE: Final = "fixtures/witnesses.toml"
RECORDED: Final = "fixtures/witnesses"
HEADER: Final = ("asked", "releases", "date", "script")
LINES: Final = ".jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact about Kafka.

    Attributes:
        fact: one sentence.
        owner: module, or module and name, of all places that decide; they are one owner in several names.
        witness: paths of recorded answers and fixtures, from the repository's root.
        test: the test that holds the owner to the witness: a file, or a file and a function.
        keys: the questions in a witness with many that are about this fact, by their beginnings.
        releases: that the witness is of.
        date: when it was made.
        script: that made it.
        by: who made it if no script here did.
        varied: what the witness varies, where one client or one number of partitions would prove little.
        again: how `make kafka-next` asks a new release.
    """

    fact: str
    owner: tuple[str, ...]
    witness: tuple[str, ...]
    test: str
    keys: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    date: str = ""
    script: str = ""
    by: str = ""
    varied: str = ""
    again: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A fact that nothing but this project shows, and why."""

    fact: str
    owner: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Table:
    """The table, the most facts without a witness, and why only the source shows since when brokers keep a rule."""

    facts: list[Fact]
    missing: list[Missing]
    most_missing: int
    since_by_source: dict[str, str]


def read(root: Path = REPOSITORY) -> Table:
    """Return the table; facts whose witness is a recorded run have the releases, date and script of its header."""
    stored = tomllib.loads((root / TABLE).read_text(encoding="utf-8"))
    facts = [Fact(**_frozen(each)) for each in stored["fact"]]
    missing = [Missing(**_frozen(each)) for each in stored.get("missing", ())]
    reasons = {rule: each["reason"] for each in stored.get("since_by_source", ()) for rule in each["rules"]}
    return Table([_with_header(each, root) for each in facts], missing, stored["most_missing"], reasons)


def _frozen(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _with_header(fact: Fact, root: Path) -> Fact:
    headers = [header_of(root / each) for each in fact.witness if is_recorded(each) and (root / each).is_file()]
    if not headers:
        return fact
    first = headers[0]
    return replace(fact, releases=tuple(first["releases"]), date=first["date"], script=first["script"])


def is_recorded(witness: str) -> bool:
    """Return whether a witness is a recorded run that has a header."""
    return witness.startswith(f"{RECORDED}/")


def header_of(path: Path) -> dict[str, Any]:
    """Return what a recorded run says of itself; without lines, that is the object as a whole."""
    data = path.read_bytes()
    if path.name.endswith(LINES):
        data = gzip.decompress(data).splitlines()[0]
    header: dict[str, Any] = json.loads(data)
    return header


def record(script: str, name: str, asked: str, releases: Iterable[str], **content: Any) -> None:  # noqa: ANN401 - JSON
    """Write a recorded run of today.

    Args:
        script: path of the program that asked.
        name: of the file, without its suffix.
        asked: class and method, or who else was asked.
        releases: of Kafka.
        content: what was said, by the name of its field.
    """
    today = datetime.now(UTC).date().isoformat()
    values = (asked, [*releases], today, Path(script).resolve().relative_to(REPOSITORY).as_posix())
    written = dict(zip(HEADER, values, strict=True)) | content
    path = REPOSITORY / RECORDED / f"{name}.json"
    path.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def complaints(root: Path = REPOSITORY) -> Iterator[str]:
    """Yield what is wrong with the table of a tree."""
    table = read(root)
    for fact in table.facts:
        yield from (f"{TABLE}: {about}: {fact.fact}" for about in _wrong_with(fact, root))
    for each in table.missing:
        yield from (f"{TABLE}: {about}: {each.fact}" for about in _unresolved(each.owner))
        if not each.reason.strip():
            yield f"{TABLE}: no witness and no reason: {each.fact}"
    yield from _wrong_count(table)
    yield from _unnamed(table, root)


def _wrong_with(fact: Fact, root: Path) -> Iterator[str]:
    yield from _unresolved(fact.owner)
    if not fact.witness:
        yield "no witness"
    for each in fact.witness:
        path = root / each
        if not path.exists():
            yield f"no witness {each}"
        elif is_recorded(each):
            header = header_of(path)
            yield from (f"{each} does not say {name}" for name in HEADER if not header.get(name))
    yield from _no_origin(fact, root)
    path_of_test, _, function = fact.test.partition("::")
    if not (root / path_of_test).is_file():
        yield f"no test {path_of_test}"
    elif function and f"def {function}(" not in (root / path_of_test).read_text(encoding="utf-8"):
        yield f"no test {fact.test}"


def _no_origin(fact: Fact, root: Path) -> Iterator[str]:
    if not (fact.releases and fact.date):
        yield "no releases or no date"
    if fact.script and not (root / fact.script).is_file():
        yield f"no script {fact.script}"
    if not (fact.script or fact.by):
        yield "neither a script nor who made it"


def _unresolved(owners: Sequence[str]) -> Iterator[str]:
    for owner in owners:
        module, _, name = owner.partition(":")
        try:
            found: object = importlib.import_module(module)
            for part in filter(None, name.split(".")):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            yield f"no owner {owner} ({error})"
    if not owners:
        yield "no owner"


def _wrong_count(table: Table) -> Iterator[str]:
    count = len(table.missing)
    if count > table.most_missing:
        yield f"{TABLE}: {count} facts without a witness, and at most {table.most_missing} are allowed: record one"
    elif count < table.most_missing:
        yield f"{TABLE}: lower most_missing to {count}: the list only shrinks"


def _unnamed(table: Table, root: Path) -> Iterator[str]:
    named = {each for fact in table.facts for each in fact.witness}
    for path in sorted((root / RECORDED).glob("*")):
        name = path.relative_to(root).as_posix()
        if name not in named:
            yield f"{name}: no fact in {TABLE} names it"


def main() -> int:
    """Print every complaint."""
    found = list(complaints())
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
