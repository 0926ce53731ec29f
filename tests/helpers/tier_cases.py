"""Partitions that brokers have split between a disk and a store: `fixtures/tiered`, with keys made for this run."""

from __future__ import annotations

import base64
import json
import tarfile
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from helpers.support import FIXTURES, run_directory
from helpers.tier_objects import private_key, wrapped_key
from seglog_format.tier.remote_store import RemoteTier, open_tier

if TYPE_CHECKING:
    from pathlib import Path

CASES = ("lts-4.4.0", "aiven-plain", "aiven-zstd", "aiven-aes", "aiven-both")
KEY_IDS = ("key1", "key2")


@dataclass(frozen=True)
class TierCase:
    """One case, unpacked.

    Attributes:
        name: of the case.
        root: of its files: ``local`` and ``tier``.
        expected: what the broker said about its partitions and segments.
        keys: files of private keys, by id.
    """

    name: str
    root: Path
    expected: dict[str, Any]
    keys: dict[str, Path]

    @property
    def local(self) -> Path:
        """The log directory."""
        return self.root / "local"

    @property
    def store(self) -> Path:
        """The folder of objects."""
        return self.root / "tier"

    def opened(self) -> RemoteTier:
        """Open the store."""
        return open_tier(self.store, keys=self.keys)

    def partitions(self) -> list[dict[str, Any]]:
        """Return the partitions whose directory is there."""
        return [each for each in self.expected["partitions"] if self.path(each).is_dir()]

    def path(self, partition: dict[str, Any]) -> Path:
        """Return the directory of a partition."""
        return self.local / f"{partition['topic']}-{partition['partition']}"


@cache
def tier_case(name: str) -> TierCase:
    """Unpack a case, once in a run: its data keys are wrapped again by keys made for this run."""
    root = run_directory() / "tiered" / name
    with tarfile.open(FIXTURES / "tiered" / name / "files.tar.gz") as archive:
        archive.extractall(root, filter="data")
    for manifest in root.rglob("*.rsm-manifest"):
        values = json.loads(manifest.read_bytes())
        if "encryption" in values:
            values["encryption"]["dataKey"] = _wrapped(values["encryption"]["dataKey"])
            manifest.write_text(json.dumps(values))
    keys = {}
    for key_id in KEY_IDS:
        keys[key_id] = root / f"{key_id}.pem"
        keys[key_id].write_bytes(private_key(key_id))
    expected = json.loads((FIXTURES / "tiered" / name / "expected.json").read_bytes())
    return TierCase(name, root, expected, keys)


def _wrapped(clear: str) -> str:
    key_id, _, data_key = clear.partition(":")
    return f"{key_id}:{base64.b64encode(wrapped_key(base64.b64decode(data_key), key_id)).decode()}"
