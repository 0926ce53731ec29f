"""What control records say, field by field, and which of them say nothing (part of family 18)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from authoring.casefile import Json, must
from authoring.control import KRAFT_VALUES, TYPES, control_key, kraft, marker, marker_value

if TYPE_CHECKING:
    from authoring.batches import Batch
    from authoring.casefile import Family

FIELDS: Final[dict[str, Json]] = {
    "LEADER_CHANGE": {
        "version": 0,
        "leaderId": 1,
        "voters": [{"voterId": 1}, {"voterId": 2}],
        "grantingVoters": [{"voterId": 2}],
    },
    "SNAPSHOT_HEADER": {"version": 0, "lastContainedLogTimestamp": 99},
    "SNAPSHOT_FOOTER": {"version": 0},
    "KRAFT_VERSION": {"version": 0, "kRaftVersion": 1},
    "KRAFT_VOTERS": {
        "version": 0,
        "voters": [
            {
                "voterId": 1,
                "voterDirectoryId": "AAAAAAAAAAEAAAAAAAAAAg",
                "endpoints": [{"name": "C", "host": "h", "port": 9093}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
        ],
    },
}
NEEDS: Final = ("decoded", "control:surfaced")


def control_fields(family: Family) -> None:
    """Add the cases."""

    def says(name: str, why: str, rule: str, batch: Batch, **fields: Any) -> None:  # noqa: ANN401
        rec = replace(batch.recs[0], control=(*batch.recs[0].control, *fields.items()))
        family.valid(f"says-{name}", why, must(rule, needs=NEEDS), replace(batch, recs=(rec,)))

    for kind, value in KRAFT_VALUES.items():
        short = kind.lower().replace("_", "-")
        why = "A reader returns the fields of a control record of the metadata log."
        says(short, why, "SEG-CTL-006", kraft(kind, value), decoded=FIELDS[kind], invalid=None)
        for name, unusual in (("null", None), ("version-minus-1", b"\xff\xff" + value[2:]), ("version-least", b"\x80\0" + value[2:])):  # fmt: skip
            why = "The value is null or has a negative version: the control record has no readable fields."
            says(f"{short}-{name}", why, "SEG-CTL-006", _nothing(kraft(kind, value), unusual), invalid="SEG-CTL-006")
        for at in range(len(value)):
            says(
                f"{short}-cut-at-{at}",
                "The value of the control record is cut short: it has no readable fields.",
                "SEG-CTL-006",
                _nothing(kraft(kind, value[:at]), value[:at]),
                invalid="SEG-CTL-006",
            )
    for kind in ("ABORT", "COMMIT"):
        says(
            kind.lower(),
            "An end marker says whether the transaction was committed, and has the coordinator epoch.",
            "SEG-CTL-004",
            marker(kind, 5),
            decoded={"version": 0, "coordinatorEpoch": 7},
            invalid=None,
        )
    base = marker("ABORT", 5)
    for at in range(6):
        cut = replace(base, recs=(replace(base.recs[0], value=marker_value(0)[:at], control=(("control", None),)),))
        why = "The value of the end marker is too short: it has no readable fields."
        says(f"abort-cut-at-{at}", why, "SEG-CTL-004", cut, invalid="SEG-CTL-004")
    for at in range(4):
        cut = replace(base, recs=(replace(base.recs[0], key=control_key(0)[:at], control=(("control", None),)),))
        why = "The key of the control record is too short: its type cannot be read."
        says(f"key-cut-at-{at}", why, "SEG-CTL-001", cut, invalid="SEG-CTL-001")
    key = replace(base, recs=(replace(base.recs[0], key=None, control=(("control", None),)),))
    why = "The control record has a null key: its type cannot be read."
    says("no-key", why, "SEG-CTL-001", key, invalid="SEG-CTL-001")
    assert set(KRAFT_VALUES) <= set(TYPES)


def _nothing(batch: Batch, value: bytes | None) -> Batch:
    return replace(batch, recs=(replace(batch.recs[0], value=value, control=(("control", None),)),))
