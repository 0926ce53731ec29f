"""The adapters of the suite: their descriptions, their lists of known failures, and those in Python at work."""

from __future__ import annotations

import os
import re
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY, need
from helpers.walking import each_of
from seglog_conformance.cases import load_cases, scale_directory
from seglog_conformance.commands.conform_options import wanted as all_testees
from seglog_conformance.judging import Examiner
from seglog_conformance.registry import ADAPTERS, BUILDS, STAMP, Builder, adapters, listed
from seglog_conformance.smoke import smoke
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from types import ModuleType

    from seglog_conformance.registry import Listed
    from seglog_conformance.smoke import Smoke

KNOWN_FAILURES = ADAPTERS.parent / "known_failures"
LOCK_FILES = {"go.sum", "package-lock.json", "Cargo.lock", "npm-shrinkwrap.json", "yarn.lock"}


def lists() -> list[Path]:
    return sorted(KNOWN_FAILURES.glob("*.toml"))


def test_there_are_adapters_in_six_languages_for_twelve_implementations() -> None:
    found = adapters()
    assert len(found) >= 12
    assert {adapter.language for adapter in found} >= {"Python", "Java", "Go", "Rust", "JavaScript", "C"}


@each_of("adapter", adapters(), ids=lambda adapter: adapter.name)
def test_versions_are_exact(adapter: object) -> None:
    versions = getattr(adapter, "versions")  # noqa: B009 - parametrized values have no type
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in versions)


def test_nothing_is_committed_that_a_tool_chain_locks() -> None:
    assert not [path for path in ADAPTERS.rglob("*") if path.name in LOCK_FILES]


@each_of("path", lists(), ids=lambda path: path.stem)
def test_every_known_failure_has_its_reason_and_its_case(path: Path) -> None:
    listed_failures = tomllib.loads(path.read_text(encoding="utf-8")).get("failure", [])
    ids = {case.id for case in [*load_cases(), *load_cases(scale_directory())]}
    assert [entry["case"] for entry in listed_failures if not entry.get("reason") or entry["case"] not in ids] == []


def smoked(wanted: Listed, *, has_jars: bool = False) -> Smoke:
    """Return the smoke test of a testee that is built, or quickly built; CI, which has its tool chain, builds any."""
    builder = Builder(REPOSITORY / BUILDS, strict=True)
    adapter = wanted.adapter
    assert adapter is not None
    is_there = has_jars or (builder.build_directory(adapter, wanted.version) / STAMP).is_file()
    if not os.environ.get("CI") and not is_there:
        pytest.skip(
            f"{wanted.label} is not built; seglog conform smoke --testee {wanted.name}@{wanted.version} builds it"
        )
    need(wanted.label, adapter.toolchain)
    examiner = Examiner(builder.testee(wanted), extra_growth=adapter.extra_memory)
    try:
        examiner.start()
        return smoke(examiner, load_cases())
    finally:
        examiner.close()


@pytest.mark.parametrize("name", ["kafka-python", "aiokafka"])
def test_python_adapters_pass_the_smoke_test(name: str) -> None:
    found = smoked(listed(name))
    assert not found.is_broken, [(result.case, str(result.verdict), result.detail) for result in found.results]


def test_kafka_ts_passes_the_smoke_test_in_both_operations() -> None:
    found = smoked(listed("kafka-ts"))
    assert not found.is_broken, [(result.case, str(result.verdict), result.detail) for result in found.results]
    passed = {result.case.partition("/")[0] for result in found.results if result.verdict is Verdict.PASS}
    assert {"plain-batches", "encoding"} <= passed


KAFKAS_CLASSES = [
    (adapter.name, version) for adapter in adapters() if adapter.language == "Java" for version in adapter.versions
]
"""Kafka's own classes, by adapter and release: classes and methods have other places and names in each."""
MAVENS = Path.home() / ".m2" / "repository" / "org" / "apache" / "kafka" / "kafka-clients"


def test_kafkas_classes_of_twelve_releases_are_asked() -> None:
    assert len({version for name, version in KAFKAS_CLASSES if name == "kafka-storage"}) >= 12


@pytest.mark.parametrize(("name", "version"), KAFKAS_CLASSES)
def test_kafkas_classes_of_each_release_compile_and_answer(name: str, version: str) -> None:
    """Classes of releases that a run does not ask may differ in more cases of the smoke test than they pass."""
    wanted = listed(f"{name}@{version}")
    found = smoked(wanted, has_jars=(MAVENS / version).is_dir())
    results = [(result.case, str(result.verdict), result.detail) for result in found.results]
    assert found.results[0].verdict is Verdict.PASS, results[0]
    assert wanted.adapter is not None
    assert version not in wanted.adapter.asked or not found.is_broken, results


def imports() -> ModuleType:
    """Return what brings the imports of Java sources to where a release has the classes."""
    path = ADAPTERS / "_shared" / "java_imports.py"
    spec = spec_from_file_location("java_imports", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_imports_of_classes_that_the_sources_bring_stay(tmp_path: Path) -> None:
    java, brought, jar = (
        tmp_path / "java",
        tmp_path / "stand-ins" / "org" / "apache" / "kafka" / "log",
        tmp_path / "jars",
    )
    for path in (java, brought, jar):
        path.mkdir(parents=True)
    wanted = "import org.apache.kafka.log.Log;\nimport org.apache.kafka.log.Index;\n"
    (java / "A.java").write_text(wanted, encoding="utf-8")
    (brought / "Log.java").write_text("package org.apache.kafka.log;\n", encoding="utf-8")
    with zipfile.ZipFile(jar / "kafka.jar", "w") as archive:
        for name in ("kafka/log/Log", "kafka/log/Index"):
            archive.writestr(f"{name}.class", b"")
    imports().main(str(jar), str(tmp_path / "sources"), str(java), str(tmp_path / "stand-ins"))
    found = (tmp_path / "sources" / "A.java").read_text(encoding="utf-8")
    assert found == wanted.replace("org.apache.kafka.log.Index", "kafka.log.Index")


def test_a_directory_of_sources_has_what_its_neighbour_has_and_more(tmp_path: Path) -> None:
    older, newer, jars = tmp_path / "older", tmp_path / "newer", tmp_path / "jars"
    for path in (older, newer, jars):
        path.mkdir()
    for path, text in ((older / "A.java", "1"), (older / "B.java", "1"), (newer / "B.java", "2")):
        path.write_text(text, encoding="utf-8")
    (newer / "like").write_text("older\n", encoding="ascii")
    imports().main(str(jars), str(tmp_path / "sources"), str(newer))
    assert {path.name: path.read_text("utf-8") for path in (tmp_path / "sources").iterdir()} == {
        "A.java": "1",
        "B.java": "2",
    }


def test_what_the_sources_bring_goes_before_a_class_of_the_release_by_the_same_name(tmp_path: Path) -> None:
    adapter, jars = tmp_path / "java" / "seglog" / "adapter", tmp_path / "jars"
    for path in (adapter, jars):
        path.mkdir(parents=True)
    (adapter / "A.java").write_text("import org.apache.kafka.log.Log;\n", encoding="utf-8")
    (adapter / "Log.java").write_text("package seglog.adapter;\n", encoding="utf-8")
    with zipfile.ZipFile(jars / "kafka.jar", "w") as archive:
        archive.writestr("org/apache/kafka/log/Log.class", b"")
    imports().main(str(jars), str(tmp_path / "sources"), str(tmp_path / "java"))
    found = (tmp_path / "sources" / "seglog" / "adapter" / "A.java").read_text(encoding="utf-8")
    assert found == "import seglog.adapter.Log;\n"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_source_stands_in_only_for_a_class_that_a_release_lacks(tmp_path: Path, *, is_there: bool) -> None:
    source, jar = (
        tmp_path / "stand-ins" / "org" / "apache" / "kafka" / "log" / "Log.java",
        tmp_path / "jars" / "kafka.jar",
    )
    for path in (source, jar):
        path.parent.mkdir(parents=True)
    source.write_text("package org.apache.kafka.log;\n", encoding="utf-8")
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("org/apache/kafka/log/Log.class" if is_there else "kafka/log/Log.class", b"")
    imports().main(str(jar.parent), str(tmp_path / "sources"), str(tmp_path / "stand-ins"))
    assert [path.name for path in (tmp_path / "sources").rglob("*.java")] == ([] if is_there else ["Log.java"])


def test_imports_follow_classes_that_moved(tmp_path: Path) -> None:
    source, jar = tmp_path / "java" / "a" / "A.java", tmp_path / "jars" / "kafka.jar"
    for path in (source, jar):
        path.parent.mkdir(parents=True)
    source.write_text(
        "import java.util.Crc;\n"
        "import org.apache.kafka.common.utils.internals.Crc;\n"
        "import org.apache.kafka.common.utils.internals.Crc.Inner;\n"
        "import static org.apache.kafka.common.utils.Utils.now;\n"
        "import org.apache.kafka.common.utils.Missing;\n"
        "import org.apache.kafka.server.util.Scheduler;\n",
        encoding="utf-8",
    )
    with zipfile.ZipFile(jar, "w") as archive:
        for name in (
            "common/utils/Crc",
            "other/Crc",
            "common/utils/Utils",
            "common/utils/Scheduler",
            "server/util/Scheduler",
        ):
            archive.writestr(f"org/apache/kafka/{name}.class", b"")
    imports().main(str(jar.parent), str(tmp_path / "sources"), str(tmp_path / "java"))
    assert (tmp_path / "sources" / "a" / "A.java").read_text(encoding="utf-8").splitlines() == [
        "import java.util.Crc;",
        "import org.apache.kafka.common.utils.Crc;",
        "import org.apache.kafka.common.utils.Crc.Inner;",
        "import static org.apache.kafka.common.utils.Utils.now;",
        "import org.apache.kafka.common.utils.Missing;",
        "import org.apache.kafka.server.util.Scheduler;",
    ]


def test_a_run_asks_the_newest_and_the_oldest_of_kafkas_classes() -> None:
    labels = {one.label for one in all_testees((), (), "")}
    for name in ("kafka-storage", "kafka-clients", "kafka-clients-wire"):
        assert labels >= {f"{name} 4.4.0", f"{name} 4.1.1"}
        assert (KNOWN_FAILURES / f"{name}@4.4.0.toml").is_file()
    assert {one.version for one in all_testees((), (), "9.9")} == {"", "9.9"}
