"""All mutants: those that operators generate, and those made by hand."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from proofs.mutants.enforcement import REPOSITORY, Fault, disabled, faults, sites
from proofs.mutants.operators import Mutation, mutations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_conformance.cases import Case

    from proofs.mutants.worker import Reach

PACKAGES: Final = ("schema", "codec", "log", "storage", "state", "recovery", "cleaning", "writing", "generation")
LAYERS: Final = tuple(f"seglog_format/{name}/" for name in PACKAGES)
MEANING: Final = (
    "what records of Kafka's own topics mean is no part of the log format; that they may mean nothing is asked"
)
OUT_OF_SIGHT: Final = {
    "seglog_format/schema/coordinator_records.py": MEANING,
    "seglog_format/schema/metadata_records.py": MEANING,
    "seglog_format/codec/coordinator_records.py": MEANING,
    "seglog_format/log/segment.py": "how many files are held open at once",
    "seglog_format/log/directory_lock.py": "whether another process uses the directory; those of requests are its own",
    "seglog_format/state/root_files.py": "the root files of a log directory; those of requests are their own",
    "seglog_format/schema/tracing.py": "finds what a refusal says of its place, which is for people",
    "seglog_format/inspection/files.py": "what a person pastes into `seglog inspect`",
}
"""Loaded modules that no operator changes, since no answer depends on them or is meant to, each with its reason."""

EQUIVALENT: Final = REPOSITORY / "conformance" / "equivalent_mutants.toml"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change to the package, and where it is.

    Attributes:
        kind: ``generated``, ``fault`` (of tests/faults) or ``rule`` (without a requirement's enforcing statements).
        name: the operator, or the requirement.
        scope_path: file and scope.
        line: its first line.
        source: the unchanged line, without indentation.
        change: text before and after.
        texts: changed sources by file.
        near: cases that run the changed lines, likely killers.
        around: further cases that run the function around them.
        is_inside: only functions change, and none that runs while modules load.
        unseen: why no case can flag it; empty where one has to.
    """

    kind: str
    name: str
    scope_path: str
    line: int
    source: str
    change: tuple[str, str]
    texts: Mapping[str, str]
    near: frozenset[int]
    around: frozenset[int]
    is_inside: bool
    unseen: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Return a key that does not change when lines move."""
        return self.scope_path, self.source, *self.change


class Candidates:
    """Mutants of the modules that the suite's reference loads.

    Attributes:
        unreached: places in functions that no case runs, with the number of mutants in each.
    """

    def __init__(self, files: Iterable[str], cases: Sequence[Case], reach: Reach) -> None:
        self.files = [file for file in files if file.startswith("seglog_format/")]
        self.cases = cases
        self.everything = frozenset(range(len(cases)))
        self.reach = reach
        self.unreached: Counter[str] = Counter()
        self.texts = {file: (REPOSITORY / file).read_text(encoding="utf-8") for file in self.files}
        self.trees = {file: ast.parse(text) for file, text in self.texts.items()}
        self.functions = {file: _functions(text) for file, text in self.texts.items()}
        self.uses = self._uses()
        self.by_requirement: dict[str, set[int]] = defaultdict(set)
        for number, case in enumerate(cases):
            for requirement in case.requirements:
                self.by_requirement[requirement].add(number)

    def generated(self) -> list[tuple[Mutation, Mutant]]:
        """Return the mutants that the operators make of the four layers, in functions that a case runs."""
        found = []
        for file in self.files:
            if file.startswith(LAYERS) and file not in OUT_OF_SIGHT:
                found += [(one, self._generated(one)) for one in mutations(self.texts[file], file)]
        kept = []
        for one, mutant in found:
            if mutant.near or mutant.around:
                kept.append((one, mutant))
            else:
                self.unreached[mutant.scope_path] += 1
        return kept

    def _generated(self, one: Mutation) -> Mutant:
        near, around = self._cases(one.file, one.line, one.line + one.before.count("\n"))
        source = self.texts[one.file].splitlines()[one.line - 1].strip()
        change = (one.before, one.after)
        return Mutant(
            "generated",
            one.operator,
            one.scope_path,
            one.line,
            source,
            change,
            {},
            near,
            around,
            self._is_inside(one.file, one.line),
        )

    def changed(self, one: Mutation, mutant: Mutant) -> Mutant:
        """Return the mutant with its changed source text."""
        return replace(mutant, texts={one.file: one.apply(self.texts[one.file])})

    def _cases(self, file: str, first: int, last: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the cases that run some lines, and those that run the function around; all cases for declarations."""
        function = self._around(file, first)
        if function is None:
            using = self._using(self._declared(file, first))
            return using & self.reach.of(file, 1, len(self.texts[file])), using
        start, end, body = function
        near = self.reach.of(file, first, last) if first >= body else frozenset()
        is_kept = "cache" in "\n".join(self.texts[file].splitlines()[max(start - 3, 0) : start])
        around = self.everything if is_kept else self.reach.of(file, body, end)
        return near, around

    def _declared(self, file: str, line: int) -> str:
        """Return the name that the statement around a line assigns to; empty if it is no simple assignment."""
        found = [one for one in self.trees[file].body if one.lineno <= line <= (one.end_lineno or 0)]
        target = getattr(found[0], "targets", [getattr(found[0], "target", None)])[0] if found else None
        return target.id if isinstance(target, ast.Name) else ""

    def _using(self, name: str) -> frozenset[int]:
        """Return the cases that run a function that uses a name, or one around it; all cases if that is uncertain."""
        waiting, seen, found = [name], {name}, set[int]()
        while waiting:
            for file, function, declared in self.uses[waiting.pop()] if waiting[-1] else [("", None, "")]:
                if function is not None:
                    found |= self.reach.of(file, function[2], function[1])
                elif not declared:
                    return self.everything
                elif declared not in seen:
                    seen.add(declared)
                    waiting.append(declared)
        return frozenset(found)

    def _uses(self) -> dict[str, list[tuple[str, tuple[int, int, int] | None, str]]]:
        """Return the functions that read each name, and the other names whose declarations read it."""
        found = defaultdict(list)
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                name = getattr(node, "id", getattr(node, "attr", ""))
                if name and isinstance(getattr(node, "ctx", None), ast.Load):
                    function = self._around(file, node.lineno)
                    found[name].append((file, function, "" if function else self._declared(file, node.lineno)))
                elif isinstance(node, ast.alias) and node.asname:
                    found[node.name].append((file, None, ""))
        return found

    def _around(self, file: str, line: int) -> tuple[int, int, int] | None:
        """Return the innermost function around a line."""
        found = [one for one in self.functions[file] if one[0] <= line <= one[1]]
        return min(found, key=lambda one: one[1] - one[0], default=None)

    def _is_inside(self, file: str, line: int) -> bool:
        """Return whether a line belongs to the body of a function that does not run while modules load."""
        function = self._around(file, line)
        if function is None or line < function[2]:
            return False
        return self.reach.loading.get(file, frozenset()).isdisjoint(range(function[2], function[1] + 1))

    def by_hand(self) -> tuple[list[Mutant], list[Mutant]]:
        """Return faults of tests/faults and rules without their statements: those that cases can flag, and the others.

        The suite can flag one if a case names its requirement or runs the changed lines, unless the list of faults
        gives a reason why no case can.
        """
        found = [*self._faults(), *self._rules()]
        reached = [one for one in found if one.near or (one.around and one.name in self.by_requirement)]
        seen = [one for one in reached if not one.unseen]
        return seen, [one for one in found if one not in seen]

    def _faults(self) -> Iterator[Mutant]:
        for fault in faults():
            text = (REPOSITORY / fault.file).read_text(encoding="utf-8")
            first = text[: text.index(fault.find)].count("\n") + 1
            change = (fault.find, fault.replace)
            yield self._by_hand("fault", fault, first, change, {fault.file: fault.apply(text)})

    def _by_hand(self, kind: str, fault: Fault, first: int, change: tuple[str, str], texts: dict[str, str]) -> Mutant:
        near, around, lines = frozenset[int](), frozenset[int](), list[int]()
        if fault.file in self.texts:
            lines = [first + number for number, line in enumerate(fault.find.split("\n")) if line.strip()]
            parts = [self._cases(fault.file, line, line) for line in lines]
            near = frozenset().union(*(part[0] for part in parts))
            around = frozenset().union(*(part[1] for part in parts))
            near |= self.by_requirement.get(fault.requirement, frozenset())
        source = fault.find.strip().split("\n")[0]
        is_inside = bool(lines) and all(self._is_inside(fault.file, line) for line in lines)
        return Mutant(
            kind, fault.requirement, fault.file, first, source, change, texts, near, around, is_inside, fault.unseen
        )

    def _rules(self) -> Iterator[Mutant]:
        rule_sites = defaultdict(list)
        for site in sites():
            if site.form in {"raise", "Checked"} and site.file in self.texts and site.file not in OUT_OF_SIGHT:
                rule_sites[site.requirement].append(site)
        for requirement, found in rule_sites.items():
            parts = [self._cases(site.file, site.line, site.line) for site in found]
            near = frozenset().union(*(part[0] for part in parts)) | self.by_requirement.get(requirement, set())
            around = frozenset().union(*(part[1] for part in parts))
            texts = {site.file: disabled(self.texts[site.file], requirement) for site in found}
            scope_path = ", ".join(dict.fromkeys(site.scope_path for site in found))
            change = (f"enforces {requirement}", "pass")
            is_inside = all(self._is_inside(site.file, site.line) for site in found)
            yield Mutant("rule", requirement, scope_path, found[0].line, "", change, texts, near, around, is_inside)


def _functions(text: str) -> list[tuple[int, int, int]]:
    """Return first line, last line, and first line of the body of every function."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [(node.lineno, node.end_lineno or 0, node.body[0].lineno) for node in nodes]


def levels() -> dict[str, str]:
    """Return MUST, SHOULD or MAY, by requirement."""
    definition = re.compile(r"^\[(SEG-[A-Z]{3}-\d{3})\]: (MUST|SHOULD|MAY)\b", re.MULTILINE)
    texts = [path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "spec").glob("*.md"))]
    return dict(found for text in texts for found in definition.findall(text))


def equivalents() -> dict[tuple[str, ...], str]:
    """Return the generated mutants that were shown to change no answer, each with the reason."""
    if not EQUIVALENT.is_file():
        return {}
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
    return {(one["place"], one["source"], one["before"], one["after"]): one["reason"] for one in entries}
