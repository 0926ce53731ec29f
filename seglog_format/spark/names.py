"""Checks of names that users give, with suggestions of similar known names."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

from seglog_format.errors import UsageError
from seglog_format.storage.object_store import has_secret, is_address, shown_address

if TYPE_CHECKING:
    from collections.abc import Collection


def refuse(what: str, name: str, known: Collection[str]) -> NoReturn:
    """Refuse an unknown name.

    Raises:
        UsageError: always; it lists similar names, or all.
    """
    lower = {each.lower(): each for each in known}
    near = [lower[each] for each in get_close_matches(name.lower(), lower, n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    msg = f"seglog: unknown {what} {name!r}: {hint}"
    raise UsageError(msg)


def without_keys(path: str) -> str:
    """Return a path unless it has keys in it, since columns and findings show it.

    Raises:
        UsageError: keys precede the bucket of an address.
    """
    if is_address(path) and has_secret(path):
        keys = "give them as options storage.access_key and storage.secret_key, or in the environment"
        msg = f"seglog: {shown_address(path)}: keys before a bucket would be shown in columns and findings: {keys}"
        raise UsageError(msg)
    return path


def one_of(what: str, value: str, known: Collection[str]) -> str:
    """Return the known value that equals the given one but for its case.

    Raises:
        UsageError: the value is unknown.
    """
    for each in known:
        if each.lower() == value.lower():
            return each
    refuse(f"value of option {what}:", value, known)


def parse_files(text: str) -> dict[str, str]:
    """Parse names of files by id, an object in JSON.

    Raises:
        ValueError: it is something else.
    """
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        msg = 'not an object of files by id, such as {"key1": "/keys/key1.pem"}'
        raise ValueError(msg)
    return found
