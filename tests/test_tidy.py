"""The source tree keeps its own rules, and each rule notices what breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of

from tools import public_names, tidy
from tools.documented_names import documented_names_exist
from tools.unused import constants_are_used, functions_are_used

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@each_of("rule", tidy.RULES, ids=lambda rule: rule.__name__)
def test_tree_is_tidy(rule: Callable[[Path], Iterator[str]]) -> None:
    assert list(rule(REPOSITORY)) == []


@pytest.mark.parametrize(
    "line",
    ["open('/" + "home/ann/x')", "index = https://" + "pypi" + ".org/simple", "# TO" + "DO", "# TO" + "DO: later"]
    + [7 * mark + " main" for mark in "<>|"],
)
def test_text_of_one_machine_conflicts_and_bare_open_ends_are_noticed(tmp_path: Path, line: str) -> None:
    (tmp_path / "notes.md").write_text(f"fine\n{line}\n", encoding="utf-8")
    assert [complaint.split(": ")[0] for complaint in tidy.no_machine_in_text(tmp_path)] == ["notes.md:2"]


@each_of(
    "line",
    [
        *("this project does", "as ours does", "the reference reader", "`seglog verify`", "this implementation"),
        *("such as `salvage`", "`seglog_format/schema/` lists"),
    ],
)
def test_a_chapter_that_speaks_of_this_project_is_noticed(tmp_path: Path, line: str) -> None:
    (tmp_path / "spec").mkdir(exist_ok=True)
    for name in ("20-a.md", "90-b.md"):
        (tmp_path / "spec" / name).write_text(f"fine, 4 hours\n{line}\n", encoding="utf-8")
    assert [each.split(": ")[0] for each in tidy.chapters_name_no_implementation(tmp_path)] == ["spec/20-a.md:2"]


@pytest.mark.parametrize(
    "line", ["see /var/lib/kafka", "# TO" + "DO: the broker writes two", "https://kafka.apache.org"]
)
def test_ordinary_text_is_left_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "notes.md").write_text(line, encoding="utf-8")
    assert list(tidy.no_machine_in_text(tmp_path)) == []


def test_a_large_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(bytes(tidy.LARGEST_FILE_BYTES + 1))
    assert list(tidy.files_are_small(tmp_path)) == ["big.bin: 5000001 bytes"]


@pytest.mark.parametrize(
    ("when", "complaints"), [("", 1), ("\nIt was so in May\n2026.", 0), ("\n\n## Other\n\nMay 2026", 1)]
)
def test_a_link_to_another_site_without_a_date_is_noticed(tmp_path: Path, when: str, complaints: int) -> None:
    (tmp_path / "spec").mkdir()
    text = f"# A\n\n[Elsewhere](https://kafka.apache.org/) it is wrong.{when}\n"
    (tmp_path / "spec" / "x.md").write_text(text, encoding="utf-8")
    assert len(list(tidy.links_out_are_dated(tmp_path))) == complaints


DOCUMENTED = '''
class Base:
    """Base.

    Attributes:
        first: of the body.
        second: of a method.
    """

    first: int = 0

    def __init__(self, size: int) -> None:
        self.second = size


class Derived(Base):
    """Derived.

    Args:
        size: of the base.

    Attributes:
        first: of the base.
        {attribute}: its own.
    """

    @property
    def third(self) -> int:
        return 0


def called(one: int, *others: int, **changed: int) -> None:
    """Do nothing.

    Args:
        one: number.
        *others: more, with an explanation
            that goes on: here.
        {parameter}: by name.
    """
'''


@pytest.mark.parametrize(
    ("attribute", "parameter", "complaints"),
    [
        ("third", "**changed", []),
        ("fourth", "changed", ["tools/x.py:16: Derived has no fourth, which its docstring explains"]),
        ("third", "two", ["tools/x.py:32: called has no two, which its docstring explains"]),
    ],
)
def test_a_documented_name_that_is_not_there_is_noticed(
    tmp_path: Path, attribute: str, parameter: str, complaints: list[str]
) -> None:
    (tmp_path / "tools").mkdir()
    text = DOCUMENTED.format(attribute=attribute, parameter=parameter)
    (tmp_path / "tools" / "x.py").write_text(text, encoding="utf-8")
    assert list(documented_names_exist(tmp_path)) == complaints


def test_a_constant_that_nothing_uses_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "proofs").mkdir()
    text = "from typing import Final\nUSED: Final = 1\nSIZE: Final = USED\nOLD = 2\nA, B = 1, 2\n"
    (tmp_path / "proofs" / "x.py").write_text(text, encoding="utf-8")
    assert list(constants_are_used(tmp_path)) == [
        f"proofs/x.py:{line}: nothing uses {name}" for line, name in ((3, "SIZE"), (4, "OLD"))
    ]


def test_a_long_module_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "long.py").write_text("\n" * 701, encoding="utf-8")
    assert list(tidy.modules_are_short(tmp_path)) == ["tools/long.py: 701 lines"]


@pytest.mark.parametrize(
    "directory", ["seglog_format", "conformance/adapters/x", "proofs", "benchmarks", "tools", "tests"]
)
def test_a_long_function_is_noticed_in_every_directory(tmp_path: Path, directory: str) -> None:
    (tmp_path / directory).mkdir(parents=True)
    body = '    """Say\n\n    it."""\n' + "    pass\n" * 60
    (tmp_path / directory / "long.py").write_text(f"def run():\n{body}", encoding="utf-8")
    assert list(tidy.functions_are_short(tmp_path)) == [f"{directory}/long.py:1: run has 61 lines"]


def test_an_exception_for_what_is_gone_is_noticed(tmp_path: Path) -> None:
    assert "seglog_format/cli/serve.py: command: not too long any more" in list(tidy.exceptions_are_needed(tmp_path))


def test_a_schema_without_a_chapter_and_a_chapter_without_a_test_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "40-offset-index.md").touch()
    (tmp_path / "seglog_format" / "schema").mkdir(parents=True)
    (tmp_path / "seglog_format" / "schema" / "offsets.py").touch()
    assert list(tidy.stems_agree(tmp_path)) == [
        "seglog_format/schema/offsets.py: spec/ has no chapter of that name",
        "spec/40-offset-index.md: there is no tests/test_offset_index.py",
    ]


TOP = '__all__ = ["open_partition", "walk"]'
PRIVATE_CODE = [
    "from seglog_format.log.partition import open_partition",
    "from seglog_format import log",
    "from seglog_format.types import LogReader",
    "import seglog_format.codec.framing",
    "import seglog_format\nseglog_format.codec",
    'import_module("seglog_format.columnar")',
    'f"seglog_format.columnar.{name}"',
]
PUBLIC_CODE = [
    "from seglog_format import open_partition, types",
    "from seglog_format.types import Record",
    "from seglog_format.errors import FormatError",
    "import seglog_format\nseglog_format.walk",
    'run("-m", "seglog_format.cli")',
    "from seglog_formats import anything",
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "seglog_format").mkdir()
    (tmp_path / "seglog_format" / "__init__.py").write_text(TOP, encoding="utf-8")
    (tmp_path / "seglog_format" / "types.py").write_text('__all__ = ["Record"]', encoding="utf-8")
    (tmp_path / "seglog_format" / "errors.py").write_text("class FormatError: ...", encoding="utf-8")
    return tmp_path


def complaints_about(package: Path, name: str, text: str) -> list[str]:
    path = package / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return list(public_names.private_uses(package))


@pytest.mark.parametrize("code", PRIVATE_CODE)
def test_a_private_name_in_a_benchmark_is_noticed(package: Path, code: str) -> None:
    [complaint] = complaints_about(package, "benchmarks/peers/ours.py", code)
    assert complaint.startswith("benchmarks/peers/ours.py:")
    assert complaint.endswith("is not public")


@pytest.mark.parametrize("code", PUBLIC_CODE)
def test_public_names_in_a_benchmark_are_left_alone(package: Path, code: str) -> None:
    assert complaints_about(package, "benchmarks/bench.py", code) == []


@pytest.mark.parametrize("code", PRIVATE_CODE[:4])
@pytest.mark.parametrize("language", ["python", "console", ""])
def test_a_private_name_in_the_code_of_a_document_is_noticed(package: Path, language: str, code: str) -> None:
    text = f"# Title\n\nfrom seglog_format.log import prose\n\n```{language}\n{code}\n```\n"
    [complaint] = complaints_about(package, "docs/how-to/read.md", text)
    assert complaint.startswith("docs/how-to/read.md:6: ")


def test_a_private_name_in_the_example_of_a_docstring_is_noticed(package: Path) -> None:
    text = '"""\n>>> from seglog_format.log.partition import open_partition\n"""\nfrom seglog_format.log import x\n'
    assert complaints_about(package, "seglog_format/log/partition.py", text) == [
        "seglog_format/log/partition.py:2: seglog_format.log.partition.open_partition is not public"
    ]


LISTED = """
[[modules]]
names = ["seglog_format.codec"]
by = ["proofs/fuzz"]
reason = "bytes are decoded one by one"
"""


@pytest.mark.parametrize(
    ("file", "code", "is_fine"),
    [
        ("proofs/fuzz/seeds.py", "from seglog_format.codec import decode_all", True),
        ("proofs/fuzz/seeds.py", "from seglog_format.codec import build", True),
        ("proofs/fuzz/seeds.py", "from seglog_format.codec.build import sealed", True),
        ("proofs/fuzz/seeds.py", "import seglog_format.codec.build", True),
        ("proofs/fuzz/seeds.py", "from seglog_format.codecs import build", False),
        ("proofs/power/life.py", "from seglog_format.codec.build import sealed", False),
        ("tools/docs/pages.py", "from seglog_format.schema import fields", False),
        ("tools/docs/pages.py", "from seglog_format import walk", True),
    ],
)
def test_proofs_and_generators_import_what_the_list_names_and_no_more(
    package: Path, file: str, code: str, *, is_fine: bool
) -> None:
    for name, text in (
        ("tools/private_imports.toml", LISTED),
        ("proofs/fuzz/other.py", "import seglog_format.codec"),
        ("seglog_format/codec/build.py", ""),
        (file, code),
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    found = list(public_names.unlisted_uses(package))
    assert len(found) == (0 if is_fine else 1)


def test_a_prefix_is_no_module(package: Path) -> None:
    (package / "tools").mkdir()
    (package / "tools" / "private_imports.toml").write_text(LISTED.replace("codec", "cod"), encoding="utf-8")
    (package / "proofs" / "fuzz").mkdir(parents=True)
    (package / "proofs" / "fuzz" / "seeds.py").write_text("import seglog_format.codec", encoding="utf-8")
    assert list(public_names.unlisted_uses(package)) == [
        "proofs/fuzz/seeds.py:1: seglog_format.codec is neither public nor in tools/private_imports.toml",
        "tools/private_imports.toml: no module imports seglog_format.cod",
    ]


def test_a_long_list_and_an_entry_that_nobody_needs_are_noticed(package: Path) -> None:
    (package / "tools").mkdir()
    most = public_names.MAX_LISTED
    (package / "tools" / "private_imports.toml").write_text(LISTED * (most + 1), encoding="utf-8")
    found = list(public_names.unlisted_uses(package))
    assert f"tools/private_imports.toml: {most + 1} modules, and {most} at most" in found
    assert "tools/private_imports.toml: no module imports seglog_format.codec" in found


def test_what_only_tests_reach_is_noticed(package: Path) -> None:
    for name, text in (
        ("seglog_format/log/read.py", "def read(): ...\ndef lonely(): ...\n@checks\ndef told(): ...\nclass Kept: ..."),
        (
            "seglog_format/cli/late.py",
            "NAME = 'seglog_format.log.read.Kept'\nfrom seglog_format.log.read import read",
        ),
        ("tests/test_read.py", "from seglog_format.log.read import lonely"),
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    (package / "seglog_format" / "errors.py").unlink()
    found = list(functions_are_used(package))
    assert found == ["seglog_format/log/read.py:2: nothing outside of tests uses lonely"]
