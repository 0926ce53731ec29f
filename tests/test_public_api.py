"""The public names are there, documented, and cost nothing until they are used."""

from __future__ import annotations

import inspect
import json
import pydoc
import re
import subprocess
import sys
import tomllib
from enum import Enum
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of

import seglog_format
from seglog_format import errors, spark, strategies, types
from seglog_format.cli.main import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

IMPORTED = (
    "import json, sys; before = set(sys.modules); import {}; print(json.dumps(sorted(set(sys.modules) - before)))"
)


def imported_by(module: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(module)], capture_output=True, check=True, cwd=REPOSITORY
    )
    return set(json.loads(run.stdout))


MODULES = (seglog_format, spark, strategies, types)
PUBLIC = [(module, name) for module in MODULES for name in module.__all__]
MAX_NAMES = 40
FUNCTIONS = [
    "anonymise",
    "build_batch",
    "build_end_marker",
    "build_message_entry",
    "compact",
    "decode_batch",
    "encode_batch",
    "encode_columns",
    "export",
    "generate",
    "new_record",
    "open_cluster",
    "open_log_directory",
    "open_partition",
    "open_tier",
    "scan_polars",
    "value_decoder",
    "read_schemas",
    "rebuild_indexes",
    "recover",
    "requirement",
    "resurrect",
    "retain",
    "salvage",
    "truncate",
    "verify",
    "walk",
]
WRITERS_AND_SETTINGS = ["Environment", "LogConfig", "LogWriter", "PartitionWriter", "RecoveryOptions"]
ENUMS = [
    "Engine",
    "BrokerGeneration",
    "CompressionCodec",
    "ControlRecordType",
    "OffsetSpec",
    "Origin",
    "Severity",
    "TimestampType",
]
PAGES = {
    seglog_format: "python.md",
    spark: "python-spark.md",
    strategies: "python-testing.md",
    types: "python-types.md",
}


@each_of(("module", "name"), PUBLIC)
def test_name_is_there_and_documented(module: ModuleType, name: str) -> None:
    assert inspect.getdoc(getattr(module, name))


def test_the_top_holds_what_a_user_calls_and_nothing_else() -> None:
    assert sorted([*FUNCTIONS, *WRITERS_AND_SETTINGS, *ENUMS]) == seglog_format.__all__
    assert len(seglog_format.__all__) <= MAX_NAMES
    assert all(inspect.isfunction(getattr(seglog_format, name)) for name in FUNCTIONS)
    assert all(issubclass(getattr(seglog_format, name), Enum) for name in ENUMS)


@pytest.mark.parametrize("module", MODULES)
def test_the_list_is_sorted_complete_and_shown_by_dir(module: ModuleType) -> None:
    assert module.__all__ == sorted(module.__all__)
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("module", MODULES)
def test_a_name_that_is_not_there(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'decode_everything'"):
        _ = module.decode_everything


def names_on_the_page(module: ModuleType) -> list[str]:
    page = (REPOSITORY / "docs" / "reference" / PAGES[module]).read_text(encoding="utf-8")
    return sorted(re.findall(r"^::: (.+)$", page, re.MULTILINE))


PARTS = {
    name.rpartition(".")[2]: pydoc.locate(name)
    for name in names_on_the_page(types)
    if not name.startswith("seglog_format.types.")
}
"""Parts of results, reached as attributes: their page documents them, and users need not import them."""


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_page_shows_each_name_once(module: ModuleType) -> None:
    shown = [name for name in names_on_the_page(module) if name.rpartition(".")[2] not in PARTS]
    assert shown == [f"{module.__name__}.{name}" for name in module.__all__]


@each_of("name", sorted(PARTS))
def test_a_part_of_a_result_is_documented_and_not_public(name: str) -> None:
    assert inspect.getdoc(PARTS[name])
    assert name not in types.__all__


def test_no_name_is_public_twice() -> None:
    names = [name for _, name in PUBLIC] + [name for name, kind in vars(errors).items() if inspect.isclass(kind)]
    assert len(names) == len(set(names))


def public_functions() -> list[tuple[str, object]]:
    values = [(name, getattr(module, name)) for module, name in PUBLIC]
    methods = [
        (f"{name}.{attribute}", value)
        for name, kind in values
        if inspect.isclass(kind) and not issubclass(kind, (Exception, Enum))
        for attribute, value in vars(kind).items()
        if not attribute.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]
    return [(name, value) for name, value in values if inspect.isfunction(value)] + methods


INTERNAL = {
    "Checked": "entries that `PartitionWriter.append` has checked before, when the server hands them over",
    "Entry": "prepared entries that `PartitionWriter.append_as_follower` takes from `generate`",
    "LogScans": "what a planned recovery hands to its own `apply`",
    "Overlap": "what the loss lists of commands are made of; `LogSegment.overlaps` hands it to them",
    "Packer": "how the slots of an index are laid out",
    "PartitionPlan": "what a reader must find in a generated partition, for the proofs",
    "Problem": "what `Finding.of` makes a finding of, in checks",
    "Recipe": "a recipe that was read; `generate` takes its text or a mapping",
    "RemoteSegments": "what `LocalMetadataTopic.of` hands to a store, in tier",
    "ScanKeywords": "the keywords of `Partition.scan`",
    "Table": "pyarrow's",
}
"""Classes that public functions name and that users do not need, each with the reason."""


def classes_of_the_package() -> set[str]:
    files = (REPOSITORY / "seglog_format").rglob("*.py")
    return {
        name for file in files for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }


def annotations_of(kind: type) -> Iterator[tuple[str, object]]:
    """Yield what the public attributes, properties and methods of a class take and return."""
    for base in (each for each in kind.__mro__ if each.__module__.startswith("seglog_format")):
        yield from ((name, said) for name, said in vars(base).get("__annotations__", {}).items() if name[0] != "_")
        for name, value in vars(base).items():
            function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
            if name[0] != "_" and inspect.isfunction(function):
                yield from ((f"{name}: {key}", said) for key, said in function.__annotations__.items() if key != "self")


def test_all_that_public_names_take_and_return_is_documented() -> None:
    values = {name: getattr(module, name) for module, name in PUBLIC} | vars(errors) | PARTS
    ours, missing = classes_of_the_package(), set[tuple[str, str]]()
    for owner, value in values.items():
        said = annotations_of(value) if inspect.isclass(value) else ()
        if inspect.isfunction(value):
            said = value.__annotations__.items()
        for where, annotation in said:
            named = {each for each in re.findall(r"\b[A-Z]\w+", str(annotation)) if each in ours}
            missing |= {(each, f"{owner}.{where}") for each in named - values.keys()}
    assert {name for name, _ in missing} - INTERNAL.keys() == set(), missing
    assert {name for name, _ in missing} == INTERNAL.keys()


def test_every_public_function_says_what_it_does() -> None:
    assert [name for name, function in public_functions() if not inspect.getdoc(function)] == []


def test_importing_the_package_imports_nothing_else() -> None:
    roots = {name.partition(".")[0] for name in imported_by("seglog_format")}
    assert roots - set(sys.stdlib_module_names) == {"seglog_format"}


@pytest.mark.parametrize("module", ["model", "names", "requirements", "errors", "types"])
def test_the_lowest_layer_imports_no_third_party_package(module: str) -> None:
    roots = {name.partition(".")[0] for name in imported_by(f"seglog_format.{module}")}
    assert roots - set(sys.stdlib_module_names) == {"seglog_format"}


def test_the_command_line_starts_without_the_schemas() -> None:
    roots = {name.partition(".")[0] for name in imported_by("seglog_format.cli")}
    assert roots.isdisjoint({"construct", "rich", "zstandard", "lz4"})


def test_the_version_is_stated_once_in_effect() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
