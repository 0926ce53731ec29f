"""Classes as `javap` prints them: members, and code without the numbers that a compiler assigns each time."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

AT_ONCE: Final = 500
"""Classes for one run of `javap`."""
INSTRUCTION: Final = re.compile(r"^ +(\d+): ([a-z]\w*)(?: +([^/]*?))?(?: +// (.*))?$")
CASE: Final = re.compile(r"^ +(-?\d+|default): (\d+)$")
HANDLER: Final = re.compile(r"^ +(\d+) +(\d+) +(\d+) +(.*)$")
JUMP: Final = re.compile(r"^(if|goto|jsr)")
WIDE: Final = {"ldc_w": "ldc", "goto_w": "goto"}
LAMBDA: Final = re.compile(r"\b(lambda\$|\$anonfun\$)(\w+?)\$(?:\w+\$)?\d+")
BOOTSTRAP: Final = re.compile(r"InvokeDynamic #\d+:")
NAME: Final = re.compile(r"([\w$]+)\(")
SYNTHETIC: Final = re.compile(
    r"[\w$]+\$(?:\w*\$)?(?:\d+|adapted|lzycompute|\d+\$adapted)\(|\$\$|_\$eq\(|\$values\(|bitmap\$|\$VALUES"
)
"""Members that the compilers of Java and Scala add."""
TEXT: Final = re.compile(r'(?<= = )"(?:[^"\\]|\\.)* (?:[^"\\]|\\.)* (?:[^"\\]|\\.)*"$')
"""Matches a constant with several words: a text, which is not copied into reports."""
CONSTRUCTOR: Final = "constructor"
STATIC: Final = "initializer"


@dataclass(slots=True)
class Class:
    """A class.

    Attributes:
        header: modifiers, name, extended class and implemented interfaces.
        members: declarations of fields and methods from the source, private ones included.
        code: digests of the code of each declared method, and of the lambdas inside it, in order.
    """

    header: str
    members: set[str] = field(default_factory=set)
    code: dict[str, list[str]] = field(default_factory=dict)


def disassemble(jars: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield what `javap` prints about some classes, line by line.

    Args:
        jars: a directory with all their jars.
        names: names with dots.
    """
    path = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
    wanted = sorted(names)
    for start in range(0, len(wanted), AT_ONCE):
        command = ["javap", "-p", "-c", "-constants", "-cp", path, *wanted[start : start + AT_ONCE]]
        yield from child_processes.run(
            command, directory=child_processes.NOWHERE, check=True, capture_output=True, text=True
        ).stdout.splitlines()


def parse(lines: Iterable[str], rename: Callable[[str], str] = str) -> dict[str, Class]:
    """Return classes by name.

    Args:
        lines: output of `javap`.
        rename: replaces the names of moved classes in a line by those in the other release.
    """
    found: dict[str, Class] = {}
    current: Class | None = None
    member, body = "", []
    for raw in lines:
        line = rename(raw)
        if line.startswith(("  ", "}")) and current is not None:
            if line == "}" or (line[2] != " " and line.endswith(";")):
                _keep(current, member, body)
                member, body = line.strip().rstrip(";"), []
            else:
                body.append(line)
        elif line.endswith("{"):
            current = Class(line.removesuffix(" {"))
            found[name_of(current.header)] = current
            member = ""
    return found


def name_of(header: str) -> str:
    """Return the class that a header declares."""
    words = re.sub(r"<[^<>]*(<[^<>]*(<[^<>]*>[^<>]*)*>[^<>]*)*>", "", header).split()
    kind = next(index for index, word in enumerate(words) if word in {"class", "interface"})
    return words[kind + 1]


def _keep(current: Class, member: str, body: Sequence[str]) -> None:
    """Add a member to its class; the code of a lambda is added to the method around it."""
    if not member or member == "}":
        return
    inside = LAMBDA.search(member)
    owner = inside[2] if inside else method_name(member)
    if not inside and not SYNTHETIC.search(member):
        current.members.add(without_text(member))
    if body:
        current.code.setdefault(owner, []).append(digest(body))
        current.code[owner].sort()


def without_text(member: str) -> str:
    """Return a declaration with a digest instead of a text, so a report shows changes without quoting the text."""
    return TEXT.sub(lambda match: f"a text, {hashlib.sha256(match[0].encode()).hexdigest()[:8]}", member)


def method_name(member: str) -> str:
    """Return the name of a declared method; for a constructor or a class initializer, a name in words."""
    found = NAME.search(member)
    if not found:
        return STATIC
    return CONSTRUCTOR if member[: found.start()].endswith(".") else found[1]


def digest(body: Sequence[str]) -> str:
    """Return a digest of a method's code, which does not depend on the numbers of constants and instructions."""
    return hashlib.sha256("\n".join(normal(body)).encode()).hexdigest()[:16]


def normal(body: Sequence[str]) -> Iterator[str]:
    """Yield code with positions counted in instructions, and with operands replaced by what they refer to."""
    numbers = {match[1]: str(index) for index, match in enumerate(filter(None, map(INSTRUCTION.match, body)))}
    for line in body:
        if match := INSTRUCTION.match(line):
            yield _instruction(match[2], match[3] or "", match[4], numbers)
        elif match := CASE.match(line):
            yield f"{match[1]}: {numbers.get(match[2], match[2])}"
        elif match := HANDLER.match(line):
            yield " ".join([*(numbers.get(each, "end") for each in match.groups()[:3]), match[4]])


def _instruction(name: str, operand: str, refers_to: str | None, numbers: dict[str, str]) -> str:
    name = WIDE.get(name, name)
    if refers_to is not None:
        extra = operand.partition(",")[2].strip()
        target = LAMBDA.sub(r"\1\2", BOOTSTRAP.sub("", refers_to))
        return f"{name} {target} {extra}"
    return f"{name} {numbers.get(operand, operand) if JUMP.match(name) else operand}"
