"""The examples of the reference pages: commands on bundled directories, and illegal encodings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SPEC: Final = Path(__file__).resolve().parents[2] / "spec"
INVALID: Final = re.compile(
    r"^```(?:hex|text) invalid (?P<rule>SEG-[A-Z]{3}-\d{3})(?P<rest>[^\n]*)\n(?P<bytes>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

REAL: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "record_batch": (
        ("A batch of one record that has neither key nor value, by Kafka 4.3.", "kafka-4.3.0/one-0/{0}.log"),
    ),
    "control_record": (("An aborted transaction ends, by Kafka 4.3.", "kafka-4.3.0/txn-0/{0}.log --offset 16"),),
    "record": (("A record with headers, by Kafka 1.1.", "kafka-1.1.1/headers-0/{0}.log --count 1"),),
    "message_set": (
        ("Magic 0, by Kafka 0.8.2.", "kafka-0.8.2.2/one-0/{0}.log"),
        ("Magic 1, by Kafka 0.10.2.", "kafka-0.10.2.2/one-0/{0}.log"),
    ),
    "offset_index": (("By Kafka 4.3.", "kafka-4.3.0/segs-0/{0}.index"),),
    "time_index": (("By Kafka 4.3.", "kafka-4.3.0/segs-0/{0}.timeindex"),),
    "transaction_index": (("By Kafka 4.3: two transactions were aborted.", "kafka-4.3.0/txn-0/{0}.txnindex"),),
    "producer_snapshot": (("By Kafka 4.3.", "kafka-4.3.0/txn-0/00000000000000000039.snapshot"),),
}
"""By schema module: captions, and the arguments of `seglog inspect`, in which ``{0}`` is a name of zeros."""

LONGEST: Final = 40
"""Maximum number of lines of an example."""


def real_files(module: str) -> Iterator[str]:
    """Yield the lines of "In real files": transcripts, which are run when the pages are made.

    Args:
        module: stem of a schema module.
    """
    if module not in REAL:
        return
    yield "\n## In real files\n"
    for caption, arguments in REAL[module]:
        yield f"{caption}\n"
        command = f"seglog inspect demo/{arguments.format('0' * 20)}"
        yield f"```console\n$ {command} | head -n {LONGEST}\n```"


def unusual_examples(chapter: str) -> Iterator[str]:
    """Yield, folded, the examples of a chapter that a validator notes and a reader accepts: those of a MAY.

    Args:
        chapter: stem of its file.
    """
    yield from _folded(match for match in _examples(chapter) if requirements()[match["rule"]].level == "MAY")


def broken_examples(chapter: str) -> Iterator[str]:
    """Yield the lines of "Illegal encodings": every example of a chapter that breaks a MUST or a SHOULD, folded.

    Args:
        chapter: stem of its file.
    """
    found = [match for match in _examples(chapter) if requirements()[match["rule"]].level != "MAY"]
    if not found:
        return
    yield "\n## Illegal encodings\n"
    yield "What a reader refuses, or a validator reports, and the rule that says so. The tests read each of them.\n"
    yield from _folded(found)


def _examples(chapter: str) -> Iterator[re.Match[str]]:
    return INVALID.finditer((SPEC / f"{chapter}.md").read_text(encoding="utf-8"))


def _folded(found: Iterable[re.Match[str]]) -> Iterator[str]:
    for match in found:
        summary = f"<summary markdown>{match['rule']}</summary>"
        yield f"<details markdown>{summary}\n\n```text\n{match['bytes']}```\n\n</details>\n"
