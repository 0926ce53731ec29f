"""Compare recovery of whole partitions, done as a broker would, with Kafka's own loader on the same files.

Generated partitions are damaged at random: bytes of one log, a missing index, an arbitrary recovery point. The plan
that imitates a broker is applied to one copy, and Kafka loads the other one.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofs.fuzz.random_damage import damaged
from proofs.kafka.directories import settings_of
from proofs.kafka.oracle import Oracle, scratch_directory
from proofs.kafka.result import Result
from seglog_format import BrokerGeneration, RecoveryOptions, recover
from seglog_format.generation.generate import GeneratedPartition, generate
from seglog_format.generation.recipe import random_recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNUSUAL_NAMES: Final = (
    *("-1.log", "-0000000000000000001.log", "-00000000000000000001.log", "-9223372036854775808.log", "+0.log", "1.log"),
    *("1.5.log", "-1.index", "-1.log.cleaned", "-5.snapshot", "x.log", "x.index", "x.snapshot", "x.swap", "x.cleaned"),
    *("9223372036854775808.log", "-1.log.deleted", "x.log.deleted", "x.tmp", "1.log.bak"),
)
"""Names that no broker gives: it ignores some, removes some, and does not start with others."""

COMPARED: Final = (".log", ".index", ".timeindex", ".txnindex", "leader-epoch-checkpoint")
INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")


@dataclass(frozen=True, slots=True)
class Wreck:
    """A partition as a crash might leave it, with the damage.

    Attributes:
        path: path of the directory.
        recovery_point: the checkpointed recovery point.
        partition: the generated partition, before the damage.
        damages: descriptions of the damage.
    """

    path: Path
    recovery_point: int
    partition: GeneratedPartition
    damages: tuple[str, ...]


def check_loads(oracles: Sequence[Oracle], seeds: Iterable[int]) -> Result:
    """Recover a damaged partition for each seed, by us and by Kafka."""
    result = Result("damaged partitions: recovery like a broker's against Kafka's loader")
    for seed in seeds:
        with scratch_directory() as root:
            wreck = wreck_of(seed, Path(root) / "wreck")
            result.counts.update(f"damage: {name}" for name in wreck.damages or ("none",))
            for oracle in oracles:
                _check(result, oracle, f"wreck {seed}, Kafka {oracle.version}", wreck, Path(root) / oracle.release)
        result.checked += 1
    return result


def wreck_of(seed: int, directory: Path) -> Wreck:
    """Generate a log directory that was not closed cleanly, and damage its first partition."""
    dice = random.Random(f"wreck {seed}")
    recipe = random_recipe(seed, end=dice.choice(("clean", "killed")))
    partition = generate(recipe, directory, seed).partitions[0]
    (directory / ".kafka_cleanshutdown").unlink(missing_ok=True)
    damages = [*_damage_log(dice, seed, partition.path), *_remove_index(dice, partition.path)]
    damages += _add_files(random.Random(f"files {seed}"), partition.path)
    point = dice.choice((0, 0, dice.randrange(partition.plan.end_offset + 1)))
    line = f"{partition.plan.topic.name} {partition.plan.partition} {point}"
    (directory / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{line}\n", encoding="utf-8")
    return Wreck(partition.path, point, partition, tuple(damages))


def _damage_log(dice: random.Random, seed: int, directory: Path) -> list[str]:
    logs = sorted(path for path in directory.glob("*.log") if path.stat().st_size)
    if not logs or not dice.randrange(4):
        return []
    path = dice.choice(logs)
    data, names = damaged(seed, path.read_bytes())
    path.write_bytes(data)
    return names


def _remove_index(dice: random.Random, directory: Path) -> list[str]:
    indexes = sorted(path for path in directory.iterdir() if path.suffix in INDEX_SUFFIXES)
    if not indexes or dice.randrange(5):
        return []
    path = dice.choice(indexes)
    path.unlink()
    return [f"no {path.suffix}"]


def _add_files(dice: random.Random, directory: Path) -> list[str]:
    """Add files of an interrupted replacement, torn or whole, or a file with an unusual name; describe them."""
    match dice.randrange(8):
        case 0:
            return _add_swap(dice, directory)
        case 1:
            name = dice.choice(UNUSUAL_NAMES)
            (directory / name).write_bytes(dice.choice((b"", b"no entry")))
            return [f"a file {name}"]
    return []


def _add_swap(dice: random.Random, directory: Path) -> list[str]:
    log = dice.choice(sorted(directory.glob("*.log")))
    data = log.read_bytes()
    size = dice.choice((len(data), dice.randrange(len(data) + 1)))
    log.with_suffix(".log.swap").write_bytes(data[:size])
    if has_indexes := not dice.randrange(3):
        for path in sorted(directory.glob(f"{log.stem}.*index")):
            shutil.copy(path, path.with_name(f"{path.name}.swap"))
    if not dice.randrange(3):
        log.unlink()
    return [f"{'torn' if size < len(data) else 'whole'} .log.swap with{'' if has_indexes else 'out'} indexes"]


def _check(result: Result, oracle: Oracle, name: str, wreck: Wreck, root: Path) -> None:
    theirs, ours = root / "kafka", root / "ours"
    for copy in (theirs, ours):
        shutil.copytree(wreck.path.parent, copy)
    config = wreck.partition.plan.topic.config
    answer = oracle.ask(
        "load",
        directory=str(theirs / wreck.path.name),
        config=settings_of(config),
        isClean=False,
        recoveryPoint=wreck.recovery_point,
    )
    options = RecoveryOptions(
        like_broker=True, interval_bytes=config.index_interval_bytes, generation=BrokerGeneration.V4_1
    )
    prepared = recover(ours / wreck.path.name, options=options).apply()
    if "error" in answer or prepared.failure is not None:
        failure = "" if prepared.failure is None else prepared.failure.text
        result.equal(
            name, f"{answer.get('message')} / {failure}: start", prepared.failure is None, "error" not in answer
        )
        result.counts[f"Kafka {oracle.release}: no start"] += 1
        return
    result.counts[f"Kafka {oracle.release}: loaded"] += 1
    result.equal(name, "log end offset", prepared.plan.log_end_offset, answer["logEndOffset"])
    mine, kafkas = contents(ours / wreck.path.name), contents(theirs / wreck.path.name)
    if result.equal(name, "files", sorted(mine), sorted(kafkas)):
        for file in sorted(mine):
            result.equal(name, file, mine[file], kafkas[file])


def contents(directory: Path) -> dict[str, bytes]:
    """Return the relevant files: indexes that are empty or hold only zeros count as missing."""
    found = {}
    for path in directory.iterdir():
        if path.name.endswith(COMPARED):
            data = path.read_bytes()
            is_index = path.suffix in INDEX_SUFFIXES
            if not is_index or data.strip(b"\0"):
                found[path.name] = data
    return found
