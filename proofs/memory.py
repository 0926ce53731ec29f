"""Reading needs at most 100 MB more under a held lock; sparse and oversized files cause no failure."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import Outcome
from proofs.memory_logs import MEBIBYTE, full_log, held, huge_files, sparse_log
from proofs.memory_tasks import RECORDS, REFERENCE, SCAN, SPARK, command, of_file, salvage, script, serve

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from proofs.children import Ended
    from proofs.memory_logs import Made
    from proofs.memory_tasks import Task


MAX_MORE: Final = 100 * MEBIBYTE
"""Anonymous memory that a held lock may cost."""
MOST: Final = 300 * MEBIBYTE
"""Anonymous memory that anything about sparse segments may take."""
ADDRESS_SPACE: Final = 4 * 2**30
BUSY: Final = ", a broker is at work"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this proof."""
    parser.add_argument("--megabytes", type=int, default=1024, help="of each segment with small records")
    parser.add_argument("--segments", type=int, default=3, help="with small records")
    parser.add_argument("--sparse-segments", type=int, default=10, help="of nearly 2 GiB")
    parser.add_argument("--only", help="nothing but the tasks with this in their names")


def prove(options: argparse.Namespace) -> Outcome:
    """Run every task with and without a held lock, and those of sparse segments under one."""
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="seglog-memory-") as name:
        scratch = Path(name)
        made = full_log(scratch / "full", options.seed, options.segments, options.megabytes * MEBIBYTE)
        compared = [_compared(task, made, failures) for task in tasks(scratch, made) if _is_wanted(task, options)]
        sparse = [
            fact
            for has_hole in (False, True)
            for fact in _sparse(scratch / f"sparse-{has_hole}", options, failures, has_hole=has_hole)
        ]
        refused = list(_refused(scratch / "huge", options, failures))
    return Outcome({"compared": compared, "sparse": sparse, "refused": refused}, failures)


def _is_wanted(task: Task, options: argparse.Namespace) -> bool:
    return options.only is None or options.only in task.name


def tasks(scratch: Path, made: Made) -> list[Task]:
    """Return all tasks that read a partition."""
    scans = ((layout, threads) for layout in ("view", "binary") for threads in (1, 2))
    return [
        command("ls", "ls", "--json"),
        command("ls of the log directory", "ls", "--json", of_root=True),
        command("dump --to 5", "dump", "--json", "--to", "5"),
        command("verify", "verify"),
        command("recover", "recover", "--json", of_root=True),
        command("lookup", "lookup", "--json", "--offset", str(made.end - 3)),
        command("index", "index", "--json"),
        of_file("inspect", "inspect", "--json", "--offset", str(made.segments[0][1] - 1)),
        salvage(scratch),
        *(script(f"scan {layout}, {threads} threads", SCAN, layout, threads) for layout, threads in scans),
        script("records", RECORDS, 0, 0),
        script("records by the reference", REFERENCE + RECORDS, 0, 20_000),
        script("the last records", RECORDS, made.end - 5, 3),
        script("spark", SPARK, "failfast"),
        script("spark, permissive", SPARK, "permissive"),
        serve(2**40),
    ]


def _compared(task: Task, made: Made, failures: list[str]) -> dict[str, Any]:
    """Run a task without and with a held lock."""
    free = task.run(made)
    with held(made.root):
        busy = task.run(made)
    if free.status != busy.status or free.output != busy.output.replace(BUSY, "") or "Traceback" in busy.errors:
        failures.append(f"{task.name}: another answer under a lock: {free.status} {busy.status} {busy.errors[-300:]}")
    if free.status not in {0, 1} or not free.output:
        failures.append(f"{task.name}: status {free.status}: {free.errors[-300:]}")
    more = busy.anonymous_bytes - free.anonymous_bytes
    if more > MAX_MORE:
        failures.append(f"{task.name}: {more // MEBIBYTE} MiB more under a lock")
    return _fact(task.name, busy) | {"without_lock_mib": free.anonymous_bytes // MEBIBYTE}


def _fact(name: str, ended: Ended) -> dict[str, Any]:
    return {"task": name, "mib": ended.anonymous_bytes // MEBIBYTE, "status": ended.status}


def _sparse(
    root: Path, options: argparse.Namespace, failures: list[str], *, has_hole: bool
) -> Iterable[dict[str, Any]]:
    """Yield facts about sparse segments under a held lock, with unlimited address space and with 4 GB of it."""
    made = sparse_log(root, options.sparse_segments, 1900 * MEBIBYTE, has_hole=has_hole)
    for space in (None, ADDRESS_SPACE):
        for task, is_right in sparse_tasks(made, space, has_hole=has_hole):
            if not _is_wanted(task, options):
                continue
            with held(made.root):
                ended = task.run(made)
            name = f"{task.name}, {'a hole' if has_hole else 'large batches'}, {space or 'any'} address space"
            if "Traceback" in ended.errors or not is_right(ended):
                failures.append(f"{name}: {ended.status} {ended.output[:300]!r} {ended.errors[-300:]!r}")
            if ended.anonymous_bytes > MOST:
                failures.append(f"{name}: {ended.anonymous_bytes // MEBIBYTE} MiB")
            yield _fact(name, ended)


def sparse_tasks(made: Made, space: int | None, *, has_hole: bool) -> Iterable[tuple[Task, Callable[[Ended], bool]]]:
    """Yield tasks, each with a check of its answer."""
    first_next = made.readable if has_hole else made.segments[0][1]
    last_next = made.segments[-1][0] + first_next
    yield (
        command("ls", "ls", "--json", address_space=space),
        lambda ended: f'"nextOffset":{first_next},' in ended.output and f'"nextOffset":{last_next},' in ended.output,
    )
    yield (command("verify", "verify", of_root=True, address_space=space), lambda ended: ended.status == int(has_hole))
    yield (
        command("recover", "recover", "--json", of_root=True, address_space=space),
        lambda ended: ended.status == int(has_hole) and str(first_next if has_hole else made.end) in ended.output,
    )
    yield (
        command("dump --to 5", "dump", "--to", "5", address_space=space),
        lambda ended: [f"    {offset}  " in ended.output for offset in (0, 4, 5)] == [True, True, False],
    )
    starts = (0,) if has_hole else (0, made.end - 30)
    for start in starts:
        yield (
            script(f"records({start})", RECORDS, start, 20, address_space=space),
            lambda ended, start=start: ended.output.split() == [str(start + 19), "5"],
        )
    if not has_hole:
        yield (
            script("lookup", RECORDS, made.segments[-1][0] + first_next - 25, 20, address_space=space),
            lambda ended: ended.output.split() == [str(made.end - 6), "5"],
        )


def _refused(root: Path, options: argparse.Namespace, failures: list[str]) -> Iterable[dict[str, Any]]:
    """Yield facts about a log and an index of 10 GB: a task reports each in a line, and does not run out of memory."""
    made = huge_files(root, 10 * 2**30)
    space = 6 * 2**30
    lookup = command("lookup", "lookup", "--offset", str(made.segments[1][0] + 1), address_space=space)
    of_partition = (command(name, name, address_space=space) for name in ("ls", "dump", "verify", "recover"))
    wanted = (*of_partition, lookup, salvage(root))
    for task in wanted:
        if not _is_wanted(task, options):
            continue
        ended = task.run(made)
        lines = [line for line in ended.errors.splitlines() if made.log(1).name in line]
        if "Traceback" in ended.errors or ended.status < 0 or ended.anonymous_bytes > MOST:
            failures.append(f"{task.name} of 10 GB: {ended.status} {ended.errors[-300:]!r} {ended.anonymous_bytes}")
        if not lines and made.log(1).name not in ended.output:
            failures.append(f"{task.name} of 10 GB says nothing of {made.log(1).name}: {ended.errors[-300:]!r}")
        yield _fact(f"{task.name} of 10 GB", ended)
