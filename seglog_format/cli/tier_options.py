"""Arguments and options of commands that read a remote store."""

from __future__ import annotations

import functools
import os
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from seglog_format.cli.output import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.log.listing import PartitionListing
    from seglog_format.tier.remote_store import RemoteTier

SETTING_PREFIX: Final = "SEGLOG_STORE_"
"""Prefix of the environment variables that hold settings of the file system behind an address."""

remote_argument: Final = click.argument("remote", metavar="REMOTE")


class RemoteChoice(NamedTuple):
    """A store, and how to read it, as the options of a command say.

    Attributes:
        address: a folder, or an address.
        layout: of its objects; None to recognize it.
        keys: files of private keys, by the ids of the key pairs.
        settings: of the file system behind an address.
    """

    address: str
    layout: str | None
    keys: dict[str, Path]
    settings: dict[str, str]

    def open(self) -> RemoteTier:
        """Open the store.

        Raises:
            UsageError: the store does not answer, is empty, or no layout recognizes its objects.
        """
        from seglog_format.tier.remote_store import open_tier

        return open_tier(self.address, layout=self.layout, keys=self.keys, settings=self.settings)


def store_options(function: Callable[..., Any], key: str = "--key") -> Callable[..., Any]:
    """Add the options of a store; the command gets them together with its address, as one `RemoteChoice`."""

    @functools.wraps(function)
    def command(
        *arguments: object,
        remote: str | None,
        layout: str | None,
        keys: dict[str, Path],
        settings: dict[str, str],
        **others: object,
    ) -> int:
        choice = None if remote is None else RemoteChoice(remote, layout, keys, settings)
        found: int = function(*arguments, remote=choice, **others)
        return found

    with_layout = click.option(
        "--layout", help="Layout of the objects; by default the one that recognizes most of them."
    )
    with_key = click.option(
        key,
        "keys",
        multiple=True,
        metavar="ID=FILE",
        callback=keys_of,
        help="A file with a private key, by the id of the key pair; may be repeated.",
    )
    with_settings = click.option(
        "--settings",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=settings_of,
        help="A file with lines NAME=VALUE for the file system behind an address, such as access_key, secret_key, "
        f"region, endpoint_override; each may be in {SETTING_PREFIX}NAME of the environment instead.",
    )
    return with_layout(with_key(with_settings(command)))


def keys_of(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, Path]:
    """Parse private keys, such as ``key1=key1.pem``."""
    pairs = [each.partition("=") for each in value]
    if any(not name or not file for name, _, file in pairs):
        msg = "a key is named as ID=FILE"
        raise click.BadParameter(msg)
    return {name: Path(file) for name, _, file in pairs}


def settings_of(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> dict[str, str]:
    """Return the settings of the environment, and those of a file, which come first; none is ever printed."""
    found = {
        name.removeprefix(SETTING_PREFIX).lower(): text
        for name, text in os.environ.items()
        if name.startswith(SETTING_PREFIX)
    }
    return found if value is None else found | _settings_in(value)


def _settings_in(file: Path) -> dict[str, str]:
    try:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{file}: not a text file that can be read"
        raise click.BadParameter(msg) from error
    pairs = [(number, *line.partition("=")) for number, line in enumerate(lines, 1) if line and line[0] != "#"]
    for number, name, separator, _ in pairs:
        if not name.strip() or not separator:
            msg = f"{file}:{number}: a setting is written as NAME=VALUE"
            raise click.BadParameter(msg)
    return {name.strip(): text.strip() for _, name, _, text in pairs}


def remote_options(function: Callable[..., Any], key: str = "--key") -> Callable[..., Any]:
    """Add ``--remote``, and the options of a store with it, that for its keys under a name of its own."""
    remote = click.option(
        "--remote", metavar="REMOTE", help="Also read tiered segments of the partition from a folder or an address."
    )
    return remote(store_options(function, key))


def joined_listing(path: Path, remote: RemoteChoice | None) -> PartitionListing | None:
    """Return the listing of a partition together with its tiered segments; None if no store is given.

    Raises:
        UsageError: the path is not a partition directory, or the store does not answer.
        FormatError: an object of the store does not follow its layout.
    """
    if remote is None:
        return None
    from seglog_format.log.partition import open_partition

    with showing_warnings(), open_partition(path, remote=remote.open()) as partition:
        return partition.listing


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Write warnings of opening a partition to standard error, as a command writes them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    for each in found:
        diagnose(str(each.message))
