"""The example of each command below a group, for its help page; the other commands have theirs beside them."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "tier ls": "seglog tier ls s3://bucket/tier",
    "tier fetch": "seglog tier fetch --topic orders /mnt/tier fetched",
    "tier verify": "seglog tier verify /mnt/tier",
    "tier audit": "seglog tier audit --logs /var/lib/kafka/data s3://bucket/tier",
    "spark stats": "seglog spark stats /backup/broker-1 /backup/broker-2",
    "spark verify": "seglog spark verify --json /backup",
    "spark diff": "seglog spark diff /backup/monday /backup/tuesday",
    "spark to-parquet": "seglog spark to-parquet /backup -o records.parquet",
    "spark restore": "seglog spark restore /backup -o restored",
    "conform run": "seglog conform run --testee reference --family 26",
    "conform smoke": "seglog conform smoke --adapter my-adapter",
    "conform new": "seglog conform new python my-adapter",
    "conform export": "seglog conform export --for go --ops decode,encode -o try",
    "conform list": "seglog conform list --family crc",
    "conform repro": "seglog conform repro null-header-value/alone",
    "conform report-issue": "seglog conform report-issue --testee kafka-python --rule SEG-COD-002",
    "conform generate": "seglog conform generate --testee reference --seed 3",
    "conform differential": "seglog conform differential --testee reference --testee plain",
    "conform cross": "seglog conform cross --testee reference --testee kafka-python",
    "conform bugs": "seglog conform bugs --testee kafka-python",
    "fixtures export": "seglog fixtures export -o seglog-vectors.zip",
    "fixtures list": "seglog fixtures list --family crc",
}
"""By the name of the command with that of its group."""


def epilog_of(name: str) -> str:
    """Return the end of a command's help page.

    Args:
        name: of the command, with that of its group.
    """
    return f"\b\nExample:\n  {EXAMPLES[name]}"
