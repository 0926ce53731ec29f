"""``seglog serve``: a Kafka endpoint over log directories."""

from __future__ import annotations

import signal
import sys
import time
import warnings
from contextlib import ExitStack, contextmanager
from functools import partial
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import click

from seglog_format.cli.main import without_collecting
from seglog_format.cli.options import PATH, json_option, remote_options, size_of
from seglog_format.cli.output import diagnose, write_json
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.status import Status

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.serve.catalog import Topic
    from seglog_format.serve.kept_offsets import OffsetsByGroup
    from seglog_format.serve.server import Server
    from seglog_format.serve.writing import Writers


# -- which machines can reach ``seglog serve``, and what they could do -------------------------------------------------


def resolved(host: str) -> str:
    """Resolve the host to listen on, once: the server listens on the address that was checked.

    Raises:
        UsageError: the name cannot be resolved.
    """
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare:
        return "0.0.0.0"  # noqa: S104 - what an empty name means to the system; checked like any other address
    try:
        return str(ip_address(bare))
    except ValueError:
        return _looked_up(bare)


def _looked_up(host: str) -> str:
    import socket

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        msg = f"--host {host}: {error}"
        raise UsageError(msg) from error
    addresses = [str(each[4][0]) for each in found]
    return next((each for each in addresses if ":" not in each), addresses[0])


def is_loopback(address: str) -> bool:
    """Return whether only programs of this machine can reach a numeric address."""
    parsed = ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback


def check_exposure(address: str, *, writable: bool, remote_writes_allowed: bool) -> None:
    """Warn of an address that other machines can reach; refuse it if they could write and that is not allowed.

    Raises:
        UsageError: others could write, which the options do not allow.
    """
    if is_loopback(address):
        return
    if writable and not remote_writes_allowed:
        msg = (
            f"--writable on {address}: every client that can reach it could read and write everything that is served, "
            "as there is no authentication; if you mean it, add --allow-remote-writes"
        )
        raise UsageError(msg)
    may = "read and write" if writable else "read"
    diagnose(f"listening on {address}: every client that can reach it can {may} everything that is served")


# -- the status line of ``seglog serve``, shown on a terminal ----------------------------------------------------------


INTERVAL_SECONDS: Final = 1.0
MEGA: Final = 1_000_000

Figures: TypeAlias = tuple[int, int, int]


class StatusLine:
    """Shows connections, requests and traffic while a server runs, if standard error is a terminal."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown and sys.stderr.isatty()
        self._status: Status | None = None

    def write_line(self, message: str) -> None:
        """Write a line above the status line."""
        if self._status is None:
            diagnose(message)
        else:
            self._status.console.print(f"seglog: {message}", markup=False, highlight=False, soft_wrap=True)

    def until(self, is_ending: Event, figures: Callable[[], Figures], seconds: float | None) -> None:
        """Show the status line until an event is set, or until the time is over.

        Args:
            is_ending: ends the display.
            figures: connections now, requests and bytes sent since the start.
            seconds: maximum time; None for no limit.
        """
        if not self._is_shown:
            is_ending.wait(seconds)
            return
        from rich.console import Console

        deadline = None if seconds is None else time.monotonic() + seconds
        _, *known = figures()
        before = (*known, time.monotonic())
        with Console(stderr=True).status("") as self._status:
            while not is_ending.wait(_wait(deadline)) and (deadline is None or time.monotonic() < deadline):
                connections, *known = figures()
                now = (*known, time.monotonic())
                self._status.update(status_text(connections, before, now))
                before = now
        self._status = None


def _wait(deadline: float | None) -> float:
    left = INTERVAL_SECONDS if deadline is None else deadline - time.monotonic()
    return max(0.0, min(INTERVAL_SECONDS, left))


def status_text(connections: int, before: tuple[float, ...], now: tuple[float, ...]) -> str:
    """Return the status line, from requests, bytes sent and time before and now."""
    seconds = max(now[2] - before[2], 1e-6)
    requests, megabytes = (now[0] - before[0]) / seconds, (now[1] - before[1]) / seconds / MEGA
    return f"{connections} connections, {requests:,.0f} requests/s, {megabytes:,.1f} MB/s"


# -- topics that ``seglog serve --writable`` creates before it starts, so an empty directory can be served -------------


MAX_PARTITIONS: Final = 10_000


def create_topics(paths: tuple[Path, ...], wanted: tuple[str, ...], *, writable: bool) -> None:
    """Create topics in a directory that is empty or missing; do nothing if all of them exist already.

    Args:
        paths: what is served; the only log directory if there is anything to create.
        wanted: ``topic`` or ``topic:partitions``.
        writable: whether producers may append.

    Raises:
        UsageError: creation is not allowed; there are several directories, or there are other files in the directory;
            or a name or a number is invalid.
    """
    if not wanted:
        return
    if not writable or len(paths) != 1:
        msg = "--create needs --writable and one log directory"
        raise UsageError(msg)
    from seglog_format.names import partition_directory_name
    from seglog_format.writing.log_writer import LogWriter

    (path,) = paths
    partitions = [partition for each in wanted for partition in _partitions(each)]
    if all((path / partition_directory_name(*partition)).is_dir() for partition in partitions):
        return
    if path.exists() and any(path.iterdir()):
        msg = f"{path}: --create is for an empty directory, and this one has files"
        raise UsageError(msg)
    with LogWriter(path) as writer:
        for topic, number in partitions:
            writer.open(topic, number)


def empty_root(paths: tuple[Path, ...], *, writable: bool) -> Path | None:
    """Return the one log directory to serve if it is empty, and topics may be created in it; None otherwise.

    An empty directory with the name of a partition is that partition.

    Args:
        paths: what is served.
        writable: whether producers may append.
    """
    if not writable or len(paths) != 1 or not paths[0].is_dir() or any(paths[0].iterdir()):
        return None
    from seglog_format.log.path_kind import partition_name

    return None if partition_name(paths[0].absolute().name) else paths[0]


def _partitions(wanted: str) -> list[tuple[str, int]]:
    topic, _, digits = wanted.partition(":")
    if digits and not (digits.isascii() and digits.isdecimal() and 1 <= int(digits) <= MAX_PARTITIONS):
        msg = f"--create {wanted}: the number of partitions must be from 1 to {MAX_PARTITIONS}"
        raise UsageError(msg)
    return [(topic, number) for number in range(int(digits or 1))]


# -- ``seglog serve`` --------------------------------------------------------------------------------------------------


MAX_FILES: Final = 1 << 16
NO_STATE: Final = "none"
ENDING: Final = (signal.SIGINT, signal.SIGTERM)
MAX_REQUEST_ITEMS: Final = 10_000
MAX_BATCH_PARTS: Final = 100_000
"""The default of `Limits`, repeated because that module is not imported for the help page."""

EPILOG: Final = """\b
Examples:
  seglog serve /backup/kafka-logs
  seglog serve --port 0 /mnt/disk1 /mnt/disk2
  seglog serve --writable --create orders:3 new-logs
  kcat -b 127.0.0.1:9092 -C -t my-topic -e"""


@click.command(epilog=EPILOG)
@click.argument("paths", type=PATH, nargs=-1, required=True, metavar="PATH...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="Listen on this port; 0 for any."
)
@click.option("--trust-indexes", is_flag=True, help="Start lookups at index entries that look right.")
@click.option("--raw", is_flag=True, help="Send bytes unchanged, including damage: to test clients.")
@click.option(
    "--processors", type=click.IntRange(1, 64), default=2, show_default=True, help="Threads that read and send."
)
@click.option(
    "--io-threads", type=click.IntRange(1, 64), default=4, show_default=True, help="Threads that access logs."
)
@click.option(
    "--max-connections", type=click.IntRange(1), default=1000, show_default=True, help="Most connections at a time."
)
@click.option(
    "--idle-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    help="Close connections that are idle for this long.",
)
@click.option(
    "--memory",
    default="40m",
    show_default=True,
    metavar="SIZE",
    callback=size_of,
    help="Memory for requests and responses; beyond it, close the connection that has held the most for longest.",
)
@click.option(
    "--max-items",
    type=click.IntRange(1),
    default=MAX_REQUEST_ITEMS,
    show_default=True,
    help="Refuse requests that name more topics, partitions and groups than this.",
)
@click.option(
    "--max-batch-records",
    type=click.IntRange(1),
    default=MAX_BATCH_PARTS,
    show_default=True,
    help="Refuse batches with more records and headers than this.",
)
@click.option(
    "--state",
    "state_name",
    metavar="DIR",
    help="Directory for committed offsets of groups; none: keep them in memory only. By default a directory below "
    "$XDG_STATE_HOME/seglog/serve, one for these paths.",
)
@click.option(
    "--groups",
    "group_directories",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Start groups at their offsets in __consumer_offsets of this log directory, unless --state has their offsets; "
    "may be repeated.",
)
@click.option("--writable", is_flag=True, help="Let producers append; recover first after an unclean shutdown.")
@click.option(
    "--create",
    "created",
    multiple=True,
    metavar="TOPIC[:COUNT]",
    help="With --writable, create this topic in an empty directory, with COUNT partitions; may be repeated. Without "
    "--create, an empty directory gets each topic, with one partition, when a client first asks for it.",
)
@click.option(
    "--allow-remote-writes",
    is_flag=True,
    help="With --writable, accept clients on other machines. There is no authentication: all of them can write.",
)
@click.option(
    "--acknowledge",
    type=click.Choice(["flushed", "written"]),
    default="flushed",
    show_default=True,
    help="Acknowledge records when they are on the disk, or when they are written: a power failure may lose those.",
)
@click.option(
    "--metrics",
    "metrics_port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Expose Prometheus metrics on this port of 127.0.0.1; 0 for any.",
)
@remote_options
@click.option(
    "--end-after", type=click.FloatRange(min=0), metavar="SECONDS", help="End after this time; for test scripts."
)
@json_option
def command(  # noqa: PLR0913 - options of a command
    *,
    paths: tuple[Path, ...],
    host: str,
    port: int,
    trust_indexes: bool,
    raw: bool,
    processors: int,
    io_threads: int,
    max_connections: int,
    idle_seconds: float,
    memory: int,
    max_items: int,
    max_batch_records: int,
    state_name: str | None,
    group_directories: tuple[Path, ...],
    writable: bool,
    created: tuple[str, ...],
    allow_remote_writes: bool,
    acknowledge: Literal["flushed", "written"],
    metrics_port: int | None,
    end_after: float | None,
    remote: RemoteChoice | None,
    as_json: bool,
) -> int:
    """Let Kafka clients read the log directories or partition directories at PATH, as if a broker served them.

    Nothing at PATH is changed, unless --writable is given. Committed offsets of groups are kept in another directory,
    and are on disk when they are acknowledged. Log bytes are sent unchanged, after their checksums were verified once.
    A fetch ends before damage, which is reported on standard error; the next one gets an error. The server ends on
    Ctrl-C or SIGTERM, within five seconds, after it has answered pending requests. Needs the extra "serve".

    With --remote, clients also read tiered segments in a remote store, as one log with the local segments.
    """
    if remote is not None and writable:
        msg = "--remote with --writable: tiered partitions are served to readers only"
        raise UsageError(msg)
    address = resolved(host)
    check_exposure(address, writable=writable, remote_writes_allowed=allow_remote_writes)
    with without_collecting():
        from seglog_format.serve.catalog import CatalogOptions, NewTopics, open_catalog
        from seglog_format.serve.limits import (
            DEFAULT_LIMITS,
            MAX_PRODUCE_SIZE,
            MAX_REQUEST_SIZE,
            SWITCH_SECONDS,
            Settings,
        )
        from seglog_format.serve.metrics import Metrics
        from seglog_format.serve.server import Server
    settings = Settings(
        host=address,
        port=port,
        processors=processors,
        io_threads=io_threads,
        max_connections=max_connections,
        idle_seconds=idle_seconds,
        max_request_size=MAX_PRODUCE_SIZE if writable else MAX_REQUEST_SIZE,
        limits=DEFAULT_LIMITS._replace(held_size=memory, request_items=max_items, batch_parts=max_batch_records),
    )
    _allow_more_files()
    create_topics(paths, created, writable=writable)
    new_root = empty_root(paths, writable=writable)
    metrics, show = Metrics(), StatusLine(is_shown=not as_json)
    write_line = _write_as_json if as_json else show.write_line

    def find(message: str) -> None:
        metrics.count_finding()
        write_line(message)

    sys.setswitchinterval(SWITCH_SECONDS)
    with _ending() as ending, ExitStack() as closing:
        state = _state(state_name, paths, closing)
        writers = closing.enter_context(_writers(acknowledge)) if writable else None
        options = CatalogOptions(
            trust_indexes=trust_indexes,
            is_raw=raw,
            remote=None if remote is None else remote.open(),
            end_of=None if writers is None else writers.end_of,
            new_topics=None if writers is None or new_root is None else NewTopics(new_root, writers.create),
        )
        closing.enter_context(warnings_as_findings(find))
        with without_collecting():
            catalog = open_catalog(paths, on_finding=find, options=options)
        if writers is not None:
            writers.open(catalog.topics)
        ending.set_event_on_signal()
        by_group = _offsets_by_group(group_directories, find) if group_directories else {}
        server = Server(catalog, settings, write_line, writers, metrics, state)
        server.committed_offsets = by_group
        closing.enter_context(server)
        diagnose(_counted(catalog.topics) + (", open for writing" if writable else ""))
        if new_root is not None:
            diagnose(f"{new_root} is empty: a topic is created when a client first asks for it")
        _offer_metrics(server, metrics_port, closing)
        diagnose(f"listening on {_endpoint(server.address.host, server.address.port)}")
        show.until(ending.requested, partial(_figures, server), end_after)
    return 0


@contextmanager
def warnings_as_findings(write_line: Callable[[str], None]) -> Iterator[None]:
    """Report warnings of opening partitions as findings, from whichever thread they come."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: write_line(str(message))
        yield


def _state(name: str | None, paths: tuple[Path, ...], closing: ExitStack) -> Path | None:
    """Return the directory for committed offsets, locked until the end; None if there is none."""
    if name == NO_STATE:
        return None
    from seglog_format.serve.state_directory import StateDirectory, check_directory, default_directory

    directory = default_directory(paths) if name is None else Path(name)
    check_directory(directory, paths)
    try:
        return closing.enter_context(StateDirectory(directory)).path
    except OSError as error:
        if name is not None:
            msg = f"--state {directory}: {error.strerror}"
            raise UsageError(msg) from error
        diagnose(f"{directory}: {error.strerror}: committed offsets of groups are kept in memory only")
        return None


def _offsets_by_group(directories: tuple[Path, ...], find: Callable[[str], None]) -> OffsetsByGroup:
    """Return the offsets at which groups start, and report how many groups have one."""
    from seglog_format.cli.output import count_text
    from seglog_format.serve.kept_offsets import committed_offsets_in

    found = committed_offsets_in(directories, find)
    diagnose(f"{count_text(len(found), 'group')} start where brokers left them")
    return found


def _figures(server: Server) -> tuple[int, int, int]:
    load = server.load
    return load.connections, server.metrics.request_count, load.sent


def _writers(acknowledge: Literal["flushed", "written"]) -> Writers:
    from seglog_format.serve.writing import Writers  # a read-only server starts without it

    return Writers(acknowledge)


def _offer_metrics(server: Server, port: int | None, closing: ExitStack) -> None:
    if port is None:
        return
    from seglog_format.serve.metrics_endpoint import MetricsEndpoint

    endpoint = closing.enter_context(MetricsEndpoint(port, lambda: server.metrics.text(server.load)))
    diagnose(f"metrics on http://127.0.0.1:{endpoint.port}/metrics")


def _write_as_json(message: str) -> None:
    write_json({"type": "finding", "message": message})
    sys.stdout.flush()


def _allow_more_files() -> None:
    """Raise the limit of open files, for connections and log files, as far as the system permits."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Ending:
    """Handles Ctrl-C and SIGTERM: at first they end the process at once, since recovery may take long.

    Attributes:
        requested: set by a signal after `set_event_on_signal`.
    """

    def __init__(self) -> None:
        self.requested = Event()

    def set_event_on_signal(self) -> None:
        """Make the signals set the event from now on, instead of ending the process."""
        for number in ENDING:
            signal.signal(number, lambda *_: self.requested.set())


@contextmanager
def _ending() -> Iterator[_Ending]:
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDING}
    try:
        yield _Ending()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _counted(topics: Mapping[str, Topic]) -> str:
    count = sum(len(topic.partitions) for topic in topics.values())
    return f"{len(topics)} topic{'s' * (len(topics) != 1)}, {count} partition{'s' * (count != 1)}"


def _endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
