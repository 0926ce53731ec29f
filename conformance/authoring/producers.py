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
    to.takes("next-sequence", "The sequence after the last.", rule, log, sent(5, 2))
    for first in (6, 7, 1000, LAST):
        to.refuses(f"sequence-{first}", "Records before it are missing.", rule, log, sent(first))
    for first, count in ((4, 2), (0, 1), (3, 1), (1, 2)):
        to.refuses(
            f"sequence-{first}-of-{count}", "It was sent before, and not as this batch.", rule, log, sent(first, count)
        )
    wrapped = [batch(0, LAST - 1, 2)]
    to.takes("wrap-to-0", "After the greatest sequence comes 0.", rule, wrapped, sent(0))
    to.refuses("wrap-to-1", "After the greatest sequence comes 0, not 1.", rule, wrapped, sent(1))
    inside = [batch(0, LAST - 1, 4)]
    to.takes("wrapped-inside", "The sequences of one batch went over the greatest.", rule, inside, sent(2))
    to.refuses("wrapped-inside-gap", "One is missing behind that.", rule, inside, sent(3))
    to.takes("new-epoch", "A new epoch begins at 0.", rule, log, sent(0, epoch=3))
    to.refuses("new-epoch-5", "A new epoch begins at 0, and not where the old one ended.", rule, log, sent(5, epoch=3))
    newer = [*log, batch(5, 0, 1, epoch=3)]
    to.takes("in-the-new-epoch", "Sequences count in the newest epoch.", rule, newer, sent(1, epoch=3))
    to.refuses("in-the-new-epoch-5", "The old epoch does not count any more.", rule, newer, sent(5, epoch=3))
    to.takes("unknown-producer", "Of another producer nothing is known.", rule, log, sent(77, producer=8))
    to.takes("empty-log", "Of no producer anything is known.", rule, [], sent(LAST))
    ended = [opened(0), marker("COMMIT", 1)]
    to.takes("behind-a-marker", "A marker has no sequence.", rule, ended, opened(0, sequence=1))
    to.refuses("behind-a-marker-2", "Nor does it take one.", rule, ended, opened(0, sequence=2))
    bumped = [opened(0), marker("COMMIT", 1, producer_epoch=3)]
    to.takes("behind-a-newer-marker", "The marker began a new epoch.", rule, bumped, opened(0, epoch=3))
    to.refuses("behind-a-newer-marker-1", "Which begins at 0.", rule, bumped, opened(0, sequence=1, epoch=3))
    to.takes("no-producer", "Without a producer there is no sequence.", rule, log, Batch(recs=(Rec(),)))
    free = {"origin": "coordinator"}
    to.takes("of-a-coordinator", "Coordinators always write 0.", rule, log, sent(0), **free)
    to.takes("replicated", "A follower takes what its leader took.", rule, log, batch(5, 99), policy="replicate")


def _duplicates(to: States) -> None:
    log = [batch(at, at) for at in range(7)]
    for first, last in ((6, 6), (4, 4), (2, 2)):
        to.repeats(f"again-{first}", "One of the last five batches: it is not appended again.", log, sent(first), last)
    to.refuses("again-1", "The sixth from the end is not remembered.", "SEG-APP-007", log, sent(1))
    long = [batch(0, 0, 3), batch(3, 3, 4)]
    to.repeats("again-long", "Its first and its last sequence are the same.", long, sent(3, 4), 6)
    to.repeats("again-first", "The one before, too.", long, sent(0, 3), 2)
    to.refuses("again-shorter", "Its last sequence is another one.", "SEG-APP-007", long, sent(3, 3))
    to.refuses("again-longer", "So is that of a longer one.", "SEG-APP-007", long, sent(3, 5))
    to.refuses(
        "again-older-epoch", "The epoch is an older one.", "SEG-APP-009", [*long, batch(7, 0, epoch=3)], sent(3, 4)
    )
    wrapped = [batch(0, LAST - 1, 4)]
    to.repeats("again-wrapped", "Its sequences went over the greatest.", wrapped, sent(LAST - 1, 4), 3)
    apart = [batch(0, 0), batch(1, 0, producer=8), batch(2, 1)]
    to.repeats("again-of-another", "Each producer has its own.", apart, sent(0, producer=8), 1)


def _transactions(to: States) -> None:
    epoch, coordinators, part = "SEG-APP-009", "SEG-APP-022", "SEG-APP-023"
    log = [opened(0)]
    coordinator = {"origin": "coordinator"}
    to.takes("goes-on", "The transaction goes on.", part, log, opened(0, sequence=1))
    to.refuses("not-part-of-it", "While it is open, all of its producer is part of it.", part, log, sent(1))
    to.takes("not-part-of-it-ended", "Once it has ended, not.", part, [*log, marker("ABORT", 1)], sent(1))
    to.takes("other-producer", "Others may write what they like.", part, log, sent(0, producer=8))
    to.refuses("older-epoch", "A producer that was replaced.", epoch, [batch(0, 0, epoch=3)], sent(1))
    to.refuses("older-epoch-by-a-marker", "The marker has the newer epoch.", epoch, [opened(0), marker("ABORT", 1, producer_epoch=3)], opened(0, sequence=1))  # fmt: skip
    to.takes("commit", "A committed transaction is not listed.", LISTED, log, marker("COMMIT", 0), **coordinator)
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
        reported = {"producerId": str(producer), "firstOffset": str(first), "lastOffset": str(end), "lastStableOffset": str(stable)}  # fmt: skip
        why = "What is aborted is listed: from its first offset to the marker, and where reading may go up to."
        ending = marker("ABORT", 0, producer_id=producer)
        to.takes(f"abort-{name}", why, LISTED, before, ending, aborted=[reported], **coordinator)
        copied = replace(ending, base=end)
        to.takes(f"abort-{name}-replicated", why, LISTED, before, copied, aborted=[reported], policy="replicate")
    to.takes("abort-of-nothing", "An empty transaction is not listed.", LISTED, [batch(0, 0)], marker("ABORT", 0), **coordinator)  # fmt: skip
    hollow = empty(1, 0, attributes=0x30, producer_id=9, producer_epoch=2)
    to.takes("emptied-marker", "A control batch without a record ends nothing.", "SEG-CTL-007", log, hollow, policy="replicate")  # fmt: skip
    seen = [opened(0), marker("COMMIT", 1, epoch=7)]
    to.refuses("older-coordinator", "A coordinator that was replaced.", coordinators, seen, marker("ABORT", 0, epoch=6), **coordinator)  # fmt: skip
    to.takes("same-coordinator", "The same one.", coordinators, seen, marker("ABORT", 0, epoch=7), **coordinator)
    to.refuses(
        "marker-of-an-older-epoch",
        "The producer is newer than the marker.",
        epoch,
        [opened(0, epoch=3)],
        marker("ABORT", 0),
        **coordinator,
    )
    older = [{"producerId": "9", "firstOffset": "0", "lastOffset": "1", "lastStableOffset": "2"}]
    to.takes(
        "older-epoch-replicated",
        "A follower takes it.",
        epoch,
        [opened(0, epoch=3)],
        marker("ABORT", 1),
        aborted=older,
        policy="replicate",
    )


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

    def of(*epochs: int, base: int = 30) -> list[Batch]:
        return [Batch(base=base + at, leader_epoch=epoch) for at, epoch in enumerate(epochs)]

    known = ((0, 0), (5, 10), (7, 20))
    assigns("none", "The first one.", (), of(0), ((0, 30),))
    assigns("same", "The one that is the latest.", known, of(7), known)
    assigns("next", "A later one begins.", known, of(8), (*known, (8, 30)))
    assigns("several", "Each begins once.", known, of(7, 8, 8, 11), (*known, (8, 31), (11, 33)))
    assigns("between", "Those after it go.", known, of(6), ((0, 0), (5, 10), (6, 30)))
    assigns("known-before", "One that was known begins anew.", known, of(5), ((0, 0), (5, 30)))
    assigns("below-all", "All of them go.", known, of(0), ((0, 30),))
    assigns("later-at-the-start", "What began at the offset goes.", known, of(8, base=20), ((0, 0), (5, 10), (8, 20)))
    assigns("later-before-the-start", "Or above it.", known, of(8, base=15), ((0, 0), (5, 10), (8, 15)))
    assigns("later-before-all", "All began above it.", ((3, 10), (4, 20)), of(8, base=5), ((8, 5),))
    assigns("same-but-earlier", "It began earlier than was known.", known, of(7, base=15), ((0, 0), (5, 10), (7, 15)))
    assigns("back-and-forth", "An epoch that goes back.", (), of(4, 3, 4), ((3, 31), (4, 32)))
    assigns("minus-1", "No epoch; 4.4 refuses it.", known, of(-1), known, is_refusable=True)
    assigns("minus-1-alone", "Nor where none is known.", (), of(-1), (), is_refusable=True)
    old = [Msg(offset=30, timestamp=1000)]
    assigns("old-message", "Messages have none: all are forgotten.", known, old, (), forgotten)
    assigns("old-message-alone", "Nothing is known.", (), old, (), forgotten)
