"""The features and settings that each release of Kafka accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_format.cluster.image import METADATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

LOWEST_METADATA_VERSION: Final = 21
"""Level of 3.9, which 4.1 and 4.4 also accept; a new node gets this level or a higher one."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release that a node can be written for.

    Attributes:
        version: such as ``4.4``.
        features: the highest accepted level of each feature; the release does not start with higher ones.
        least_settings: the lowest accepted values of settings of topics and of brokers; the release does not
            start with a lower one of a topic.
    """

    version: str
    features: Mapping[str, int]
    least_settings: Mapping[str, int] = field(default_factory=dict)


SINCE_4_0: Final = {"segment.bytes": 1 << 20, "log.segment.bytes": 1 << 20}

RELEASES: Final = {
    release.version: release
    for release in (
        Release("3.9", {METADATA_VERSION: 21}),
        Release(
            "4.1",
            {
                METADATA_VERSION: 27,
                "transaction.version": 2,
                "group.version": 1,
                "eligible.leader.replicas.version": 1,
                "share.version": 1,
            },
            SINCE_4_0,
        ),
        Release(
            "4.4",
            {
                METADATA_VERSION: 33,
                "transaction.version": 2,
                "group.version": 1,
                "eligible.leader.replicas.version": 1,
                "share.version": 2,
                "streams.version": 1,
            },
            SINCE_4_0,
        ),
    )
}
"""Releases by version, oldest first. The levels are constants in the classes of each release."""

NEWEST: Final = next(reversed(RELEASES))


GROUP_FEATURES: Final = {"consumer": "group.version", "share": "share.version", "streams": "streams.version"}
"""The feature that each type of group needs."""

NEEDED_FOR: Final = {
    METADATA_VERSION: "settings and records of later releases",
    "transaction.version": "the later protocol of transactions; transactions and their states stay",
    "group.version": "members of groups of the new protocol; their committed offsets stay",
    "eligible.leader.replicas.version": "eligible leader replicas, of which a single node has none",
    "share.version": "share groups and their start offsets",
    "streams.version": "streams groups; their committed offsets stay",
}
"""What is lost if the level of a feature is lowered."""


def losses_without(features: Mapping[str, int]) -> str:
    """Return a text of features with their levels, and what is lost if each is lowered."""
    named = (f"{name} {level}" + _needed(name) for name, level in sorted(features.items()))
    return "; ".join(named)


def _needed(name: str) -> str:
    return f" ({NEEDED_FOR[name]})" if name in NEEDED_FOR else ""


def too_high(features: Mapping[str, int], release: Release) -> dict[str, int]:
    """Return the features whose levels a release does not accept, with these levels."""
    return {name: level for name, level in features.items() if level > release.features.get(name, 0)}
