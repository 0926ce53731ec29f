"""The command line ``seglog``: one thin module for each command."""

from __future__ import annotations

from seglog_format.cli.main import without_collecting

with without_collecting():
    from seglog_format.cli.main import main

__all__ = ["main"]
