"""What this project has to change for a release of Kafka, on one screen: the end of ``make kafka-next``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.cases import load_cases

from seglog_format import LogConfig
from tools.kafka_next.features import FOR_TESTS, in_production, undescribed
from tools.kafka_next.introspection import simple_name
from tools.kafka_next.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

MOST_LINES: Final = 60
NODES: Final = REPOSITORY / "seglog_format" / "cluster" / "image.py"
OF_NODE: Final = re.compile(r'Release\(\s*"([\d.]+)"')
REPLAY: Final = REPOSITORY / "seglog_format" / "cluster" / "metadata_log.py"
WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
"""Where a word of a name begins, but for the first."""
Json = dict[str, Any]
IMPORT: Final = re.compile(r"^import (?:static )?((?:org\.apache\.)?kafka\.[\w.$]+)", re.MULTILINE)
JAVA: Final = ("tests/java", "tests/java-cluster", "fixtures/make", "conformance/adapters")
NAMES_IN_A_LINE: Final = 4
WIDTH: Final = 150
MOST_ANSWERS: Final = 3


def page(report: Json) -> list[str]:
    """Return at most `MOST_LINES` lines: what changed, each with what has to change here.

    A part that is too long for its share ends with how many lines are left out; the report has all.
    """
    parts = {title: [*part(report)] for title, part in PARTS.items()}
    kept = {title: lines for title, lines in parts.items() if lines}
    room = MOST_LINES - 1 - len(kept)
    share = {title: len(lines) for title, lines in kept.items()}
    while sum(share.values()) > room:
        share[max(share, key=lambda title: share[title])] -= 1
    found = [f"# What to change here for Kafka {report['release']}, compared with {report['base']}"]
    for title, lines in kept.items():
        found += [f"## {title}", *_cut(lines, share[title])]
    return found if kept else [*found, "Nothing."]


def _cut(lines: list[str], room: int) -> list[str]:
    shown = (
        lines if len(lines) <= room else [*lines[: room - 1], f"- ... and {len(lines) - room + 1} more in the report"]
    )
    return [line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in shown]


def _declarations(report: Json) -> Iterator[str]:
    found = report["stored"]
    yield from _listed("new", [*found.get("new", {})], is_whole=True)
    yield from _listed("gone", [*found.get("gone", {})], is_whole=True)
    changed = found.get("changed", {})
    yield from _listed(
        "changed", [f"{name} ({_some(_fields(each), 2)})" for name, each in changed.items()], is_whole=True
    )
    if found:
        command = "run `python -m tools.message_definitions` and `tools.make_layouts`"
        yield f"- add {report['release']} to RELEASES in tools/message_definitions.py; {command}"
    new = [name for name, fields in found.get("new", {}).items() if _is_metadata(fields)]
    yield from _listed(
        "a rule in seglog_format/cluster/metadata_log.py RULES for", [each for each in new if not _has_rule(each)]
    )


def _has_rule(name: str) -> bool:
    kind = WORD.sub("_", name).upper()
    return f'"{kind}"' in REPLAY.read_text(encoding="utf-8")


def _is_metadata(fields: Mapping[str, Mapping[str, str]]) -> bool:
    return fields.get("", {}).get("type") == "metadata"


def _fields(change: Json) -> list[str]:
    return [path or "versions" for kind in ("new", "changed", "gone") for path in change.get(kind, ())]


def _facts(report: Json) -> Iterator[str]:
    """Yield the facts with another answer, a few answers of each; those of settings have a part of their own."""
    unanswered: set[str] = set()
    for each in report.get("facts", ()):
        differs = {} if _is_of_settings(each) else each.get("differs", {})
        shown = [
            f"{_short(_question(name), 40)} {_changed(before, now)}"
            for name, (before, now) in differs.items()
            if before is not None and now is not None
        ]
        unanswered |= {name for name, (_, now) in differs.items() if now is None}
        if shown:
            more = f"; and {len(shown) - MOST_ANSWERS} more" if len(shown) > MOST_ANSWERS else ""
            yield f"- {_owner(each)}: {'; '.join(shown[:MOST_ANSWERS])}{more}"
    yield from _listed("no answer any more: name the new class in fixtures/make/constants.py", sorted(unanswered))


def _question(name: str) -> str:
    """Return a question without its package, and of a constant also without its class."""
    member = name.rpartition(".")[2]
    return ".".join(name.split(".")[-2:]) if member == "*" else member


def _is_of_settings(fact: Json) -> bool:
    return all(name.endswith((" default", " allowed")) for name in fact.get("differs", {"": ""}))


def _owner(fact: Json) -> str:
    return f"{fact['owner'][0].removeprefix('seglog_format.')} ({fact['test'].partition('::')[0]})"


def _changed(before: str | None, now: str | None) -> str:
    """Return two answers; of long lists, only the items that differ."""
    if before is None or now is None:
        return f"{_short(before)}, now {_short(now)}"
    old, new = before.split("; "), now.split("; ")
    gone, come = ([one for one in ours if one not in others] for ours, others in ((old, new), (new, old)))
    return f"{_short('; '.join(gone) or None)}, now {_short('; '.join(come) or None)}"


def _short(text: str | None, most: int = 40) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= most else text[: most - 3] + "..."


def _levels(report: Json) -> Iterator[str]:
    found = report["features"]
    for name, number in undescribed(found):
        yield f"- {name} {number}: a row in spec/B-version-history.md that says what it changes on disk"
    line = report["release"].rpartition(".")[0]
    if line not in OF_NODE.findall(NODES.read_text(encoding="utf-8")):
        latest = dict(sorted(in_production(found)))
        levels = [f"{name} {level}" for name, level in latest.items()]
        yield f"- a Release({line!r}, ...) in seglog_format/cluster/image.py; changed here: {_some(levels)}"
    gone = [name for name in found.get("gone", {}) if not name.startswith(FOR_TESTS)]
    yield from _listed("gone, also from seglog_format/cluster/image.py and spec/B-version-history.md", gone)


def _settings(report: Json) -> Iterator[str]:
    found = report["settings"]
    new, gone = ([name for name, each in found.get(kind, {}).items() if _of_a_log(each)] for kind in ("new", "gone"))
    for name, change in found.get("changed", {}).items():
        for holder, facts in change.get("changed", {}).items():
            if simple_name(holder) == "LogConfig":
                shown = "; ".join(f"{fact} {_short(old)}, now {_short(now)}" for fact, (old, now) in facts.items())
                yield f"- {name}: {shown}: state/config.py, cluster/image.py, appendix B"
    known = [name for name in gone if LogConfig.has_setting(name)]
    yield from _listed("gone, and in LogConfig", known)
    yield from _listed("gone: seglog_format/cluster/new_image.py DROPPED_SETTINGS", [n for n in gone if n not in known])
    yield from _listed("new: does it change files? state/config.py LogConfig, appendix B", new, is_whole=True)


def _of_a_log(holders: Iterable[str]) -> bool:
    return any(simple_name(holder) == "LogConfig" for holder in holders)


def _answers(report: Json) -> Iterator[str]:
    required = {case.id: case.requirements for case in load_cases()} if report["answers"] else {}
    for name, found in report["answers"].items():
        if "notAsked" in found:
            yield f"- {name} was not asked: {found['notAsked']}"
            continue
        by_rule: dict[str, list[str]] = {}
        for case in found["differ"]:
            by_rule.setdefault(next(iter(required.get(case, ())), "no rule"), []).append(case)
        for rule, cases in sorted(by_rule.items()):
            verdicts = sorted({" to ".join(found["differ"][case]["verdicts"]) for case in cases})
            yield f"- {rule} ({', '.join(verdicts)} by {name}): {_some(cases, 2)}"
    if any(found.get("differ") for found in report["answers"].values()):
        yield "- record the answers: python -m authoring.ask_kafka, record_whole, record_scenarios; marks in spec/"


def _harness(report: Json) -> Iterator[str]:
    found = report["classes"]
    moved, gone = found.get("moved", {}), set(found.get("gone", ()))
    users: dict[str, list[str]] = {}
    for path in sorted(path for folder in JAVA for path in (REPOSITORY / folder).rglob("*.java")):
        for name in set(IMPORT.findall(path.read_text(encoding="utf-8"))):
            users.setdefault(name, []).append(path.relative_to(REPOSITORY).as_posix())
    by_package: dict[str, list[str]] = {}
    for name in users.keys() & moved.keys():
        by_package.setdefault(moved[name].rpartition(".")[0], []).append(f"{simple_name(name)} ({len(users[name])})")
    yield from _listed("gone, with the number of files", sorted(f"{n} ({len(users[n])})" for n in users.keys() & gone))
    for package, names in sorted(by_package.items(), key=lambda item: (-len(item[1]), item[0])):
        yield from _listed(f"now in {package}", sorted(names))


def _by_hand(report: Json) -> Iterator[str]:
    """Yield the witnesses that need a broker or more: what to run, each once."""
    reasons: dict[str, list[str]] = {}
    for each in report.get("facts", ()):
        if "notAsked" in each:
            reasons.setdefault(each["notAsked"], []).append(each["owner"][0].removeprefix("seglog_format."))
    by_script = [reason.split(" ")[1] for reason in reasons if reason.startswith(("run fixtures", "run proofs"))]
    yield from _listed("run", by_script, is_whole=True)
    yield from (
        f"- {reason} ({_some(owners, 2)})" for reason, owners in reasons.items() if not reason.startswith("run ")
    )
    lists = "RELEASES in fixtures/make/constants.py and feature_levels.py, and to the adapters' versions"
    yield f"- add {report['release']} to {lists}"


def _listed(what: str, names: list[str], *, is_whole: bool = False) -> Iterator[str]:
    """Yield names after what they have in common: one line with as many as fit, or lines for all of them."""
    shown, rest = names, names[:0]
    while shown:
        more = f" and {len(rest)} more" if rest and not is_whole else ""
        line = f"- {what}: {', '.join(shown)}{more}"
        if len(line) > WIDTH and len(shown) > 1:
            shown, rest = shown[:-1], [shown[-1], *rest]
            continue
        yield line
        shown, rest = (rest, names[:0]) if is_whole else (names[:0], rest)


def _some(names: list[str], most: int = NAMES_IN_A_LINE) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


PARTS: Final[Mapping[str, Callable[[Json], Iterator[str]]]] = {
    "Facts whose witness answers otherwise: owner, test, answer": _facts,
    "Declarations": _declarations,
    "Feature levels": _levels,
    "Settings of a log": _settings,
    "Rules and cases that Kafka's classes answer otherwise": _answers,
    "Java here that names what moved or went": _harness,
    "Witnesses to record by hand": _by_hand,
}
