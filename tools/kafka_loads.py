"""Whole partitions recovered as a broker would, against Kafka's own loader on the same files.

What is generated is damaged by chance: bytes of one log, a missing index, a recovery point anywhere. Then the plan that
imitates a broker is carried out on one copy, and Kafka loads the other one.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_directories import settings_of
from kafka_oracle import Oracle, scratch_directory
from kafka_result import Result
from random_damage import damaged

from seglog_format.codec.checkpoints import encode_offset_checkpoint
from seglog_format.lifecycle.config import BrokerGeneration
from seglog_format.lifecycle.generate import GeneratedPartition, generate
from seglog_format.lifecycle.recipe_random import random_recipe
from seglog_format.lifecycle.recovery_apply import RecoveryOptions, recover_partition
from seglog_format.names import FileKind
from seglog_format.small_model import CheckpointedOffset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMPARED: Final = (".log", ".index", ".timeindex", ".txnindex", "leader-epoch-checkpoint")
INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")


@dataclass(frozen=True, slots=True)
class Wreck:
    """A partition as a crash might leave it.

    Attributes:
        path: of the directory.
        recovery_point: as checkpointed.
        partition: what was generated, before the damage.
        damages: what was done to it.
    """

    path: Path
    recovery_point: int
    partition: GeneratedPartition
    damages: tuple[str, ...]


def check_loads(oracles: Sequence[Oracle], seeds: Iterable[int]) -> Result:
    """Recover a damaged partition for each seed."""
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
    """Generate a log directory of which nothing was closed, and damage its first partition."""
    dice = random.Random(f"wreck {seed}")  # noqa: S311 - tests repeat with it
    recipe = random_recipe(seed, end=dice.choice(("clean", "killed")))
    partition = generate(recipe, directory, seed).partitions[0]
    (directory / FileKind.CLEAN_SHUTDOWN.value).unlink(missing_ok=True)
    damages = [*_damage_log(dice, seed, partition.path), *_remove_index(dice, partition.path)]
    point = dice.choice((0, 0, dice.randrange(partition.plan.end_offset + 1)))
    entry = CheckpointedOffset(partition.plan.topic.name, partition.plan.partition, point)
    checkpoint = directory / FileKind.RECOVERY_POINT_CHECKPOINT.value
    checkpoint.write_bytes(encode_offset_checkpoint([entry]))
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
    prepared = recover_partition(ours / wreck.path.name, options=options)
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
    """The files that count, without the zeros after the last entry of an index; empty indexes are as good as none."""
    found = {}
    for path in directory.iterdir():
        if path.name.endswith(COMPARED):
            data = path.read_bytes()
            is_index = path.suffix in INDEX_SUFFIXES
            if data or not is_index:
                found[path.name] = data
    return found
