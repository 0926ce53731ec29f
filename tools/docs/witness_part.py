"""The table of facts about Kafka in the page on how the code is built, from `fixtures/witnesses.toml`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from tools import witnesses
from tools.message_definitions import order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.witnesses import Fact

PAGE: Final = "docs/explanation/architecture.md"
BEGIN: Final = "<!-- Facts and witnesses: made by make docs from fixtures/witnesses.toml. -->"
END: Final = "<!-- End of facts and witnesses. -->"
SHORT: Final = 3
"""Of more releases, only the first and the last are shown."""


def pages() -> dict[str, str]:
    """Return the page with its table, by path; the rest of the page is written by hand."""
    page = (witnesses.REPOSITORY / PAGE).read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    return {PAGE: before + "\n".join([BEGIN, *lines(), "", END]) + rest.partition(END)[2]}


def lines() -> Iterator[str]:
    """Yield the facts by package, then those without a witness."""
    table = witnesses.read()
    facts = sorted(table.facts, key=_package)
    for package, found in groupby(facts, key=_package):
        yield from ("", f"**`{package}`**", "", "| fact | decided in | witness | releases |", "|---|---|---|---|")
        yield from map(_row, found)
    yield from ("", f"Without a witness, each for a reason ({len(table.missing)}):", "")
    yield from (f"- {each.fact} `{_module(each.owner[0])}`. {each.reason}" for each in table.missing)


def _row(fact: Fact) -> str:
    owners = ", ".join(f"`{name}`" for name in dict.fromkeys(_module(owner) for owner in fact.owner))
    shown = ", ".join(f"`{path.removeprefix('fixtures/')}`" for path in fact.witness)
    releases = sorted(fact.releases, key=_in_order)
    some = ", ".join(releases) if len(releases) <= SHORT else f"{releases[0]} to {releases[-1]} ({len(releases)})"
    return f"| {fact.fact} | {owners} | {shown} | {some} |"


def _in_order(release: str) -> tuple[int, ...]:
    return order(release) if release.replace(".", "").isdecimal() else ()


def _module(owner: str) -> str:
    """Return the module of an owner, below the package."""
    return owner.partition(":")[0].removeprefix("seglog_format.")


def _package(fact: Fact) -> str:
    return _module(fact.owner[0]).partition(".")[0]
