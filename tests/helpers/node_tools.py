"""What the tests need from npm, each in one version, fetched once into ``build/node``; nothing of it is committed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from seglog_conformance.toolchains import BROWSERS, works

REPOSITORY: Final = Path(__file__).resolve().parents[2]
HOME: Final = REPOSITORY / "build" / "node"

PACKAGES: Final = {
    "axe-core": "4.14.1",
    "js-yaml": "4.1.0",
    "kaitai-struct": "0.11.0",
    "kaitai-struct-compiler": "0.11.0",
    "playwright-core": "1.65.1",
}
INSTALL_SECONDS: Final = 300
INSTALL_OPTIONS: Final = (
    *("--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
    *("--fetch-retries=1", "--fetch-timeout=60000"),  # who cannot reach the registry hears of it soon
)
TOOL_CHAIN: Final = ("node", "npm")


class NodeToolsError(Exception):
    """The packages could not be fetched."""


def browser() -> str | None:
    """Return a Chromium of this machine."""
    return next(filter(None, map(shutil.which, filter(works, BROWSERS))), None)


def modules() -> Path:
    """Return the directory with the packages; they are fetched when one is missing or of another version.

    Raises:
        NodeToolsError: npm failed.
    """
    HOME.mkdir(parents=True, exist_ok=True)
    stamp = HOME / "packages.txt"
    wanted = "".join(f"{name}@{version}\n" for name, version in PACKAGES.items())
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that start together
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
            _install(wanted.split())
            stamp.write_text(wanted, encoding="utf-8")
    return HOME / "node_modules"


def _install(packages: list[str]) -> None:
    command = ["npm", "install", "--prefix", str(HOME), *INSTALL_OPTIONS, *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        msg = f"npm install: no end after {INSTALL_SECONDS} s"
        raise NodeToolsError(msg) from error
    if done.returncode != 0:
        msg = f"npm install: {done.stderr.strip()[-500:]}"
        raise NodeToolsError(msg)


def node(script: Path, *arguments: str, seconds: float = 120, text: str = "") -> str:
    """Return what a script of ours prints.

    Args:
        script: for node; it finds the packages in ``NODE_PATH``.
        arguments: of the script.
        seconds: after which it has to have ended.
        text: its standard input.

    Raises:
        subprocess.CalledProcessError: the script failed; its message is in the exception's notes.
    """
    environment = os.environ | {"NODE_PATH": str(modules())}
    command = ["node", str(script), *arguments]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=seconds, env=environment, check=False
    )
    if done.returncode != 0:
        error = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        error.add_note(done.stderr[-3000:])
        raise error
    return done.stdout
