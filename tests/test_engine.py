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

from seglog_format import Engine, open_partition, rebuild_indexes, recover, verify
from seglog_format.cli.main import run
from seglog_format.cli.options import ENGINES, settled
from seglog_format.engine import choice
from seglog_format.engine.choice import LOADED_SIZE, START_SIZE, choose
from seglog_format.engine.columnar import _loading
from seglog_format.errors import UsageError
from seglog_format.log.log_sizes import size_of_logs
from seglog_format.recovery.apply import RecoveryOptions
from seglog_format.types import Extent

if TYPE_CHECKING:
    from pathlib import Path

CASE = "4.3.0/segs-fine"
LOADED = ("numba", "numpy", "llvmlite")


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return shutil.copytree(bundled(CASE) / "segs-fine-0", tmp_path / "segs-fine-0")


@pytest.mark.parametrize(
    ("size", "is_loaded", "wanted"),
    [
        (0, False, Engine.PLAIN),
        (START_SIZE, False, Engine.PLAIN),
        (START_SIZE + 1, False, Engine.COLUMNAR),
        (LOADED_SIZE, True, Engine.PLAIN),
        (LOADED_SIZE + 1, True, Engine.COLUMNAR),
        (LOADED_SIZE + 1, False, Engine.PLAIN),
    ],
)
def test_size_decides(size: int, wanted: Engine, *, is_loaded: bool) -> None:
    found = choose(Engine.AUTO, size, is_installed=True, is_loaded=is_loaded)
    assert found.engine is wanted
    assert found.is_columnar is (wanted is Engine.COLUMNAR)
    assert str(LOADED_SIZE if is_loaded else START_SIZE) in found.reason


@given(size=st.integers(0, 2**70), is_loaded=st.booleans())
def test_the_caller_decides(size: int, is_loaded: bool) -> None:  # noqa: FBT001 - drawn
    for wanted in (Engine.REFERENCE, Engine.PLAIN, Engine.COLUMNAR):
        assert choose(wanted, size, is_installed=True, is_loaded=is_loaded).engine is wanted
    assert choose(Engine.AUTO, size, is_installed=False, is_loaded=is_loaded).engine is Engine.PLAIN
    with pytest.raises(UsageError, match="fast"):
        choose(Engine.COLUMNAR, size, is_installed=False, is_loaded=is_loaded)


def test_the_option_has_the_names_of_the_enum() -> None:
    assert list(ENGINES) == [engine.value for engine in Engine]


def test_what_is_not_installed_is_refused_by_every_road(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "is_installed", lambda: False)
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


@pytest.mark.parametrize("name", choice.NEEDED)
def test_a_missing_package_is_named_and_how_to_install_it(name: str) -> None:
    with pytest.raises(UsageError, match=rf"needs .*\b{name}\b.*: pip install 'seglog-format\[fast\]'"), _loading():
        raise ModuleNotFoundError(name=f"{name}.core")


@pytest.mark.parametrize("error", [ModuleNotFoundError(name="seglog_format.columnar.none"), ImportError(name="numpy")])
def test_a_failing_import_is_not_a_missing_package(error: ImportError) -> None:
    with pytest.raises(ImportError) as found, _loading():
        raise error
    assert found.value is error


def test_every_road_takes_the_engine_that_is_asked_for(partition: Path) -> None:
    pytest.importorskip("numba")
    for engine in (Engine.REFERENCE, Engine.PLAIN, Engine.COLUMNAR):
        with open_partition(partition) as log:
            assert log.engine_for(engine=engine).engine is engine
            assert [record.offset for record in log.records(engine=engine)] == list(range(300))
        extent = Extent()
        assert list(verify(partition, engine=engine, extent=extent)) == []
        assert extent.engine is engine
        assert extent.batches > 0


def test_auto_is_the_same_rule_everywhere(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = size_of_logs(partition)
    monkeypatch.setattr(choice, "is_installed", lambda: True)
    for threshold, wanted in ((size, Engine.PLAIN), (size - 1, Engine.COLUMNAR)):
        monkeypatch.setattr(choice, "START_SIZE", threshold)
        monkeypatch.setattr(choice, "LOADED_SIZE", threshold)
        with open_partition(partition) as log:
            assert log.engine_for().engine is wanted
        assert settled("auto", [partition]) is wanted
        assert settled("auto", [partition.parent / partition.name]) is wanted
        if wanted is Engine.PLAIN:
            list(verify(partition, extent=(extent := Extent())))
            assert extent.engine is wanted


def test_only_what_is_to_be_read_counts(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "is_installed", lambda: True)
    monkeypatch.setattr(choice, "START_SIZE", size_of_logs(partition) // 2)
    monkeypatch.setattr(choice, "LOADED_SIZE", size_of_logs(partition) // 2)
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
