"""Settings and feature levels of a release, from its classes by reflection."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from tools.kafka_next.jars import own

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.kafka_next.compare import Facts

PROGRAM: Final = Path(__file__).with_name("Introspect.java")
Settings = dict[str, dict[str, "Facts"]]
"""Type, default and allowed values of settings, by name and by the class that declares them."""


@cache
def ask(jars: Path, release: str) -> tuple[str, ...]:
    """Return the lines of ``Introspect.java`` about a release; the report and the witnesses both ask."""
    paths = [str(jar) for jar in own(jars, release)]
    command = ["java", "-cp", str(jars / "*"), str(PROGRAM), *paths]
    done = child_processes.run(command, directory=child_processes.NOWHERE, check=True, capture_output=True, text=True)
    return tuple(done.stdout.splitlines())


def simple_name(name: str) -> str:
    """Return the name of a class without its package."""
    return name.rpartition(".")[2]


def read(lines: Iterable[str]) -> tuple[Settings, dict[str, Facts]]:
    """Return settings, and features with the number of each level and whether it is in production."""
    settings: Settings = {}
    levels: dict[str, dict[str, int]] = {}
    latest: dict[str, int] = {}
    for line in lines:
        kind, *fields = line.split("\t")
        if kind == "setting":
            holder, name, type_, default, allowed = fields
            if not holder.endswith("$"):  # a Scala companion object repeats its class
                settings.setdefault(name, {})[holder] = {"type": type_, "default": default, "allowed": allowed}
        elif kind == "level":
            levels.setdefault(fields[0], {})[fields[1]] = int(fields[2])
        elif kind == "production":
            latest[fields[0]] = int(fields[1])
    return settings, {
        feature: {level: _reported(number, latest.get(feature)) for level, number in found.items()}
        for feature, found in levels.items()
    }


def _reported(number: int, latest: int | None) -> str:
    if latest is None:
        return str(number)
    return f"{number}, {'in production' if number <= latest else 'in development'}"
