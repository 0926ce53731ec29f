"""The supported APIs and versions, and the functions that answer them.

A module is loaded at the first request that needs it: a client that only fetches does not load consumer groups.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from kio.schema.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seglog_format.serve.calls import Call, Services

API_VERSIONS: Final = 18


class Api(NamedTuple):
    """An API: the module and the function that answer it, and the lowest and the highest version of its messages."""

    module: str
    name: str
    lowest: int
    highest: int

    def answer(self, services: Services, call: Call) -> None:
        """Answer a request of a supported version."""
        _loaded(self.module, self.name)(services, call)


@cache
def _loaded(module: str, name: str) -> Callable[[Services, Call], None]:
    function: Callable[[Services, Call], None] = getattr(import_module(f"seglog_format.serve.{module}"), name)
    return function


def api_versions(_services: Services, call: Call) -> None:
    """Answer ApiVersions: the APIs and versions that this server supports."""
    call.respond(versions(ErrorCode.none))


def versions(error: ErrorCode) -> dict[str, object]:
    """Return the answer to ApiVersions, of any version."""
    keys = [
        {"api_key": key, "min_version": api.lowest, "max_version": api.highest} for key, api in sorted(APIS.items())
    ]
    return {"throttle_time": 0, "error_code": error, "api_keys": keys}


APIS: Final[Mapping[int, Api]] = {
    0: Api("api_produce", "produce", 3, 12),
    1: Api("api_fetch", "fetch", 4, 17),
    2: Api("api_log", "list_offsets", 1, 11),
    3: Api("api_cluster", "metadata", 0, 13),
    8: Api("api_groups", "offset_commit", 2, 9),
    9: Api("api_groups", "offset_fetch", 1, 9),
    10: Api("api_cluster", "find_coordinator", 0, 6),
    11: Api("api_groups", "join_group", 0, 9),
    12: Api("api_groups", "heartbeat", 0, 4),
    13: Api("api_groups", "leave_group", 0, 5),
    14: Api("api_groups", "sync_group", 0, 5),
    API_VERSIONS: Api("apis", "api_versions", 0, 4),
    22: Api("api_produce", "init_producer_id", 0, 5),
    23: Api("api_log", "offset_for_leader_epoch", 2, 4),
    60: Api("api_cluster", "describe_cluster", 0, 2),
}
"""Supported APIs by API key; the server refuses requests of any other API or version."""
