"""Exports in processes of their own, which start quickly: what they import was imported before they are forked."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import numpy as np  # noqa: F401 - loaded before
import pyiceberg.catalog.sql
import pyiceberg.io.pyarrow  # noqa: F401 - as above

import seglog_format.types  # noqa: F401 - as above


def run_quietly(arguments: list[str]) -> None:
    """Run a command without its output, and end the process with its status."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout = nowhere
        sys.argv = ["seglog", *arguments]
        runpy.run_module("seglog_format.cli", run_name="__main__", alter_sys=False)
