"""What `power_cuts.py` holds a log against: what was appended, and how much of it has to be there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Appended:
    """A batch as it is to stand in the log, its offset, and the one after it."""

    data: bytes
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is to stand in the place of the batches from an offset on, and below another one."""

    start: int
    end: int
    batches: tuple[Appended, ...]

    def holds(self, batch: Appended) -> bool:
        """Whether a batch is one of those that are replaced."""
        return self.start <= batch.start < self.end


@dataclass(frozen=True, slots=True)
class Promise:
    """What has to be in a log after a power cut.

    Attributes:
        appended: the log is a run of these; it begins with the first of them, but for what may be gone.
        acknowledged: everything below was said to be on the disk.
        start: batches that end here or below may be gone, the first ones first.
        groups: of segments that are being compacted, each as a whole.
    """

    appended: tuple[Appended, ...] = ()
    acknowledged: int = 0
    start: int = 0
    groups: tuple[Compacted, ...] = ()

    def kept(self, found: bytes, *, zeros_may_follow: bool = False) -> list[Appended]:
        """Which of the batches are there.

        Args:
            found: the bytes of all segments.
            zeros_may_follow: the last one is open, and may be preallocated.

        Raises:
            BrokenPromiseError: something else is there, or something is not.
        """
        appended = self._as_replaced(found)
        first, size = self._first(appended, found), 0
        last = first
        while last < len(appended) and size < len(found):
            batch = appended[last]
            if found[size : size + len(batch.data)] != batch.data:
                msg = f"at offset {batch.start} is something else than what was appended"
                raise BrokenPromiseError(msg)
            size, last = size + len(batch.data), last + 1
        if size != len(found) and not (zeros_may_follow and not any(found[size:])):
            msg = f"{len(found) - size} bytes more than what was appended"
            raise BrokenPromiseError(msg)
        self._check_rest(appended[last:])
        return appended[first:last]

    def _as_replaced(self, found: bytes) -> list[Appended]:
        """The batches, each group of segments as it was or as it is to be; the log tells which."""
        appended = list(self.appended)
        for group in self.groups:
            inside = [number for number, each in enumerate(appended) if group.holds(each)]
            old = b"".join(appended[number].data for number in inside)
            if inside and old not in found:
                appended[inside[0] : inside[-1] + 1] = group.batches
        return appended

    def _first(self, appended: list[Appended], found: bytes) -> int:
        """Number of the batch that the log begins with."""
        gone = sum(batch.end <= self.start for batch in appended)
        if not any(found):
            return gone
        return next((number for number in range(gone) if found.startswith(appended[number].data)), gone)

    def _check_rest(self, missing: list[Appended]) -> None:
        """What is not there behind the last batch was not acknowledged."""
        if missing and missing[0].start < self.acknowledged:
            msg = (
                f"the batch at offset {missing[0].start} is missing, "
                f"but everything below {self.acknowledged} was acknowledged"
            )
            raise BrokenPromiseError(msg)

    def keeps_more(self, kept: list[Appended]) -> bool:
        """Whether the batches that are there are more than what was acknowledged."""
        return bool(kept) and kept[-1].end > self.acknowledged


class BrokenPromiseError(Exception):
    """A log is not what it has to be."""
