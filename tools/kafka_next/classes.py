"""Comparison of the classes of two releases: names, signatures, constants, and methods with changed code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tools.kafka_next.disassembly import CONSTRUCTOR, disassemble, parse
from tools.kafka_next.jars import class_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tools.kafka_next.disassembly import Class

PACKAGES: Final = (
    *("kafka.log.", "kafka.raft."),
    *(
        f"org.apache.kafka.{name}."
        for name in (
            *("common.compress", "common.config", "common.header", "common.record", "common.utils"),
            *("coordinator.common.runtime", "coordinator.share", "coordinator.transaction"),
            *("metadata.bootstrap", "metadata.properties", "metadata.storage", "raft", "snapshot"),
            *("server.common", "server.log", "server.record", "server.share", "server.storage", "storage"),
        )
    ),
)
"""Packages with the code that decides which bytes a broker writes, and how it reads them. Signatures and code are only
compared in these packages, names everywhere."""
APART: Final = re.compile(
    r"^org\.apache\.kafka\.(clients|common\.(message|requests)|connect)\.|\.generated\.|"
    r"(Data|JsonConverter|Request|Response)$"
)
"""Clients, and classes that are generated from definitions of messages: the definitions are compared instead."""
NUMBERED: Final = re.compile(r"\$\d+(\$|$)")
TOKEN: Final = re.compile(r"(?:org[./]apache[./])?kafka[./][\w$./]+")
SEPARATOR: Final = re.compile(r"[.$]")
Json = dict[str, Any]


def compare_classes(base: tuple[Path, str], release: tuple[Path, str]) -> Json:
    """Return all differences between the classes of two releases.

    Args:
        base: jars and version of the older release.
        release: jars and version of the newer release.
    """
    old, new = class_names(*base), class_names(*release)
    moved = moves(old, new)
    ours = {name for name in old if is_storage(name) or is_storage(moved.get(name, ""))}
    theirs = {*filter(is_storage, new), *(moved[name] for name in ours & moved.keys())}
    before = folded(parse(disassemble(base[0], ours), renaming(moved)))
    after = folded(parse(disassemble(release[0], theirs)))
    return names(old, new, moved) | {"signatures": signatures(before, after), "code": code(before, after)}


def is_storage(name: str) -> bool:
    """Return whether signatures and code of a class are compared."""
    return name.startswith(PACKAGES) and ".generated." not in name


def folded(found: Mapping[str, Class]) -> dict[str, Class]:
    """Return the named classes, each with the code of the anonymous classes inside it."""
    named = {name: each for name, each in found.items() if not NUMBERED.search(name)}
    for name, each in found.items():
        outer = named.get(NUMBERED.split(name)[0])
        if name not in named and outer is not None:
            for method in each.code.keys() - {CONSTRUCTOR}:
                outer.code[method] = sorted([*outer.code.get(method, ()), *each.code[method]])
    return named


def moves(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return the classes that moved: removed from one package, and new in exactly one other, with the same name."""
    gone, came = _by_simple_name(old.keys() - new.keys()), _by_simple_name(new.keys() - old.keys())
    return {
        names[0]: came[simple][0]
        for simple, names in sorted(gone.items())
        if len(names) == 1 and len(came.get(simple, ())) == 1
    }


def _by_simple_name(found: set[str]) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = {}
    for name in sorted(found):
        if not NUMBERED.search(name):
            by_name.setdefault(name.rpartition(".")[2], []).append(name)
    return by_name


def renaming(moved: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces old names of moved classes in a line, as written in declarations and in code."""
    outer = {name: target for name, target in moved.items() if "$" not in name}
    known = outer | {name.replace(".", "/"): target.replace(".", "/") for name, target in outer.items()}

    def renamed(match: re.Match[str]) -> str:
        token = match[0]
        for end in (*(each.start() for each in SEPARATOR.finditer(token)), len(token)):
            if (target := known.get(token[:end])) is not None:
                return target + token[end:]
        return token

    return lambda line: TOKEN.sub(renamed, line)


def names(old: Mapping[str, str], new: Mapping[str, str], moved: Mapping[str, str]) -> Json:
    """Return the classes that were added, removed, or moved to another package or jar."""
    reported = {
        "new": sorted(_reported(new.keys() - old.keys() - set(moved.values()))),
        "gone": sorted(_reported(old.keys() - new.keys() - moved.keys())),
        "moved": {name: target for name, target in moved.items() if _reported({name}) and "$" not in name},
        "jar": {
            name: [old[name], new[name]]
            for name in sorted(_reported(old.keys() & new.keys()))
            if old[name] != new[name] and "$" not in name
        },
    }
    return {name: each for name, each in reported.items() if each}


def _reported(found: set[str]) -> set[str]:
    return {name for name in found if not NUMBERED.search(name) and not APART.search(name)}


def signatures(old: Mapping[str, Class], new: Mapping[str, Class]) -> Json:
    """Return added and removed declarations by class, for classes that are in both releases."""
    found: Json = {}
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name], new[name]
        one: Json = {"new": sorted(after.members - before.members), "gone": sorted(before.members - after.members)}
        if before.header != after.header:
            one["header"] = [before.header, after.header]
        if kept := {part: each for part, each in one.items() if each}:
            found[name] = {part: _short(each, name) for part, each in kept.items()}
    return found


def _short(declarations: list[str], name: str) -> list[str]:
    """Return declarations with types by their simple names."""
    return [
        re.sub(r"\b(?:[a-z]\w*\.)+(?=[A-Z])", "", each.replace(name, name.rpartition(".")[2])) for each in declarations
    ]


def code(old: Mapping[str, Class], new: Mapping[str, Class]) -> dict[str, list[str]]:
    """Return the methods with changed code, by class; new and removed methods are among the signatures."""
    found = {}
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name].code, new[name].code
        changed = sorted(method for method in before.keys() & after.keys() if before[method] != after[method])
        if changed:
            found[name] = changed
    return found
