"""Attack serve: memory, an honest client's latency, and stored records, under each attack and 40,000 mutants.

Each attack runs against a server of its own, once read-only and once writable. An honest client, in a process of its
own, measures its waiting times throughout. The server must stay alive within its memory, answer honest clients within a
second, end within five seconds during the attack, and leave logs with everything that it acknowledged.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import Outcome
from proofs.serve.attacks import READING, WRITING, Battle
from proofs.serve.serve_fuzz import Sender, versions_of
from proofs.serve.target import MEGA, HonestClient, Target, make_logs, stored, verify_status
from proofs.serve.wire import TOPIC, Connection, commit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


SENDERS: Final = 4
MAX_FAULT_LINES: Final = 20
FEW_DESCRIPTORS: Final = 150
GONE_SECONDS: Final = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--requests", type=int, default=40_000, help="mutated requests")
    parser.add_argument("--seconds", type=float, default=10, help="how long each attack goes on")
    parser.add_argument("--scale", type=float, default=1, help="part of the full number of connections")
    parser.add_argument("--megabytes", type=int, default=200, help="memory that the server may take")
    parser.add_argument("--latency", type=float, default=1, help="seconds that an honest client may wait at most")
    parser.add_argument("--end", type=float, default=5, help="seconds that the server may take to end")
    parser.add_argument("--only", help="attacks whose labels, such as 'lookups, reading', have this in them")


def prove(options: argparse.Namespace) -> Outcome:
    """Run every attack against a new read-only server and against a new writable server."""
    failures: list[str] = []
    results: dict[str, Any] = {}
    for is_writable, attacks in ((False, READING), (True, WRITING)):
        named: list[tuple[str, Callable[[Battle], None]]] = [(each.__name__, each) for each in attacks]
        named.append(("mutated_requests", lambda battle: _mutate(battle, options.requests // 2, options.seed)))
        for name, attack in named:
            label = f"{name}, {'writable' if is_writable else 'reading'}"
            if options.only is None or options.only in label:
                found, wrong = _attacked(attack, options, is_writable=is_writable)
                results[label] = found
                failures += [f"{label}: {each}" for each in wrong]
                print(label, found, wrong or "", file=sys.stderr, flush=True)
    if not results:
        failures.append(f"no attack has {options.only!r} in its label")
    return Outcome({"attacks": results, "worst": _worst(results)}, failures)


def _mutate(battle: Battle, count: int, seed: int) -> None:
    port = battle.target.port
    versions = versions_of(port)
    senders = [Sender(port, seed * 1000 + number, count // SENDERS, versions) for number in range(SENDERS)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def _attacked(
    attack: Callable[[Battle], None], options: argparse.Namespace, *, is_writable: bool
) -> tuple[dict[str, Any], list[str]]:
    with tempfile.TemporaryDirectory(prefix="serve-attacks-") as root:
        directory = Path(root) / "logs"
        make_logs(directory)
        with Target(directory, is_writable=is_writable) as target:
            honest = HonestClient(target.port, is_writing=is_writable)
            battle = Battle(target, options.seconds, random.Random(options.seed), options.scale)
            load = os.getloadavg()[0]
            fighting = Thread(target=attack, args=(battle,), daemon=True)
            fighting.start()
            fighting.join(None if attack.__name__ == "<lambda>" else options.seconds)
            seen = honest.end()
            found = _measured(target, seen) | {"load_before": round(load, 1)}
            new_group = _takes_new_groups(target)
            still_fighting = Thread(target=attack, args=(battle._replace(seconds=3),), daemon=True)
            if attack.__name__ != "<lambda>":  # it must end during the attack
                still_fighting.start()
                time.sleep(1)
            target.end()
            for each in (fighting, still_fighting):
                if each.is_alive():
                    each.join()
        found |= {"end_seconds": target.end_seconds and round(target.end_seconds, 2), "end_status": target.end_status}
        found["verify"] = verify_status(directory)
        found["lost"] = len(_lost(directory, seen["acknowledged"]))
        wrong = _complaints(found, seen, options)
        return found, wrong if new_group else [*wrong, "a new group was not taken"]


def _measured(target: Target, seen: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + GONE_SECONDS
    while target.descriptors > FEW_DESCRIPTORS and time.monotonic() < deadline:
        time.sleep(0.1)
    return {
        "peak_mb": round(target.peak / MEGA, 1),
        "peak_anonymous_mb": round(target.peak_anonymous / MEGA, 1),
        "worst_seconds": seen["worst_seconds"],
        "asked": sum(seen["asked"].values()),
        "closed": seen["closed"],
        "wrong": seen["wrong"],
        "acknowledged": len(seen["acknowledged"]),
        "descriptors_after": target.descriptors,
        "alive": target.is_alive,
        "faults": _faults(target.said()),
    }


def _faults(said: list[str]) -> list[str]:
    """Return the server's reports of its own defects, with tracebacks."""
    first = next((at for at, line in enumerate(said) if "not answered" in line or "Traceback" in line), len(said))
    return said[first : first + MAX_FAULT_LINES]


def _takes_new_groups(target: Target) -> bool:
    try:
        with Connection(target.port) as connection:
            answer = connection.ask(commit("honest-and-new", 1))
    except OSError:
        return False
    return answer is not None and answer.endswith(b"\0\0")


def _lost(directory: Path, acknowledged: dict[str, str]) -> list[str]:
    values = stored(directory, 0)
    return [value for offset, value in acknowledged.items() if values.get(int(offset)) != value.encode()]


def _complaints(found: dict[str, Any], seen: dict[str, Any], options: argparse.Namespace) -> list[str]:
    """Return a line for each failure."""
    worst = max(seen["worst_seconds"].values())
    checks = {
        f"{found['peak_mb']} MB of memory": found["peak_mb"] <= options.megabytes,
        f"{found['peak_anonymous_mb']} MB of anonymous memory": found["peak_anonymous_mb"] <= options.megabytes,
        f"an honest client waited {worst} s": worst <= options.latency,
        f"an honest client was closed: {found['closed']}": not found["closed"],
        f"an honest client was answered wrongly: {found['wrong']}": not found["wrong"],
        "the server died": found["alive"],
        f"faults: {found['faults']}": not found["faults"],
        f"descriptors of gone clients: {found['descriptors_after']}": found["descriptors_after"] <= FEW_DESCRIPTORS,
        f"it ended after {found['end_seconds']} s": (found["end_seconds"] or 1e9) <= options.end,
        f"exit status {found['end_status']}": found["end_status"] == 0,
        f"verify says {found['verify']}": found["verify"] == 0,
        f"{found['lost']} acknowledged records of {TOPIC} are not stored": not found["lost"],
    }
    return [text for text, is_right in checks.items() if not is_right]


def _worst(results: dict[str, Any]) -> dict[str, float]:
    return {
        "peak_mb": max((each["peak_mb"] for each in results.values()), default=0),
        "peak_anonymous_mb": max((each["peak_anonymous_mb"] for each in results.values()), default=0),
        "seconds": max((max(each["worst_seconds"].values()) for each in results.values()), default=0),
        "end_seconds": max((each["end_seconds"] or 1e9 for each in results.values()), default=0),
    }
