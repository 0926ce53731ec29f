"""The recorded witnesses, asked again of a new release: which facts about Kafka have another answer now."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Final

from fixtures.make import constants, elections, partition_for_key, partition_of_names
from proofs.kafka.oracle import CLUSTERS, Oracle
from tools import witnesses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tools.witnesses import Fact

WITNESSES: Final = witnesses.REPOSITORY / witnesses.RECORDED
Answers = dict[str, str]
Difference = dict[str, list[str | None]]
Json = dict[str, Any]


class NotAskedError(Exception):
    """A release cannot be asked yet; the text says what this project has to do first."""


def ask_again(base: str, release: str, facts: Iterable[Fact]) -> list[Json]:
    """Return each fact that the release answers otherwise, or was not asked about.

    Args:
        base: the older release.
        release: the newer one.
        facts: of the table of witnesses.

    Returns:
        For each fact its sentence, owner and test, and ``differs``: the answers before and now by question; or
        ``notAsked``: what has to be done first.
    """
    found: list[Json] = []
    known: dict[str, Difference | str] = {}
    for fact in facts:
        if fact.again in WAYS and fact.again not in known:
            known[fact.again] = _difference(fact.again, base, release)
        answer = known.get(fact.again) if fact.again else f"run {fact.script or 'a broker'} for {release}"
        if isinstance(answer, str):
            found.append({**_named(fact), "notAsked": answer})
        elif answer and (differs := about(fact, answer)):
            found.append({**_named(fact), "differs": differs})
    return found


def _named(fact: Fact) -> Json:
    return {"fact": fact.fact, "owner": fact.owner, "test": fact.test}


def about(fact: Fact, difference: Difference) -> Difference:
    """Return the part of a difference that is about a fact."""
    if fact.again == "settings":
        return {name: each for name, each in difference.items() if name.rpartition(" ")[2] in fact.keys}
    if fact.keys:
        return {name: each for name, each in difference.items() if name.startswith(fact.keys)}
    return difference


def _difference(way: str, base: str, release: str) -> Difference | str:
    try:
        before, now = WAYS[way](base, release)
    except NotAskedError as error:
        return str(error)
    names = sorted(before.keys() | now.keys())
    return {name: [before.get(name), now.get(name)] for name in names if before.get(name) != now.get(name)}


def _constants(base: str, release: str) -> tuple[Answers, Answers]:
    return constants.asked(base), constants.asked(release)


def _settings(base: str, release: str) -> tuple[Answers, Answers]:
    return _flat(constants.settings(base)), _flat(constants.settings(release))


def _flat(settings: Mapping[str, Mapping[str, str]]) -> Answers:
    names = ("default", "allowed")
    return {f"{setting} {name}": facts[name] for setting, facts in settings.items() for name in names}


def _partition_for_key(_base: str, release: str) -> tuple[Answers, Answers]:
    """Compare with the recorded table: all recorded releases have agreed."""
    witness = json.loads((WITNESSES / "partition_for_key.json").read_text(encoding="utf-8"))
    asked = [(bytes.fromhex(key), count) for key in witness["partitions_by_key"] for count in witness["counts"]]
    recorded = [each for row in witness["partitions_by_key"].values() for each in row]
    names = [f"key {key.hex()} of {count} partitions" for key, count in asked]
    now = partition_for_key.answers(release, asked)
    return _by_name(names, recorded), _by_name(names, now)


def _partition_of_names(_base: str, release: str) -> tuple[Answers, Answers]:
    """Compare with the recorded table: all recorded releases have agreed."""
    with gzip.open(WITNESSES / "partition-of-names.jsonl.gz", "rt", encoding="ascii") as file:
        rows = [row for row in map(json.loads, file) if isinstance(row, list) and isinstance(row[0], str)]
    names = [row[0] for row in rows]
    with Oracle(profile_of(release), project=CLUSTERS) as kafka:
        holder = partition_of_names.CLASSES["4.4"][0]
        said = kafka.must("partitions", **{"class": holder}, names=names, counts=partition_of_names.COUNTS)["rows"]
    return _by_name(names, [row[1:] for row in rows]), _by_name(names, said)


def _elections(base: str, release: str) -> tuple[Answers, Answers]:
    width = len(elections.COLUMNS)
    found = []
    for each in (base, release):
        rows = elections.answers(profile_of(each))
        found.append({json.dumps(row[:width]): json.dumps(row[width:]) for row in rows})
    return found[0], found[1]


def profile_of(release: str) -> str:
    """Return the profile of a release in the project of the cluster's classes.

    Raises:
        NotAskedError: there is none.
    """
    for profile, version in CLUSTERS.releases.items():
        if version == release:
            return profile
    msg = f"add a profile of {release} to tests/java-cluster/pom.xml and proofs/kafka/oracle.py CLUSTERS"
    raise NotAskedError(msg)


def _by_name(names: Iterable[str], values: Iterable[object]) -> Answers:
    return {name: json.dumps(value) for name, value in zip(names, values, strict=True)}


WAYS: Final[Mapping[str, Callable[[str, str], tuple[Answers, Answers]]]] = {
    "constants": _constants,
    "settings": _settings,
    "partition_for_key": _partition_for_key,
    "partition_of_names": _partition_of_names,
    "elections": _elections,
}
"""How the answers of both releases are got, by the name in the table."""

COMPARED: Final = frozenset({"cases", "messages", "levels", "defaults"})
"""Names in the table for what the report compares by itself: cases, definitions, levels and settings."""
