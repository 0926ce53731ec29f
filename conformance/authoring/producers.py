"""Appends to a log that holds something: producers, their transactions, and leader epochs (part of family 41)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from authoring.batches import Batch, Rec
from authoring.casefile import Basis, Json, must, should
from authoring.control import data, empty, marker
from authoring.messages import Msg
from authoring.segments import bytes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from authoring.casefile import Family, Unit

LAST: Final = 2**31 - 1
LISTED: Final = "SEG-TXN-006"
SOURCE: Final = "facts 2.5 and 5.1"
Epochs = tuple[tuple[int, int], ...]


def batch(base: int, first: int, count: int = 1, *, epoch: int = 2, producer: int = 9) -> Batch:
    """Return records of a producer, by the sequence of the first; their offsets as a leader gives them."""
    recs = tuple(Rec(value=b"%d" % at) for at in range(count))
    return Batch(base=base, recs=recs, producer_id=producer, producer_epoch=epoch, base_sequence=first)


def sent(first: int, count: int = 1, **fields: Any) -> Batch:  # noqa: ANN401
    """Return the same as it is sent."""
    return batch(0, first, count, **fields)


def opened(base: int, producer: int = 9, sequence: int = 0, epoch: int = 2) -> Batch:
    """Return a batch of a transaction."""
    return replace(data(base, b"t", producer_id=producer, sequence=sequence), producer_epoch=epoch)


class States:
    """Adds cases to a family."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def ask(
        self,
        name: str,
        why: str,
        basis: Basis,
        log: Sequence[Unit],
        new: Sequence[Unit],
        expect: Json,
        **request: Any,  # noqa: ANN401
    ) -> None:
        """Add an append to a log."""
        end = log[-1].next_offset if log else 0
        given = {
            "data": bytes_of(new).hex(),
            "policy": "append",
            "log": bytes_of(log).hex(),
            "baseOffset": str(end),
            "now": "1000",
            **request,
        }
        own = replace(basis, needs=(*basis.needs, "logState"), source=SOURCE, flags=("APPEND_POLICY",))
        result = "invalid" if "reject" in expect else "valid"
        self.family.add(f"state-{name}", "validate", result, why, own, request=given, expect=expect)

    def takes(self, name: str, why: str, rule: str, log: Sequence[Unit], new: Unit, **more: Any) -> None:  # noqa: ANN401
        """Add one that is appended."""
        aborted = more.pop("aborted", [])
        basis = should(rule) if rule == LISTED else must(rule)
        self.ask(name, why, basis, log, [new], {"accept": True, "duplicateOf": None, "aborted": aborted}, **more)

    def repeats(self, name: str, why: str, log: Sequence[Unit], new: Unit, last: int) -> None:
        """Add one that is there already."""
        expect = {"accept": True, "duplicateOf": str(last), "entries": []}
        self.ask(name, why, must("SEG-APP-008"), log, [new], expect)

    def refuses(self, name: str, why: str, rule: str, log: Sequence[Unit], new: Unit, **more: Any) -> None:  # noqa: ANN401
        """Add one that is refused."""
        self.ask(name, why, must(rule), log, [new], {"reject": {"class": "policy"}}, **more)


def producers(family: Family) -> None:
    """Add the cases."""
    to = States(family)
    _sequences(to)
    _duplicates(to)
    _transactions(to)
    _epochs(family)


def _sequences(to: States) -> None:
    rule = "SEG-APP-007"
    log = [batch(0, 0, 3), batch(3, 3, 2)]
    to.takes("next-sequence", "The batch has the sequence after the last one of its producer.", rule, log, sent(5, 2))
    for first in (6, 7, 1000, LAST):
        to.refuses(
            f"sequence-{first}", "The sequence is too high: records before it are missing.", rule, log, sent(first)
        )
    for first, count in ((4, 2), (0, 1), (3, 1), (1, 2)):
        reason = "The sequence was used before, by another batch."
        to.refuses(f"sequence-{first}-of-{count}", reason, rule, log, sent(first, count))
    wrapped = [batch(0, LAST - 1, 2)]
    to.takes("wrap-to-0", "After the greatest sequence comes 0.", rule, wrapped, sent(0))
    to.refuses("wrap-to-1", "After the greatest sequence comes 0, not 1.", rule, wrapped, sent(1))
    inside = [batch(0, LAST - 1, 4)]
    to.takes(
        "wrapped-inside", "The last batch contains the greatest sequence and continues at 0.", rule, inside, sent(2)
    )
    reason = "The last batch continues at 0 after the greatest sequence; one sequence is missing after it."
    to.refuses("wrapped-inside-gap", reason, rule, inside, sent(3))
    to.takes("new-epoch", "A new epoch begins at 0.", rule, log, sent(0, epoch=3))
    to.refuses("new-epoch-5", "A new epoch begins at 0, and not where the old one ended.", rule, log, sent(5, epoch=3))
    newer = [*log, batch(5, 0, 1, epoch=3)]
    reason = "The sequence follows the last one of the newest producer epoch."
    to.takes("in-the-new-epoch", reason, rule, newer, sent(1, epoch=3))
    reason = "The sequence follows the last one of an older producer epoch: the leader refuses it."
    to.refuses("in-the-new-epoch-5", reason, rule, newer, sent(5, epoch=3))
    to.takes("unknown-producer", "An unknown producer may begin with any sequence.", rule, log, sent(77, producer=8))
    to.takes("empty-log", "In an empty log, a producer may begin with any sequence.", rule, [], sent(LAST))
    ended = [opened(0), marker("COMMIT", 1)]
    reason = "After an end marker, the sequence is the one after the last batch: a marker has no sequence."
    to.takes("behind-a-marker", reason, rule, ended, opened(0, sequence=1))
    reason = "An end marker takes no sequence: the leader refuses a batch that skips one."
    to.refuses("behind-a-marker-2", reason, rule, ended, opened(0, sequence=2))
    bumped = [opened(0), marker("COMMIT", 1, producer_epoch=3)]
    reason = "An end marker began a new producer epoch, in which sequences begin at 0."
    to.takes("behind-a-newer-marker", reason, rule, bumped, opened(0, epoch=3))
    reason = "An end marker began a new producer epoch: the leader refuses a sequence above 0."
    to.refuses("behind-a-newer-marker-1", reason, rule, bumped, opened(0, sequence=1, epoch=3))
    for kind in ("ABORT", "COMMIT"):
        why = "The producer is known by an end marker alone: it begins at 0."
        to.takes(f"behind-an-{kind.lower()}-alone", why, rule, [marker(kind, 0)], sent(0))
        for first in (1, 5, LAST):
            to.refuses(f"behind-an-{kind.lower()}-alone-{first}", why, rule, [marker(kind, 0)], sent(first))
    to.takes("no-producer", "A batch without a producer id has no sequence.", rule, log, Batch(recs=(Rec(),)))
    free = {"origin": "coordinator"}
    to.takes("of-a-coordinator", "A coordinator always writes sequence 0.", rule, log, sent(0), **free)
    reason = "A follower does not check sequences: its leader did."
    to.takes("replicated", reason, rule, log, batch(5, 99), policy="replicate")


def _duplicates(to: States) -> None:
    log = [batch(at, at) for at in range(7)]
    for first, last in ((6, 6), (4, 4), (2, 2)):
        why = "The batch repeats one of the last five of its producer: a leader does not append it again."
        to.repeats(f"again-{first}", why, log, sent(first), last)
    why = "The batch repeats the sixth from the end, which a leader does not remember."
    to.refuses("again-1", why, "SEG-APP-007", log, sent(1))
    long = [batch(0, 0, 3), batch(3, 3, 4)]
    why = "The batch has the first and last sequence of an earlier one: it is a duplicate."
    to.repeats("again-long", why, long, sent(3, 4), 6)
    to.repeats("again-first", "The batch repeats the last but one: it is a duplicate.", long, sent(0, 3), 2)
    for name, why, rule, old, count in (
        ("again-shorter", "The batch has the first sequence of an earlier one, but ends before it: it is no duplicate.", "SEG-APP-007", long, 3),
        ("again-longer", "The batch has the first sequence of an earlier one, but ends after it: it is no duplicate.", "SEG-APP-007", long, 5),
        ("again-older-epoch", "The batch repeats one of an older producer epoch: the leader refuses it.", "SEG-APP-009", [*long, batch(7, 0, epoch=3)], 4),
    ):  # fmt: skip
        to.refuses(name, why, rule, old, sent(3, count))
    wrapped = [batch(0, LAST - 1, 4)]
    apart = [batch(0, 0), batch(1, 0, producer=8), batch(2, 1)]
    for name, why, old, new, last in (
        ("again-wrapped", "The batch repeats one that contains the greatest sequence and continues at 0.", wrapped, sent(LAST - 1, 4), 3),
        ("again-of-another", "The batch repeats one of its own producer; batches of other producers do not matter.", apart, sent(0, producer=8), 1),
    ):  # fmt: skip
        to.repeats(name, why, old, new, last)


def _transactions(to: States) -> None:
    epoch, coordinators, part = "SEG-APP-009", "SEG-APP-022", "SEG-APP-023"
    log = [opened(0)]
    coordinator = {"origin": "coordinator"}
    to.takes("goes-on", "The batch continues the open transaction.", part, log, opened(0, sequence=1))
    reason = "While a transaction is open, all batches of its producer have to be part of it."
    to.refuses("not-part-of-it", reason, part, log, sent(1))
    for case, reason, old, new in (
        ("not-part-of-it-ended", "After the end of a transaction, its producer may append without one.", [*log, marker("ABORT", 1)], sent(1)),
        ("other-producer", "Another producer may append outside of the open transaction.", log, sent(0, producer=8)),
    ):  # fmt: skip
        to.takes(case, reason, part, old, new)
    reason = "The batch has an older producer epoch: a newer instance has replaced the producer."
    to.refuses("older-epoch", reason, epoch, [batch(0, 0, epoch=3)], sent(1))
    to.refuses("older-epoch-by-a-marker", "The batch has an older producer epoch than the last end marker.", epoch, [opened(0), marker("ABORT", 1, producer_epoch=3)], opened(0, sequence=1))  # fmt: skip
    to.takes(
        "commit", "A committed transaction is not listed as aborted.", LISTED, log, marker("COMMIT", 0), **coordinator
    )
    for name, before, producer, first, stable in (
        ("alone", [opened(0)], 9, 0, 2),
        ("behind-data", [Batch(base=0), opened(1), opened(2, sequence=1)], 9, 1, 4),
        ("older-open", [opened(0, 8), opened(1)], 9, 1, 0),
        ("newer-open", [opened(0), opened(1, 8)], 9, 0, 1),
        ("second", [opened(0), marker("ABORT", 1), opened(2, sequence=1)], 9, 2, 4),
        ("two-open", [opened(0, 7), opened(1), opened(2, 8)], 9, 1, 0),
        ("producer-0", [opened(0, 0)], 0, 0, 2),
        ("emptied-marker", [opened(0), empty(1, 0, attributes=0x30, producer_id=9, producer_epoch=2)], 9, 0, 3),
    ):
        end = before[-1].next_offset
        reported = {
            "producerId": str(producer),
            "firstOffset": str(first),
            "lastOffset": str(end),
            "lastStableOffset": str(stable),
        }
        why = (
            "An aborted transaction is listed with its first offset, the offset of its marker, and the last "
            "stable offset."
        )
        ending = marker("ABORT", 0, producer_id=producer)
        to.takes(f"abort-{name}", why, LISTED, before, ending, aborted=[reported], **coordinator)
        copied = replace(ending, base=end)
        to.takes(f"abort-{name}-replicated", why, LISTED, before, copied, aborted=[reported], policy="replicate")
    to.takes("abort-of-nothing", "An aborted transaction without records is not listed.", LISTED, [batch(0, 0)], marker("ABORT", 0), **coordinator)  # fmt: skip
    hollow = empty(1, 0, attributes=0x30, producer_id=9, producer_epoch=2)
    to.takes("emptied-marker", "A control batch without a record ends nothing.", "SEG-CTL-007", log, hollow, policy="replicate")  # fmt: skip
    seen = [opened(0), marker("COMMIT", 1, epoch=7)]
    to.refuses("older-coordinator", "The end marker has an older coordinator epoch: another coordinator has replaced the writer.", coordinators, seen, marker("ABORT", 0, epoch=6), **coordinator)  # fmt: skip
    reason = "The end marker has the same coordinator epoch as the one before."
    to.takes("same-coordinator", reason, coordinators, seen, marker("ABORT", 0, epoch=7), **coordinator)
    why = "The end marker has an older producer epoch than the last batch or end marker."
    for kind in ("ABORT", "COMMIT"):
        for newest in (3, 2**15 - 1):
            for state, log in (
                ("open", [opened(0, epoch=newest)]),
                ("ended", [opened(0, epoch=newest), marker("COMMIT", 1, producer_epoch=newest)]),
                ("marker", [marker("ABORT", 0, producer_epoch=newest)]),
            ):
                name = f"{kind.lower()}-of-an-older-epoch-than-{newest}-{state}"
                to.refuses(name, why, epoch, log, marker(kind, 0), **coordinator)
    older = [{"producerId": "9", "firstOffset": "0", "lastOffset": "1", "lastStableOffset": "2"}]
    to.takes(
        "older-epoch-replicated",
        "A follower takes an end marker of an older producer epoch from its leader.",
        epoch,
        [opened(0, epoch=3)],
        marker("ABORT", 1),
        aborted=older,
        policy="replicate",
    )


def assigned(
    family: Family,
    name: str,
    why: str,
    known: Epochs,
    units: Sequence[Unit],
    found: Epochs,
    basis: Basis,
    *,
    is_refusable: bool = False,
) -> None:
    """Add what becomes of known leader epochs when a follower appends some units."""
    request = {
        "data": bytes_of(units).hex(),
        "policy": "replicate",
        "baseOffset": "0",
        "leaderEpochs": [[epoch, str(start)] for epoch, start in known],
    }
    expect: Json = {"accept": True, "leaderEpochs": [[epoch, str(start)] for epoch, start in found]}
    if is_refusable:
        expect = {
            "allowed": [{"branch": "passed over", **expect}, {"branch": "refused", "reject": {"class": "policy"}}]
        }
    result = "acceptable" if is_refusable else "valid"
    family.add(f"epochs-{name}", "validate", result, why, basis, request=request, expect=expect)


def _epochs(family: Family) -> None:
    """Family 41, what becomes of the leader epochs."""
    basis = must("SEG-APP-016", needs=("leaderEpochs",), source="facts 4.7 and 5.1", flags=("APPEND_POLICY",))
    forgotten = replace(basis, req=("SEG-APP-025",))

    def assigns(
        name: str,
        why: str,
        known: Epochs,
        units: Sequence[Unit],
        found: Epochs,
        basis: Basis = basis,
        *,
        is_refusable: bool = False,
    ) -> None:
        assigned(family, name, why, known, units, found, basis, is_refusable=is_refusable)

    def of(*epochs: int, base: int = 30) -> list[Batch]:
        return [Batch(base=base + at, leader_epoch=epoch) for at, epoch in enumerate(epochs)]

    known = ((0, 0), (5, 10), (7, 20))
    for name, why, given, units, found in (
        ("none", "The first batch of a log adds its leader epoch.", (), of(0), ((0, 30),)),
        ("same", "A batch of the latest known leader epoch adds nothing.", known, of(7), known),
        ("next", "A batch of a later leader epoch adds that epoch.", known, of(8), (*known, (8, 30))),
        ("several", "Several batches of a leader epoch add it once, at the first of them.", known, of(7, 8, 8, 11), (*known, (8, 31), (11, 33))),
        ("between", "A batch of an epoch between known ones removes the later epochs.", known, of(6), ((0, 0), (5, 10), (6, 30))),
        ("known-before", "A batch of an earlier known epoch removes the later epochs and moves that one to its offset.", known, of(5), ((0, 0), (5, 30))),
        ("below-all", "A batch of the first known epoch removes all and adds that one at its offset.", known, of(0), ((0, 30),)),
        ("later-at-the-start", "A batch removes known epochs that begin at its offset.", known, of(8, base=20), ((0, 0), (5, 10), (8, 20))),
        ("later-before-the-start", "A batch removes known epochs that begin above its offset.", known, of(8, base=15), ((0, 0), (5, 10), (8, 15))),
        ("later-before-all", "All known epochs begin above the offset of the batch: it removes them.", ((3, 10), (4, 20)), of(8, base=5), ((8, 5),)),
        ("same-but-earlier", "The batch has a known epoch, but a smaller offset than the known start: the epoch then begins there.", known, of(7, base=15), ((0, 0), (5, 10), (7, 15))),
        ("back-and-forth", "The leader epoch of the second batch is smaller than that of the first.", (), of(4, 3, 4), ((3, 31), (4, 32))),
    ):  # fmt: skip
        assigns(name, why, given, units, found)
    for name, why, given, found in (
        ("minus-1", "A batch without a leader epoch (-1) changes nothing; Kafka 4.4 refuses it.", known, known),
        ("minus-1-alone", "A batch without a leader epoch (-1), in a log without epochs, adds none.", (), ()),
    ):  # fmt: skip
        assigns(name, why, given, of(-1), found, is_refusable=True)
    old = [Msg(offset=30, timestamp=1000)]
    for name, why, given in (
        ("old-message", "Messages of magic 0 and 1 have no leader epoch: all known epochs are removed.", known),
        ("old-message-alone", "A message without a leader epoch, in a log without epochs, adds none.", ()),
    ):  # fmt: skip
        assigns(name, why, given, old, (), forgotten)
