"""Checks which machines can reach ``seglog serve``, and what they could do."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from seglog_format.cli.output import diagnose
from seglog_format.errors import UsageError


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
