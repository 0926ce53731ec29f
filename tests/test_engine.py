"""One rule chooses the engine, for Python and the command line alike; what was chosen can be asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY, bundled
from hypothesis import given
from hypothesis import strategies as st

from seglog_format import Engine, engine, open_partition, rebuild_indexes, recover, verify
from seglog_format.cli.main import run
from seglog_format.cli.options import ENGINES, settled
from seglog_format.columnar.kernel_library import NOT_COMPILED
from seglog_format.engine import COLUMNAR_SIZE, _loading, choose
from seglog_format.errors import UsageError
from seglog_format.log.path_kind import size_of_logs
from seglog_format.recovery.apply import RecoveryOptions
from seglog_format.types import Extent

if TYPE_CHECKING:
    from pathlib import Path

CASE = "4.3.0/segs-fine"
LOADED = ("numba", "numpy", "llvmlite", "seglog_format.columnar.compiled")


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return shutil.copytree(bundled(CASE) / "segs-fine-0", tmp_path / "segs-fine-0")


def nothing() -> None:
    """Return what the columnar engine lacks where it can be used."""


@pytest.mark.parametrize(
    ("size", "wanted"), [(0, Engine.PLAIN), (COLUMNAR_SIZE, Engine.PLAIN), (COLUMNAR_SIZE + 1, Engine.COLUMNAR)]
)
def test_size_decides(size: int, wanted: Engine) -> None:
    found = choose(Engine.AUTO, size, nothing)
    assert found.engine is wanted
    assert found.is_columnar is (wanted is Engine.COLUMNAR)
    assert str(COLUMNAR_SIZE) in found.reason


@given(size=st.integers(0, 2**70))
def test_the_caller_decides(size: int) -> None:
    for wanted in (Engine.REFERENCE, Engine.PLAIN, Engine.COLUMNAR):
        assert choose(wanted, size, nothing).engine is wanted
    assert choose(Engine.AUTO, size, lambda: "a part").engine is Engine.PLAIN
    with pytest.raises(UsageError, match="a part"):
        choose(Engine.COLUMNAR, size, lambda: "a part")


def test_for_small_reads_nobody_looks_for_the_columnar_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "lacking", None)
    assert engine.engine_for(Engine.AUTO, COLUMNAR_SIZE).engine is Engine.PLAIN


def test_where_kernels_are_not_compiled_the_plain_engine_reads_and_one_line_says_so(
    partition: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine, "COLUMNAR_SIZE", 0)
    for lack, count in ((NOT_COMPILED, 1), (engine.NOT_INSTALLED, 0)):
        monkeypatch.setattr(engine, "lacking", lambda lack=lack: lack)
        for _ in range(2):
            assert run(["verify", str(partition)]) == 0
        shown = capsys.readouterr().err.splitlines()
        assert shown == [f"seglog: the plain engine reads, slowly: {lack}"] * count


def test_the_option_has_the_names_of_the_enum() -> None:
    assert list(ENGINES) == [each.value for each in Engine]


def test_what_is_not_installed_is_refused_by_every_road(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "lacking", lambda: engine.NOT_INSTALLED)
    with open_partition(partition) as log, pytest.raises(UsageError):
        log.records(engine=Engine.COLUMNAR)
    with pytest.raises(UsageError):
        list(verify(partition, engine=Engine.COLUMNAR))
    with pytest.raises(UsageError):
        recover(partition, options=RecoveryOptions(engine=Engine.COLUMNAR))
    with pytest.raises(UsageError):
        list(rebuild_indexes(partition, engine=Engine.COLUMNAR).segments())
    for command in ("verify", "recover", "index", "ls"):
        assert run([command, "--engine", "columnar", str(partition)]) == 2


@pytest.mark.parametrize("name", engine.NEEDED)
def test_a_missing_package_is_named_and_how_to_install_it(name: str) -> None:
    with pytest.raises(UsageError, match=rf"needs .*\b{name}\b.*: pip install 'seglog-format\[fast\]'"), _loading():
        raise ModuleNotFoundError(name=f"{name}.core")


@pytest.mark.parametrize("error", [ModuleNotFoundError(name="seglog_format.columnar.none"), ImportError(name="numpy")])
def test_a_failing_import_is_not_a_missing_package(error: ImportError) -> None:
    with pytest.raises(ImportError) as found, _loading():
        raise error
    assert found.value is error


def test_every_road_takes_the_engine_that_is_asked_for(partition: Path) -> None:
    pytest.importorskip("pyarrow")
    for asked in (Engine.REFERENCE, Engine.PLAIN, Engine.COLUMNAR):
        with open_partition(partition) as log:
            assert log.engine_for(engine=asked).engine is asked
            assert [record.offset for record in log.records(engine=asked)] == list(range(300))
        extent = Extent()
        assert list(verify(partition, engine=asked, extent=extent)) == []
        assert extent.engine is asked
        assert extent.batches > 0


def test_auto_is_the_same_rule_everywhere(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = size_of_logs(partition)
    monkeypatch.setattr(engine, "lacking", nothing)
    for threshold, wanted in ((size, Engine.PLAIN), (size - 1, Engine.COLUMNAR)):
        monkeypatch.setattr(engine, "COLUMNAR_SIZE", threshold)
        with open_partition(partition) as log:
            assert log.engine_for().engine is wanted
        assert settled("auto", [partition]) is wanted
        assert settled("auto", [partition.parent / partition.name]) is wanted
        if wanted is Engine.PLAIN:
            list(verify(partition, extent=(extent := Extent())))
            assert extent.engine is wanted


def test_only_what_is_to_be_read_counts(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "lacking", nothing)
    monkeypatch.setattr(engine, "COLUMNAR_SIZE", size_of_logs(partition) // 2)
    with open_partition(partition) as log:
        assert log.engine_for().engine is Engine.COLUMNAR
        assert log.engine_for(290).engine is Engine.PLAIN


def test_sizes_of_whatever_a_path_names(partition: Path) -> None:
    logs = sorted(partition.glob("*.log"))
    size = sum(log.stat().st_size for log in logs)
    assert size_of_logs(logs[0]) == logs[0].stat().st_size
    assert size_of_logs(partition) == size
    (partition.parent / "meta.properties").write_text("version=1\nbroker.id=1\n")
    shutil.copytree(partition, partition.parent / "other-0")
    assert size_of_logs(partition.parent) == 2 * size
    with pytest.raises(UsageError):
        size_of_logs(partition / "no-such")


@pytest.mark.parametrize(
    "read",
    [
        "list(seglog_format.open_partition(path).records())",
        "list(seglog_format.verify(path))",
        "seglog_format.recover(path)",
        "list(seglog_format.rebuild_indexes(path).segments())",
    ],
)
def test_small_logs_load_no_compiled_code(read: str, partition: Path) -> None:
    program = f"import sys, seglog_format; path = sys.argv[1]; {read}; print([n for n in {LOADED} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program, str(partition)], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout == "[]\n"
