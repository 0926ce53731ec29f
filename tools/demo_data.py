"""Unpack bundled fixtures into ``demo/``: one log directory for each broker version, and one that is broken.

The packed files are those that the brokers wrote, unchanged.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from proofs.unpacking import unpack_archive

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURES = REPOSITORY / "fixtures"
BROKEN = "kafka-2.8.2/crash-flip"
"""A broker was killed while it wrote, and one bit of the log's last segment was flipped afterwards."""
LEFT_OUT = ("crash-", "root")


def unpack(target: Path) -> Path:
    """Write the demonstration data to ``target``, unless it is there already.

    Returns:
        The target.
    """
    stamp = target / ".unpacked"
    state = hashlib.sha256((FIXTURES / "manifest.json").read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != state:
        shutil.rmtree(target, ignore_errors=True)
        _unpack_all(target)
        stamp.write_text(state, encoding="utf-8")
    return target


def _unpack_all(target: Path) -> None:
    for case in sorted(FIXTURES.glob("kafka-*/*/files.tar.gz")):
        version, name = case.parent.parent.name, case.parent.name
        if not name.startswith(LEFT_OUT):
            unpack_archive(case, target / version)
    unpack_archive(FIXTURES / BROKEN / "files.tar.gz", target / "unpacking")
    (target / "unpacking" / "before").rename(target / "broken")
    shutil.rmtree(target / "unpacking")
