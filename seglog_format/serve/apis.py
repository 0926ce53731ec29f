"""Which APIs there are, in which versions, and what answers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kio.schema.errors import ErrorCode

from seglog_format.serve.api_cluster import describe_cluster, find_coordinator, metadata
from seglog_format.serve.api_fetch import fetch
from seglog_format.serve.api_groups import heartbeat, join_group, leave_group, offset_commit, offset_fetch, sync_group
from seglog_format.serve.api_log import list_offsets, offset_for_leader_epoch
from seglog_format.serve.api_produce import init_producer_id, produce

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seglog_format.serve.calls import Call, Services

API_VERSIONS: Final = 18


@dataclass(frozen=True, slots=True)
class Api:
    """An API: what answers it, and the lowest and the highest version of its messages."""

    answer: Callable[[Services, Call], None]
    lowest: int
    highest: int

    @property
    def name(self) -> str:
        """For metrics."""
        return self.answer.__name__


def api_versions(_services: Services, call: Call) -> None:
    """What this server understands."""
    call.respond(versions(ErrorCode.none))


def versions(error: ErrorCode) -> dict[str, object]:
    """The answer to ApiVersions, of any version."""
    keys = [
        {"api_key": key, "min_version": api.lowest, "max_version": api.highest} for key, api in sorted(APIS.items())
    ]
    return {"throttle_time": 0, "error_code": error, "api_keys": keys}


APIS: Final[Mapping[int, Api]] = {
    0: Api(produce, 3, 12),
    1: Api(fetch, 4, 17),
    2: Api(list_offsets, 1, 11),
    3: Api(metadata, 0, 13),
    8: Api(offset_commit, 2, 9),
    9: Api(offset_fetch, 1, 9),
    10: Api(find_coordinator, 0, 6),
    11: Api(join_group, 0, 9),
    12: Api(heartbeat, 0, 4),
    13: Api(leave_group, 0, 5),
    14: Api(sync_group, 0, 5),
    API_VERSIONS: Api(api_versions, 0, 4),
    22: Api(init_producer_id, 0, 5),
    23: Api(offset_for_leader_epoch, 2, 4),
    60: Api(describe_cluster, 0, 2),
}
"""By API key. What a client asks for beyond these versions is no request here."""
