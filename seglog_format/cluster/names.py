"""Kafka's names for the numbers in metadata records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_RESOURCES: Final = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Types of resources that settings belong to."""

ACL_RESOURCES: Final = {
    2: "topic",
    3: "group",
    4: "cluster",
    5: "transactional-id",
    6: "delegation-token",
    7: "user",
}
"""Types of resources that an access control entry protects."""

PATTERN_TYPES: Final = {3: "literal", 4: "prefixed"}
PERMISSIONS: Final = {2: "deny", 3: "allow"}
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

OPERATIONS: Final = {
    2: "all",
    3: "read",
    4: "write",
    5: "create",
    6: "delete",
    7: "alter",
    8: "describe",
    9: "cluster-action",
    10: "describe-configs",
    11: "alter-configs",
    12: "idempotent-write",
    13: "create-tokens",
    14: "describe-tokens",
    15: "two-phase-commit",
}


def name_of(names: Mapping[int, str], number: int) -> str:
    """Return the name of a number; an unknown number, from a later release, as digits."""
    return names.get(number, str(number))
