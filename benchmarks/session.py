"""One session: every work on every set, by all contenders that support it, in turns."""

from __future__ import annotations

import math
import statistics
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from peers import OURS, PROGRAMS, Contender
from pipe import NotBuiltError, PeerError, Process
from templates import BATCH_MS, FIRST_TIMESTAMP_MS

from proofs.report_facts import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datasets import DataSet
    from works import Work

MIN_SECONDS: Final = 0.4
"""Seconds of a turn, for which short passes are repeated: so each median covers an equal time on a machine whose speed
varies."""
MAX_PASSES: Final = 40
SLOW_SECONDS: Final = 2.0
SLOW_ROUNDS: Final = 1
LOOKUPS: Final = 300
"""Maximum number of lookups in a pass."""
STRIDE: Final = 7919
"""Step between looked up batches, a prime, so lookups are spread."""
WARM_UP: Final = 2
"""Passes of a contender before its first round."""


def looked_up(records: int, batches: int, passes: int, number: int) -> list[int]:
    """Return the offsets of a pass of lookups: each in a batch of its own, in which no other pass looks.

    A reader may keep the last batches that it decoded. A second lookup in a batch would then be one in a cache.

    Args:
        records: number of records in the log, spread evenly over the batches.
        batches: number of batches.
        passes: number of passes of a contender.
        number: number of this pass, from 0.
    """
    count = lookups_of(batches, passes)
    step = STRIDE if batches % STRIDE else 1
    chosen = [(number * count + each) * step % batches for each in range(count)]
    return [(2 * batch + 1) * records // (2 * batches) for batch in chosen]


def times_at(offsets: Sequence[int], data: DataSet) -> list[int]:
    """Return a time in the middle of the batch of each offset; batches of these sets begin at equal intervals."""
    batches = [offset * data.batches // data.records for offset in offsets]
    return [FIRST_TIMESTAMP_MS + batch * BATCH_MS + BATCH_MS // 2 for batch in batches]


def lookups_of(batches: int, passes: int) -> int:
    """Return the number of lookups in a pass, so that all passes look in different batches."""
    return min(LOOKUPS, batches // passes)


@dataclass(slots=True)
class Row:
    """The times of one contender for one work on one set.

    Attributes:
        seconds: seconds of each pass.
        note: reason why there are none.
        agrees: whether it found the same contents as the others; None if it reported none.
        asked: number of times that it was asked.
        processor_seconds: processor time of a pass, for each turn. It includes what the peer does around the passes,
            such as opening the log, and the compiler and collector of its runtime.
    """

    work: Work
    data: DataSet
    contender: Contender
    seconds: list[float] = field(default_factory=list)
    note: str = ""
    agrees: bool | None = None
    asked: int = 0
    processor_seconds: list[float] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Return the megabytes of the log a second in the median pass, or the lookups a second."""
        return (1.0 if self.work.per_lookup else self.data.size / 1e6) / statistics.median(self.seconds)

    def reported(self) -> dict[str, Any]:
        """Return the row for the report."""
        row = {
            "work": self.work.key,
            "data": self.data.name,
            "contender": self.contender.name,
            "program": self.contender.program,
        }
        if self.contender.program == OURS.name:
            row["call"] = self.work.call
        if not self.seconds:
            return {**row, "note": self.note}
        figures = spread(self.seconds)
        unit = "lookupsPerSecond" if self.work.per_lookup else "megabytesPerSecond"
        speeds = {unit: round(self.speed, 1), "passes": len(self.seconds), "agrees": self.agrees}
        if self.processor_seconds:
            speeds["processorSeconds"] = float(f"{statistics.median(self.processor_seconds):.4g}")
        return {**row, **{name: float(f"{value:.4g}") for name, value in figures.items()}, **speeds}


class Session(AbstractContextManager["Session"]):
    """The processes of the contenders; use it as a context manager.

    Args:
        only: names of selected programs; all by default.
        say: called with messages about the progress.
    """

    def __init__(self, only: Sequence[str], say: Callable[[str], None]) -> None:
        self.processes: dict[str, Process] = {}
        self.missing: dict[str, str] = {}
        self._passes = 1
        self._say = say
        self._stack = ExitStack()
        for program in PROGRAMS:
            if only and program.name not in only:
                continue
            if lacking := program.missing():
                self.missing[program.name] = f"it needs {'; '.join(lacking)}"
                continue
            try:
                program.built()
                self.processes[program.name] = self._stack.enter_context(program.start())
            except PeerError as error:
                self.missing[program.name] = str(error).strip()

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self._stack.close()

    def measured(self, works: Sequence[Work], data: DataSet, rounds: int) -> list[Row]:
        """Let all contenders that support the works take turns.

        Args:
            works: works that every contender does in each round.
            data: the set.
            rounds: number of rounds.
        """
        pairs = [(work, each) for work in works for each in work.contenders if each.program in self.processes]
        rows = [Row(work, data, each) for work, each in pairs if not each.is_reference or data.size <= each.largest]
        self._passes = WARM_UP + rounds
        passes = {id(row): self._warmed_up(row) for row in rows}
        for number in range(rounds):
            for row in rows:
                slow = row.agrees is not None and passes[id(row)] == 0
                if row.agrees is not None and (not slow or number < SLOW_ROUNDS):
                    self._turn(row, max(1, passes[id(row)]))
        return rows

    def _warmed_up(self, row: Row) -> int:
        """Run one checked pass, which includes one-time work, and a second to find the number of passes of a turn.

        A first pass of more than four times `SLOW_SECONDS` is enough.

        Returns:
            The number of passes of a turn; 0 if a pass is too long to repeat.
        """
        if row.data.size > row.contender.largest:
            row.note = "not with so large a log"
            return 0
        if row.data.name.startswith("m1") and 1 not in row.contender.magics:
            row.note = "reads no magic 1"
            return 0
        try:
            answer = self._asked(row, passes=1, check=True)
            slow = answer.seconds[0] > 4 * SLOW_SECONDS
            seconds = (answer if slow else self._asked(row, passes=1, check=False)).seconds[0]
        except NotBuiltError as reason:
            row.note = str(reason)
            return 0
        except PeerError as error:
            row.note = str(error)
            self._say(f"  {row.contender.name}: {error}")
            return 0
        wanted = self._expected(row)
        row.agrees = wanted is None or wanted == answer.contents.number
        if not row.agrees:
            self._say(
                f"  {row.contender.name}: {row.work.title}, {row.data.name}: other contents than the written ones"
            )
        if row.work.per_lookup:
            return 1
        return 0 if seconds > SLOW_SECONDS else min(MAX_PASSES, math.ceil(MIN_SECONDS / max(seconds, 1e-6)))

    def _expected(self, row: Row) -> int | None:
        return row.data.checksums[row.work.arrives_at] if row.work.arrives_at else None

    def _turn(self, row: Row, passes: int) -> None:
        try:
            answer = self._asked(row, passes=passes, check=False)
        except (NotBuiltError, PeerError) as error:
            self._say(f"  {row.contender.name}: a turn is missing: {error}")
            return
        row.seconds += answer.seconds
        if answer.processor_seconds is not None:
            pieces = lookups_of(row.data.batches, self._passes) if row.work.per_lookup else 1
            row.processor_seconds.append(answer.processor_seconds / len(answer.seconds) / pieces)
        wanted = self._expected(row)
        if wanted is not None and answer.contents.count and answer.contents.number != wanted:
            row.agrees = False

    def _asked(self, row: Row, *, passes: int, check: bool) -> Any:  # noqa: ANN401 - an answer
        more = {}
        if row.work.per_lookup:
            offsets = looked_up(row.data.records, row.data.batches, self._passes, row.asked)
            more["offsets"] = times_at(offsets, row.data) if row.work.name.startswith("time") else offsets
        row.asked += 1
        fields = {"how": row.contender.how, "threads": row.work.threads, "passes": passes, "check": check, **more}
        return self._process(row.contender.program).run(row.work.name, path=str(row.data.path), **fields)

    def _process(self, name: str) -> Process:
        """Return the process of a program; a new one if it has ended."""
        if self.processes[name].has_ended:
            program = next(each for each in PROGRAMS if each.name == name)
            self.processes[name] = self._stack.enter_context(program.start())
        return self.processes[name]
