"""Executors with a bare Python, as on a cluster: what they import comes from `--archives`, kernels included."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.bucket import Bucket, bucket_server
from helpers.support import REPOSITORY, bundled
from helpers.tier_cases import tier_case
from packaging.requirements import Requirement

from proofs.spark.cluster import cluster
from seglog_format import open_partition
from seglog_format.storage import child_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(sys.platform != "linux", reason="the hosts of the cluster are loopback addresses of Linux"),
]

LIMIT_SECONDS = 240.0


def needed(name: str, extras: set[str]) -> set[str]:
    """Return the names of the packages that one needs with some extras, itself among them."""
    found = {name}
    for text in distribution(name).requires or ():
        each = Requirement(text)
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            found |= needed(each.name, each.extras)
    return found


def pack(archive: Path) -> None:
    """Write what `pip install --target` of the wheel would bring with the extras `fast` and `tier`."""
    with tarfile.open(archive, "w") as file:
        file.add(REPOSITORY / "seglog_format", "seglog_format", filter=without_bytecode)
        for name in sorted(needed("seglog-format", {"fast", "tier"})):
            for each in distribution(name).files or ():
                if each.parts[0] not in {"..", "__pycache__"} and "tests" not in each.parts:
                    file.add(each.locate(), str(each), filter=without_bytecode)


def without_bytecode(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    yield from bucket_server()


@pytest.fixture(scope="module")
def found(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Let the executors read a bucket, by credentials of the query, and a tiered partition with encrypted objects."""
    root = tmp_path_factory.mktemp("archive")
    case = tier_case("aiven-both")
    keys = json.dumps({name: str(path) for name, path in case.keys.items()})
    asked = [
        ("bucket", bucket.put(bundled("4.3.0/segs") / "segs-0", "archive/segs-0"), bucket.options),
        ("tiered", str(case.local / "orders-0"), {"remote": str(case.store), "remoteKeys": keys}),
    ]
    (root / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    pack(root / "packages.tar")
    with cluster(root / "hosts", "") as master, (root / "said.txt").open("w") as said:
        program = [sys.executable, "-m", "helpers.archive_queries"]
        files = [str(root / each) for each in ("packages.tar", "asked.json", "found.json")]
        changes = {
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests")]),
            "PYSPARK_PYTHON": str(Path(sys._base_executable)),  # type: ignore[attr-defined] # has no packages
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        status = child_processes.run(
            [*program, master, *files], directory=root, stdout=said, stderr=said, changes=changes, timeout=LIMIT_SECONDS
        ).returncode
    assert status == 0, (root / "said.txt").read_text(encoding="utf-8", errors="replace")[-3000:]
    answers: dict[str, Any] = json.loads((root / "found.json").read_text(encoding="utf-8"))
    return answers


def test_executors_import_what_the_archive_brings_and_compile_nothing(found: dict[str, Any]) -> None:
    homes = [Path(each) for each in found["imported"]]
    assert {"seglog_format", "pyarrow", "columnar"} <= {part for each in homes for part in each.parts}
    assert all("packages" in each.parts for each in homes), homes


def test_executors_read_a_bucket_by_credentials_of_the_query(found: dict[str, Any]) -> None:
    with open_partition(bundled("4.3.0/segs") / "segs-0") as log:
        assert found["bucket"] == [record.offset for record in log.records()]


def test_executors_read_tiered_segments_by_keys_on_their_disks(found: dict[str, Any]) -> None:
    case = tier_case("aiven-both")
    with open_partition(case.local / "orders-0", remote=case.opened()) as log:
        assert found["tiered"] == [record.offset for record in log.records()]
