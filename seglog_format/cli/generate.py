"""``seglog generate``: a log directory from a recipe and a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from seglog_format.cli.options import PATH, json_option
from seglog_format.cli.output import progress, write_json, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.generation.generate import GeneratedLog, GeneratedPartition
    from seglog_format.generation.recipe_model import Recipe

EPILOG = """\b
Examples:
  seglog generate recipe.toml -o data
  seglog generate recipe.toml -o data --seed 8 --set topic.0.partitions=3
  seglog generate --seed 8 -o data
  seglog generate --like /var/lib/kafka/data-1 > recipe.toml
  seglog generate --list"""


@click.command(epilog=EPILOG)
@click.argument("recipe", type=PATH, required=False)
@click.option("-o", "--output", type=PATH, metavar="DIR", help="Write here: a new or empty directory.")
@click.option("--list", "is_list", is_flag=True, help="Print what a recipe can contain, with defaults, and faults.")
@click.option("--like", type=PATH, metavar="DIR", help="Print a recipe for a directory like this one.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed to use instead of the recipe's.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Replace a value of the recipe.")
@json_option
def command(  # noqa: PLR0913 - one for each option
    recipe: Path | None,
    *,
    output: Path | None,
    is_list: bool,
    like: Path | None,
    seed: int | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> int:
    """Generate a log directory from the recipe in the file RECIPE.

    The same recipe and seed make the same bytes everywhere; compressed bytes also depend on the compression library.
    Without a RECIPE, a random one is made from the seed. With --like, nothing is generated: the recipe has the sizes,
    counts, codecs, rates, producers and transactions of a directory, and none of its names and content.
    """
    if is_list:
        _write_list(as_json=as_json)
        return 0
    if like is not None:
        return _print_recipe(like, is_alone=recipe is None and output is None and seed is None and not overrides)
    from seglog_format.errors import UsageError
    from seglog_format.generation.generate import generate

    if output is None:
        msg = "Missing option '-o' / '--output'."
        raise click.UsageError(msg)
    if recipe is None and overrides:
        msg = "--set is for a recipe from a file"
        raise UsageError(msg)
    found = _recipe(recipe, seed, overrides)
    total = sum(step.records * topic.partitions for topic in found.topics for step in topic.steps)
    with progress("Generating", total) as report:
        made = generate(found, output, seed, report=report)
    if as_json:
        write_json(as_object(made))
    else:
        for partition in made.partitions:
            write_text(_text(partition))
    return 0


def _print_recipe(like: Path, *, is_alone: bool) -> int:
    from seglog_format.generation.recipe import recipe_like

    if not is_alone:
        msg = "--like prints a recipe, and goes with no other option"
        raise click.UsageError(msg)
    write_text(recipe_like(like))
    return 0


def _write_list(*, as_json: bool) -> None:
    """Print the keys of each table of a recipe, and the faults."""
    from seglog_format.generation.faults import fault_forms
    from seglog_format.generation.recipe import choice_list, key_list

    choices = choice_list()
    for table, keys in key_list().items():
        if as_json:
            write_json({"type": "table", "table": table, "keys": keys, "choices": choices[table]})
            continue
        write_text(table)
        width = max(map(len, keys), default=0)
        for key, value in keys.items():
            comment = f"  # {', '.join(choices[table][key])}" if key in choices[table] else ""
            write_text(f"  {key:<{width}}  {value}{comment}")
    if as_json:
        write_json({"type": "faults", "faults": fault_forms()})
    else:
        write_text("faults of a topic")
        for form in fault_forms():
            write_text(f"  {form}")


def _recipe(path: Path | None, seed: int | None, overrides: tuple[str, ...]) -> Recipe:
    from seglog_format.errors import UsageError, reason_of
    from seglog_format.generation.recipe import parse_recipe, random_recipe

    if path is None:
        return random_recipe(seed or 0)
    try:
        return parse_recipe(path.read_text(encoding="utf-8"), overrides)
    except UnicodeDecodeError as error:
        msg = f"{path} is no UTF-8 text"
        raise UsageError(msg) from error
    except OSError as error:
        raise UsageError(reason_of(error)) from error


def as_object(made: GeneratedLog) -> dict[str, Any]:
    """Return the generated directory for JSON."""
    return {
        "type": "generated",
        "directory": str(made.path),
        "seed": made.seed,
        "end": made.recipe.end,
        "partitions": [_partition(partition) for partition in made.partitions],
    }


def _partition(partition: GeneratedPartition) -> dict[str, Any]:
    plan = partition.plan
    return {
        "directory": partition.path.name,
        "records": plan.record_count,
        "appends": plan.append_count,
        "segments": sum(1 for _ in partition.path.glob("*.log")),
        "logEndOffset": plan.end_offset,
        "committedTransactions": sum(t.last_offset is not None and not t.is_aborted for t in plan.transactions),
        "abortedTransactions": sum(t.is_aborted for t in plan.transactions),
        "openTransactions": sum(t.last_offset is None for t in plan.transactions),
        "faults": [fault.text for fault in plan.topic.faults],
    }


def _text(partition: GeneratedPartition) -> str:
    from seglog_format.cli.output import count_text

    found = _partition(partition)
    counts = f"{count_text(found['records'], 'record')} in {count_text(found['segments'], 'segment')}"
    text = f"{found['directory']}: {counts}, log end offset {found['logEndOffset']}"
    return f"{text}, damaged: {', '.join(found['faults'])}" if found["faults"] else text
