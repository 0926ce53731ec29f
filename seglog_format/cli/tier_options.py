"""Arguments and options of commands that read a remote store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.log.listing import PartitionListing
    from seglog_format.tier.remote_store import RemoteTier

remote_argument: Final = click.argument("remote", metavar="REMOTE")


def store_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--layout`` and ``--key``, which say how the objects of a store are named and wrapped."""
    layout = click.option("--layout", help="Layout of the objects; by default what recognizes most of them.")
    key = click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="ID=FILE",
        callback=keys_of,
        help="A file with a private key, by the id of the key pair; may be repeated.",
    )
    return layout(key(function))


def keys_of(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, Path]:
    """Parse private keys, such as ``key1=key1.pem``."""
    pairs = [each.partition("=") for each in value]
    if any(not name or not file for name, _, file in pairs):
        msg = "a key is named as ID=FILE"
        raise click.BadParameter(msg)
    return {name: Path(file) for name, _, file in pairs}


def opened_store(remote: str, layout: str | None, keys: dict[str, Path]) -> RemoteTier:
    """Open a store with the options of a command."""
    from seglog_format.tier.remote_store import open_tier

    return open_tier(remote, layout=layout, keys=keys)


def remote_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--remote``, and the options of a store with it."""
    remote = click.option(
        "--remote", metavar="REMOTE", help="Read tiered segments of the partition, too: a folder, or an address."
    )
    return remote(store_options(function))


def joined_listing(path: Path, remote: str, layout: str | None, keys: dict[str, Path]) -> PartitionListing:
    """Return the listing of a partition directory together with its tiered segments.

    Raises:
        UsageError: the path is not a partition directory, or the store does not answer.
        FormatError: an object of the store does not follow its layout.
    """
    from seglog_format.log.listing import list_partition
    from seglog_format.log.offset_checkpoints import checkpointed_offset
    from seglog_format.log.path_kind import require_partition
    from seglog_format.names import FileKind

    require_partition(path)
    listing = list_partition(path)
    start = checkpointed_offset(listing, FileKind.LOG_START_OFFSET_CHECKPOINT)
    return opened_store(remote, layout, keys).joined(listing, start)[0]
