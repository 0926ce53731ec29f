"""Arguments and options shared by several commands."""

from __future__ import annotations

import functools
import os
import sys
import time
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import click

from seglog_format.cli.output import GIVEN, diagnose, write_json
from seglog_format.errors import UsageError
from seglog_format.names import STANDARD_INPUT

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator
    from tarfile import TarInfo

    from seglog_format.engine import Engine
    from seglog_format.log.listing import PartitionListing
    from seglog_format.scan_statistics import FallbackCause, ScanStatistics
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.tier.remote_store import RemoteTier


CommandT = TypeVar("CommandT", bound="Callable[..., Any]")

PATH: Final = click.Path(path_type=Path, readable=False)  # the command reports what it cannot read

path_argument: Final = click.argument("path", type=PATH)


class _PathOrArchive(click.Path):
    """A path; for an archive, that of a temporary directory with what the archive holds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the path to read."""
        path = super().convert(value, param, ctx)
        return path if ctx is None or ctx.resilient_parsing else directory_of(Path(str(value)), ctx)


class _PathOrInput(_PathOrArchive):
    """A path; for ``-`` and for a packed file, that of a temporary file with what standard input or the file holds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the path to read."""
        path = super().convert(value, param, ctx)
        is_read = ctx is None or ctx.resilient_parsing or path != Path(str(value))
        return path if ctx is None or is_read else readable_path(str(value), ctx)


def directory_of(path: Path, ctx: click.Context) -> Path:
    """Return a temporary directory with what an archive holds; any other path is returned unchanged.

    Directories that hold nothing but a directory are left out, as those above the log directory are in many archives.

    Raises:
        UnreadableError: the archive cannot be unpacked.
    """
    from seglog_format.log.path_kind import is_archive, unpacked_name

    copies: dict[str, Path] = ctx.meta.setdefault(STANDARD_INPUT, {})
    if str(path) not in copies and is_archive(path):
        temporary = ctx.find_root().with_resource(TemporaryDirectory(prefix="seglog-"))
        root = Path(temporary) / unpacked_name(path.name).removesuffix(".tar")
        root.mkdir(exist_ok=True)
        _unpack_archive(path, root)
        found = root
        while len(entries := list(found.iterdir())) == 1 and entries[0].is_dir():
            found = entries[0]
        GIVEN.update(dict.fromkeys((str(found), str(root)), str(path)))
        copies[str(path)] = found
    return copies.get(str(path), path)


class _Bounded:
    """The bytes of an archive, of which no more are read than is allowed: a header may claim any size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.left, self.last = file, 0, b""
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes."""
        if not 0 <= size <= self.left:
            msg = "a header is too large"
            raise ValueError(msg)
        self.left -= size
        self.last = self._file.read(size)
        return self.last


def _unpack_archive(path: Path, root: Path) -> None:
    """Write the directories and files of an archive below a directory, and refuse one that holds anything else.

    Raises:
        UnreadableError: it is damaged, ends too early, is too large, or holds links, devices or names elsewhere.
    """
    import gzip
    import tarfile
    import zlib

    from seglog_format.errors import Location, UnreadableError
    from seglog_format.log.path_kind import FIRST_SIZE, foreign_at, packer_of

    try:
        with path.open("rb") as opened, gzip.GzipFile(fileobj=opened) as unpacked:
            is_packed = packer_of(opened.read(FIRST_SIZE)) == "gzip"
            opened.seek(0)
            _unpack_members(_Bounded(cast("IO[bytes]", unpacked) if is_packed else opened), root)
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
        found = f"{str(error) or 'it ends too early'}; {foreign_at(path)}"
        raise UnreadableError(
            Location(str(path)), "SEG-PDR-022", expected="an archive of directories and files", found=found
        ) from error


def _unpack_members(file: _Bounded, root: Path) -> None:
    import tarfile

    file.left = HEADER_SIZE
    tar = tarfile.TarFile(fileobj=cast("IO[bytes]", file))
    count, room = 0, MAX_ARCHIVE_SIZE
    while member := tar.next():
        vars(tar)["members"] = []  # it would keep each member in memory
        count, room = count + 1, room - member.size
        if count > MAX_ARCHIVE_MEMBERS or len(tar.pax_headers) > MAX_COMMENTS:
            msg = f"it has more than {MAX_ARCHIVE_MEMBERS:,} members, or {MAX_COMMENTS} settings for all"
            raise ValueError(msg)
        if fault := _fault_of(member, root, room):
            raise ValueError(fault)
        target = root / member.name
        (target if member.isdir() else target.parent).mkdir(parents=True, exist_ok=True)
        if member.isreg():
            file.left = member.size
            with target.open("xb") as copy:
                copyfileobj(cast("IO[bytes]", tar.extractfile(member)), copy)
        file.left = HEADER_SIZE
    file.left = COPIED_SIZE
    if file.last != bytes(tarfile.BLOCKSIZE) or any(file.read(COPIED_SIZE)):  # two blocks of zeros end an archive
        raise EOFError


def _fault_of(member: TarInfo, root: Path, room: int) -> str:
    """Return why a member of an archive is not unpacked, or nothing.

    Args:
        member: to unpack.
        root: directory that its name is below.
        room: bytes that are left for members after it.
    """
    from seglog_format.storage.byte_source import MAX_LOG_SIZE

    target, parts = root / member.name, [number for part in getattr(member, "sparse", None) or () for number in part]
    if ".." in target.parts or not target.is_relative_to(root):
        return f"{member.name} is not below its directory"
    if not (member.isdir() or member.isreg()) or min(member.size, *parts, 0) < 0:
        return f"{member.name} is neither a directory nor a file"
    return f"{member.name} is too large, or all are" if member.size > MAX_LOG_SIZE or room < 0 else ""


def readable_path(given: str, ctx: click.Context) -> Path:
    """Return the path of a temporary file for ``-`` and for a file that gzip or zstd has packed, else the path given.

    Raises:
        UsageError: standard input is empty.
        UnreadableError: the file cannot be unpacked.
    """
    from seglog_format.log.path_kind import packed_with, unpacked, unpacked_name

    path, is_input = Path(given), given == STANDARD_INPUT
    copies: dict[str, Path] = ctx.meta.setdefault(STANDARD_INPUT, {})
    if given in copies or not (is_input or packed_with(path)):
        return copies.get(given, path)
    directory = Path(ctx.find_root().with_resource(TemporaryDirectory(prefix="seglog-")))
    copy = directory / STANDARD_INPUT if is_input else path
    if is_input:
        GIVEN[str(copy)] = STANDARD_INPUT
        _copy(iter(lambda: sys.stdin.buffer.read(COPIED_SIZE) if sys.stdin is not None else b"", b""), copy)
        if not copy.stat().st_size:
            msg = "-: standard input is empty"
            raise UsageError(msg)
    if program := packed_with(copy):
        packed, copy = copy, directory / path.absolute().parent.name / unpacked_name(path.name)
        copy.parent.mkdir()
        GIVEN[str(copy)] = given
        _copy(unpacked(packed, program), copy)
    copies[given] = copy
    return copy


def _copy(pieces: Iterable[bytes], path: Path) -> None:
    """Write a file, as far as a log can be long; what is longer is refused when it is read."""
    from seglog_format.storage.byte_source import MAX_LOG_SIZE

    left = MAX_LOG_SIZE + 1
    with path.open("wb") as file:
        for data in pieces:
            left -= file.write(data[:left])
            if not left:
                return


PATH_OR_INPUT: Final = _PathOrInput(path_type=Path, readable=False)
PATH_OR_ARCHIVE: Final = _PathOrArchive(path_type=Path, readable=False)

file_argument: Final = click.argument("path", type=PATH_OR_INPUT)

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")

KIBI: Final = 1024
COPIED_SIZE: Final = KIBI**2
HEADER_SIZE: Final = 64 * KIBI
"""Maximum bytes of the headers of one member of an archive; a name has 4 KiB at most."""
MAX_ARCHIVE_SIZE: Final = 8 * KIBI**3
MAX_ARCHIVE_MEMBERS: Final = 100_000
MAX_COMMENTS: Final = 16
"""Maximum number of settings of an archive for all of its members."""
SIZE_UNITS: Final = {"k": KIBI, "m": KIBI**2, "g": KIBI**3, "": 1}


def size_of(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """Parse a number of bytes: ``4096``, ``64k``, ``256m``, ``1g``."""
    digits = value.rstrip("kKmMgG")
    unit = value[len(digits) :].lower()
    if not (digits.isascii() and digits.isdecimal()) or unit not in SIZE_UNITS:
        msg = f"{value!r} is not a size such as 4096, 64k or 256m"
        raise click.BadParameter(msg)
    return int(digits) * SIZE_UNITS[unit]


def limit_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--limit``: the maximum size that one batch may decompress to."""
    option = click.option(
        "--limit",
        metavar="SIZE",
        callback=size_of,
        default="256m",
        show_default=True,
        help="Refuse batches that decompress to more than this.",
    )
    return option(function)


def offset_of(value: str) -> int:
    """Parse an offset; a refusal names the option for what may have been meant."""
    try:
        return int(value)
    except ValueError:
        options = click.get_current_context().command.params
        meant = [f"a {one.metavar.lower()}: {one.opts[0]}" for one in options if one.metavar in {"TIME", "KEY"}]
        hint = "; ".join(meant) or "the offset of a time: seglog lookup PATH --timestamp TIME"
        msg = f"{value!r} is not an offset; for {hint}"
        raise click.BadParameter(msg) from None


UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def to_timestamp_ms(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Parse a time: milliseconds, an ISO date and time (UTC unless it has a zone), or how long ago it was: ``2h``."""
    if value is None:
        return None
    try:
        if value[:-1].isdecimal() and value[-1] in UNITS_MS:
            return int(time.time() * 1000) - int(value[:-1]) * UNITS_MS[value[-1]]
        return int(value)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        msg = f"{value!r} is neither a number of milliseconds nor a time such as 2026-01-31T12:00:00Z or 2h"
        raise click.BadParameter(msg) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _time_option(name: str, text: str) -> Callable[[CommandT], CommandT]:
    return click.option(f"--{name}", f"{name}_ms", callback=to_timestamp_ms, metavar="TIME", help=text)


def times_option(function: CommandT) -> CommandT:
    """Add ``--since`` and ``--until``: the range of timestamps to read."""
    until = _time_option("until", "Only records that are older.")
    return _time_option("since", "Only records that are not older.")(until(function))


def range_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for offsets, ``--from`` and ``--to``, and for timestamps."""
    end = click.option("--to", "to_offset", type=offset_of, metavar="OFFSET", help="Stop before this offset.")
    return click.option("--from", "from_offset", type=offset_of, metavar="OFFSET", help="First offset to read.")(
        end(times_option(function))
    )


GENERATIONS: Final = ("0.8", "0.10.1", "0.11", "2.0", "3.7", "4.1")
"""First version of each generation of brokers; a test compares them with `BrokerGeneration`."""


def generation_of(_context: click.Context, _parameter: click.Parameter, value: str | None) -> BrokerGeneration | None:
    """Parse a generation of brokers."""
    from seglog_format.state.config import BrokerGeneration

    return None if value is None else BrokerGeneration(value)


generation_option: Final = click.option(
    "--generation",
    type=click.Choice(GENERATIONS),
    callback=generation_of,
    help="Write indexes like brokers from this version on; by default like the existing indexes.",
)

index_interval_option: Final = click.option(
    "--index-interval-bytes",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Value of index.interval.bytes; by default inferred from the existing indexes.",
)

ENGINES: Final = ("auto", "reference", "plain", "columnar")

engine_option: Final = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    show_default=True,
    help="The reader: plain decoders; columnar, which is compiled and falls back to them; or reference, the slow"
    " declarations. Results are the same. auto takes columnar above 32 MB, if it is installed.",
)


# -- the example of each command below a group, for its help page; the other commands have theirs beside them ----------


EXAMPLES: Final = {
    "tier ls": "seglog tier ls s3://bucket/tier",
    "tier fetch": "seglog tier fetch --topic orders /mnt/tier fetched",
    "tier verify": "seglog tier verify /mnt/tier",
    "tier audit": "seglog tier audit --logs /var/lib/kafka/data s3://bucket/tier",
    "spark stats": "seglog spark stats /backup/broker-1 /backup/broker-2",
    "spark verify": "seglog spark verify --json /backup",
    "spark diff": "seglog spark diff /backup/monday /backup/tuesday",
    "spark to-parquet": "seglog spark to-parquet /backup -o records.parquet",
    "spark restore": "seglog spark restore /backup -o restored",
    "conform run": "seglog conform run --testee reference --family 26",
    "conform smoke": "seglog conform smoke --adapter my-adapter",
    "conform new": "seglog conform new python my-adapter",
    "conform export": "seglog conform export --for go --ops decode,encode -o try",
    "conform list": "seglog conform list --family crc",
    "conform repro": "seglog conform repro null-header-value/alone",
    "conform report-issue": "seglog conform report-issue --testee kafka-python --rule SEG-COD-002",
    "conform generate": "seglog conform generate --testee reference --seed 3",
    "conform crash": "seglog conform crash --testee reference --states 500",
    "conform differential": "seglog conform differential --testee reference --testee plain",
    "conform cross": "seglog conform cross --testee reference --testee kafka-python",
    "conform bugs": "seglog conform bugs --testee kafka-python",
    "fixtures export": "seglog fixtures export -o seglog-vectors.zip",
    "fixtures list": "seglog fixtures list --family crc",
}
"""By the name of the command with that of its group."""


def epilog_of(name: str) -> str:
    """Return the end of a command's help page.

    Args:
        name: of the command, with that of its group.
    """
    return f"\b\nExample:\n  {EXAMPLES[name]}"


# -- ``--engine``: the choice of one engine for everything that a command reads ----------------------------------------


def settled(wanted: str, paths: Iterable[Path]) -> Engine:
    """Choose one engine for all files that a command reads, by their total size instead of partition by partition.

    Args:
        wanted: value of the option.
        paths: arguments of the command.

    Raises:
        UsageError: the columnar engine is requested and not installed; or a path holds no files of Kafka.
    """
    from seglog_format.engine import Engine, engine_for
    from seglog_format.log.path_kind import size_of_logs

    engine = Engine(wanted)
    return engine_for(engine, sum(map(size_of_logs, paths)) if engine is Engine.AUTO else 0).engine


# -- the option ``--stats``: how many entries compiled code left to slower code, and why -------------------------------


def stats_option(what: str) -> Callable[[CommandT], CommandT]:
    """Return the option ``--stats``.

    Args:
        what: the text of its help.
    """
    return click.option("--stats", is_flag=True, help=what)


def left_text(fallbacks: Counter[FallbackCause]) -> str:
    """Return how many entries were left to slower code, by cause."""
    from seglog_format.cli.output import count_text

    causes = ", ".join(f"{cause.value} {count}" for cause, count in fallbacks.items())
    return f"{count_text(fallbacks.total(), 'entry')} left to slower code{f' ({causes})' if causes else ''}"


def write_statistics(counts: dict[str, int], fallbacks: Counter[FallbackCause], text: str, *, as_json: bool) -> None:
    """Report what compiled code did: on standard error as text, or as one more object of JSON.

    Args:
        counts: what it did, by the name in JSON.
        fallbacks: what it left, by cause.
        text: the counts in words.
        as_json: whether output is JSON.
    """
    if as_json:
        by_cause = {cause.value: count for cause, count in fallbacks.items()}
        write_json({"type": "statistics", **counts, "fallbacks": by_cause})
    else:
        diagnose(f"{text}, {left_text(fallbacks)}")


def write_scan_statistics(statistics: ScanStatistics, *, as_json: bool) -> None:
    """Report what scans left to slower code; see `write_statistics`."""
    count = statistics.library_decompressed
    text = f"{count} decompressed by a library"
    write_statistics({"libraryDecompressed": count}, statistics.fallbacks, text, as_json=as_json)


# -- arguments and options of commands that read a remote store --------------------------------------------------------


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
