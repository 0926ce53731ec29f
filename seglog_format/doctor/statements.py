"""What `seglog doctor` says: sentences with their evidence, ranked, worst first."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.errors import Location
    from seglog_format.model import MissingOffsets


class Kind(Enum):
    """What a statement is about; the order is the rank, worst first."""

    START = "no start"
    """A broker does not start."""
    LOSS = "loss"
    """Offsets are gone, or are gone after the next start."""
    DAMAGE = "damage"
    """Bytes break a rule."""
    READERS = "readers"
    """Consumers of committed records wait, or get what they should not get."""
    SPACE = "space"
    """Segments stay that should go."""
    TIER = "tier"
    """Segments are not copied to the remote store."""
    CHANGE = "change"
    """The next start changes files, and nothing is lost."""


class Hurt(Enum):
    """Who is hurt."""

    BROKER = "a starting broker"
    CONSUMER = "a consumer"
    COMMITTED = "a consumer of committed records"
    FOLLOWER = "a follower"
    READER = "whatever reads this file"
    RETENTION = "retention"
    CLEANER = "the cleaner"
    UPLOADER = "the uploader"


READERS = (Hurt.CONSUMER, Hurt.FOLLOWER)


class Statement(NamedTuple):
    """Something that is wrong with log directories.

    Attributes:
        kind: what it is about, and its rank.
        what: one sentence.
        where: the evidence: file, and position or field.
        requirements: ids of the rules that say so.
        hurt: who is hurt.
        next_step: a command that shows more, or helps.
        offsets: the offsets concerned that are missing, or that the next start removes; None if it is about none.
        first_offset: the first offset concerned, if `offsets` does not say it; None if there is none.
    """

    kind: Kind
    what: str
    where: Location
    requirements: tuple[str, ...]
    hurt: tuple[Hurt, ...]
    next_step: str
    offsets: MissingOffsets | None = None
    first_offset: int | None = None

    @property
    def offset(self) -> int | None:
        """The first offset concerned; None if there is none."""
        return self.first_offset if self.offsets is None else self.offsets.first_offset

    @property
    def rank(self) -> int:
        """The rank: 0 is worst."""
        return list(Kind).index(self.kind)


def typed(*words: str | Path) -> str:
    """Return a command of this program, as a shell takes it."""
    return shlex.join(["seglog", *map(str, words)])
