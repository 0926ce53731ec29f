"""Replace values of a recipe by options of the command line."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from seglog_format.errors import UsageError


def apply_override(values: dict[str, Any], override: str) -> None:
    """Set one value of a recipe.

    Args:
        values: parsed TOML tables, which are changed in place.
        override: such as ``topic.0.step.0.records=10``.

    Raises:
        UsageError: the override is not of the form key=value, or its key does not exist.
    """
    path, found, text = override.partition("=")
    if not found or not path:
        msg = f"{override!r} is not of the form key=value"
        raise UsageError(msg)
    *way, last = re.findall(r'"[^"]+"|[^."]+', path.strip())
    target: Any = values
    for name in way:
        target = _inside(target, name, override)
    if not isinstance(target, dict):
        msg = f"{override!r}: only a value of a table can be set"
        raise UsageError(msg)
    target[last.strip('"')] = _toml_value(text)


def _inside(target: Any, name: str, override: str) -> Any:  # noqa: ANN401 - values of any kind
    if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
        return target[int(name)]
    if isinstance(target, dict):
        return target.setdefault(name.strip('"'), {})
    msg = f"{override!r}: there is no {name}"
    raise UsageError(msg)


def _toml_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
