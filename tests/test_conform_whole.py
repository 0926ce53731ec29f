"""Answers are compared whole: nothing may be in them that a case does not know of."""

from __future__ import annotations

import json
import re
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from helpers.walking import each_of
from seglog_conformance.cases import Case, load_cases
from seglog_conformance.compare import compare
from seglog_conformance.protocol import OPS, untold_in
from seglog_conformance.reference.testee import FEATURES, Reference
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]

ENTRY: Final = "0000" + "0000000000000001" + "0000000000000000" * 3
"""An entry of a transaction index, of 34 bytes."""
LINE: Final = b"0\n1\nother 7 7\n".hex()
BOGUS: Final = "somethingElse"
BATCH: Final = {"records": [{"offset": "77", "timestamp": "7", "key": None, "value": "77"}], "isControl": False}
EVERY: Final = 4
"""Of the cases of an operation, each fourth is asked; of few, each."""
FEW: Final = 60


def dictionaries(value: object) -> Iterator[Json]:
    """Yield all objects in a value, from the outside inwards."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from dictionaries(item)


def in_files(answer: Json, name: str, data: str) -> Iterator[Callable[[], None]]:
    """Yield how to add a file to each set of files of an answer."""
    for holder in (answer, *answer.get("steps", ())):
        if isinstance(holder.get("files"), dict):
            yield lambda files=holder["files"]: files.update({name: data})


def transaction_index(answer: Json) -> Iterator[Callable[[], None]]:
    name = ".txnindex" if ".index" in answer.get("files", {}) else f"{0:020}.txnindex"
    return (change for change in in_files(answer, name, ENTRY) if not answer["files"].get(name))


def file(answer: Json) -> Iterator[Callable[[], None]]:
    return in_files(answer, "stray", "00")


def checkpoint_line(answer: Json) -> Iterator[Callable[[], None]]:
    for name in answer.get("checkpoints") or ():
        yield lambda name=name: answer["checkpoints"].update({name: LINE})
    if "version" in answer.get("object", {}) and "entries" in answer["object"]:
        yield lambda: answer["object"]["entries"].append(["other", 7, "7"])


def batch(answer: Json) -> Iterator[Callable[[], None]]:
    lists = [one["batches"] for one in dictionaries(answer) if isinstance(one.get("batches"), list)]
    lists += list(answer["batches"].values()) if isinstance(answer.get("batches"), dict) else []
    for found in lists:
        yield lambda found=found: found.append({**(found[-1] if found else {}), **BATCH})


def header(answer: Json) -> Iterator[Callable[[], None]]:
    for record in [one for one in dictionaries(answer) if "offset" in one and "value" in one][:3]:
        yield lambda record=record: record.update({"headers": [*(record.get("headers") or []), ["68", "76"]]})


def finding(answer: Json) -> Iterator[Callable[[], None]]:
    if "findings" in answer:
        one = {"file": "stray", "requirement": "SEG-BAT-003", "severity": "error"}
        yield lambda: answer["findings"].append(one)


def key(answer: Json) -> Iterator[Callable[[], None]]:
    for one in list(dictionaries(answer))[:6]:
        yield lambda one=one: one.update({BOGUS: "1"})


KINDS: Final = (transaction_index, file, checkpoint_line, batch, header, finding, key)
DIRECTORY: Final = {"transaction_index", "file", "checkpoint_line", "key"}
KINDS_OF: Final = {
    "decode": {"batch", "header", "key"},
    "encode": {"key"},
    "validate": {"batch", "header", "key"},
    "index": {"transaction_index", "file", "key"},
    "lookup": {"key"},
    "recover": DIRECTORY,
    "truncate": DIRECTORY,
    "parse": {"checkpoint_line", "batch", "key"},
    "read": {"header", "key"},
    "verify": {"finding", "key"},
    "decide": {"key"},
    "write": DIRECTORY,
    "retain": DIRECTORY,
    "compact": {*DIRECTORY, "batch", "header"},
}
"""What the answers to each operation have, of which there may be one more."""


@cache
def cases_of(op: str) -> list[Case]:
    """Return cases of an operation that expect something, spread over its families."""
    known = [case for case in load_cases() if case.op == op and case.result != "undefined"]
    return known[:: EVERY if len(known) > FEW else 1]


def changed(kind: Callable[[Json], Iterator[Callable[[], None]]], text: str) -> Iterator[Json]:
    """Yield an answer with one thing of a kind more, at each place."""
    for number in range(len(list(kind(json.loads(text))))):
        more = json.loads(text)
        list(kind(more))[number]()
        yield more


def path_of_difference(before: object, after: object, path: str = "") -> str:
    """Return the path at which two values differ first."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in after if name not in before or before[name] != after[name]]
        inner = f"{path}.{names[0]}" if path else names[0]
        return path_of_difference(before.get(names[0]), after[names[0]], inner)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        number = next(at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
        return path_of_difference(before[number], after[number], f"{path}[{number}]")
    return path


def is_open(case: Case, path: str) -> bool:
    """Return whether a case, or the schema of the answer, leaves open what is at a path."""
    patterns = (*untold_in(case.op), *case.untold)
    above = (path[: found.start()] for found in re.finditer(r"[.\[]|$", path))
    return any(fnmatchcase(one, pattern.replace("[", "[[]")) for one in above for pattern in patterns)


@each_of("op", [op for op in OPS if op != "position"])
def test_one_thing_more_is_a_difference(op: str) -> None:
    """At 34cf7111 750 of 754 cases of directories passed with a transaction index that nobody expects."""
    reference, missed, asked, left_open = Reference(), [], Counter[str](), Counter[str]()
    for case in cases_of(op):
        text = json.dumps({"seq": 1, **reference.answer({"op": op, **case.request})})
        answer = json.loads(text)
        assert compare(case, answer, FEATURES).verdict is Verdict.PASS, case.id
        for kind in KINDS:
            for more in changed(kind, text):
                asked[kind.__name__] += 1
                if compare(case, more, FEATURES).verdict is Verdict.PASS:
                    path = path_of_difference(answer, more)
                    left_open[kind.__name__] += is_open(case, path)
                    missed += [] if is_open(case, path) else [(kind.__name__, case.id, path)]
    assert missed == []
    assert set(asked) == KINDS_OF[op]
    assert {name for name, count in left_open.items() if 4 * count > asked[name]} <= {"batch"}


def test_the_class_of_a_refused_step_is_only_information() -> None:
    """At 0a5c6856 an answer that gave its refusal another class, or none, was a `DIFFER` in nine cases of `write`."""
    reference, asked = Reference(), 0
    for case in load_cases():
        refused = [number for number, step in enumerate(case.expect.get("steps", ())) if "reject" in step]
        if not refused:
            continue
        answer = {"seq": 1, **reference.answer({"op": case.op, **case.request})}
        for number in refused:
            for given in ({"class": "other"}, {"class": "text"}, {}):
                answer["steps"][number]["reject"] = given
                judgement = compare(case, answer, FEATURES)
                assert judgement.verdict is Verdict.PASS, f"{case.id}: {judgement.detail}"
                asked += 1
            answer["steps"][number] = {"firstOffset": "0", "lastOffset": "0"}
            assert compare(case, answer, FEATURES).verdict is Verdict.DIFFER, case.id
            answer["steps"][number] = {"reject": {}}
    assert asked


def test_one_case_alone_leaves_open_what_is_in_all_files() -> None:
    """At 0a5c6856 twelve did. Several appends at once may be written in any order, and the order makes the log."""
    found = {case.id for case in load_cases() if {"files", "files.*"} & set(case.untold)}
    assert found == {"decisions/write-flushes-together"}
