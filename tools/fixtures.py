"""Build and check `fixtures/`.

``build --from DIR`` copies the selection of `fixtures/selection.toml` out of the full collection of broker
directories, builds the handbook fixtures and those of messages, and writes the manifest. ``manifest`` writes the
manifest alone; ``check`` compares it with the files and holds the size limits. The result depends on the input bytes
only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import handbook_fixtures, message_fixtures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
MANIFEST = "manifest.json"
MAX_FILE_SIZE = 5 * 10**6
MAX_TOTAL_SIZE = 40 * 10**6

ARCHIVE = "files.tar.gz"
EXPECTED = "expected.jsonl.gz"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def toml_lines(values: dict[str, object]) -> Iterator[str]:
    """Yield ``key = value`` lines for strings, numbers and lists; JSON's notation is also TOML's."""
    for key, value in values.items():
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"


def by_longest_prefix(table: dict[str, list[str]], name: str) -> list[str]:
    """Return the entry whose key is the longest that `name` starts with."""
    return table[max((key for key in table if name.startswith(key)), key=len)]


def exercised(selection: dict[str, Any], case: dict[str, Any]) -> list[str]:
    """Return requirement ids that a case exercises, sorted: by its purpose, its formats and its kinds of file."""
    suffixes = {part for file in case["files"] for part in file["path"].replace("-", ".").split(".")}
    groups = [by_longest_prefix(selection["kind"], case["case"])]
    groups += [selection["magic"][str(magic)] for magic in case["magics"]]
    groups += [selection["codec"][codec] for codec in case["codecs"] if codec != "none"]
    groups += [ids for suffix, ids in selection["suffix"].items() if suffix in suffixes]
    return sorted({identifier for ids in groups for identifier in ids})


def case_text(selection: dict[str, Any], collection: dict[str, Any], case: dict[str, Any], target: Path) -> str:
    """Return the `case.toml` of a bundled case."""
    values: dict[str, object] = {
        "producer": collection["software"],
        "version": collection["version"],
        "mode": collection["mode"],
        "source": "Files as the broker left them; expected lines: " + collection["expectedBy"] + ".",
        "about": case["about"],
        "states": case["states"],
        "magics": case["magics"],
        "codecs": case["codecs"],
        "requirements": exercised(selection, case),
    }
    if case.get("edited"):
        values["edited"] = case["edited"]
    sums = {name: sha256(target / name) for name in (ARCHIVE, EXPECTED)}
    config = {json.dumps(key): value for key, value in case.get("topicConfig", {}).items()}
    quoted = {json.dumps(name): value for name, value in sums.items()}
    lines = [*toml_lines(values), "", "[sha256]", *toml_lines(quoted)]
    if config:
        lines += ["", "[topic_config]", *toml_lines(config)]
    return "\n".join(lines) + "\n"


def build_case(selection: dict[str, Any], collection: dict[str, Any], name: str, source: Path) -> None:
    """Copy one case and describe it."""
    version = collection["version"]
    case = next(case for case in collection["cases"] if case["case"] == name)
    target = FIXTURES / f"kafka-{version}" / name
    target.mkdir(parents=True)
    shutil.copyfile(source / version / case["archive"], target / ARCHIVE)
    shutil.copyfile(source / version / case["expected"], target / EXPECTED)
    (target / "case.toml").write_text(case_text(selection, collection, case, target), encoding="utf-8")


def build_selection(source: Path) -> None:
    """Replace the `kafka-*` directories of the selection by its cases; others are made by programs."""
    selection = tomllib.loads((FIXTURES / "selection.toml").read_text(encoding="utf-8"))
    for version, names in selection["cases"].items():
        shutil.rmtree(FIXTURES / f"kafka-{version}", ignore_errors=True)
        collection = json.loads((source / version / "manifest.json").read_text(encoding="utf-8"))
        for name in names:
            build_case(selection, collection, name, source)


def fixture_files() -> Iterable[Path]:
    """Return all files that the manifest covers; caches of Python are none of them."""
    found = (path for path in FIXTURES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in found if path != FIXTURES / MANIFEST)


def manifest() -> dict[str, Any]:
    """Return size and SHA-256 of every file, with totals."""
    files = {
        path.relative_to(FIXTURES).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in fixture_files()
    }
    cases = sum(name.endswith("/case.toml") for name in files)
    total = sum(int(entry["bytes"]) for entry in files.values())
    return {"totals": {"cases": cases, "files": len(files), "bytes": total}, "files": files}


def write_manifest() -> None:
    """Write `fixtures/manifest.json`."""
    text = json.dumps(manifest(), indent=1) + "\n"
    (FIXTURES / MANIFEST).write_text(text, encoding="utf-8")


def differences() -> Iterator[str]:
    """Yield the differences of `fixtures/` from its manifest, one line each."""
    stored = json.loads((FIXTURES / MANIFEST).read_text(encoding="utf-8"))
    actual = manifest()
    for name in sorted(stored["files"].keys() | actual["files"].keys()):
        if stored["files"].get(name) != actual["files"].get(name):
            yield f"{name}: manifest says {stored['files'].get(name)}, found {actual['files'].get(name)}"
    if stored["totals"] != actual["totals"]:
        yield f"totals: manifest says {stored['totals']}, found {actual['totals']}"
    for name, entry in actual["files"].items():
        if entry["bytes"] >= MAX_FILE_SIZE:
            yield f"{name}: {entry['bytes']} bytes, at most {MAX_FILE_SIZE} are allowed"
    if actual["totals"]["bytes"] > MAX_TOTAL_SIZE:
        yield f"{actual['totals']['bytes']} bytes in all, at most {MAX_TOTAL_SIZE} are allowed"


def main(arguments: list[str]) -> int:
    """Run one command; exit status 1 when ``check`` finds something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="copy the selection and write the manifest")
    build.add_argument("--from", dest="source", type=Path, required=True, metavar="DIR", help="the full collection")
    commands.add_parser("handbook", help="build the articles' examples and write the manifest")
    commands.add_parser("manifest", help="write the manifest of the present files")
    commands.add_parser("check", help="compare the manifest with the files")
    options = parser.parse_args(arguments)
    if options.command == "check":
        found = list(differences())
        print(*found or ["fixtures/ agrees with its manifest"], sep="\n")
        return int(bool(found))
    if options.command == "build":
        build_selection(options.source)
        message_fixtures.build(options.source, FIXTURES)
    if options.command in {"build", "handbook"}:
        handbook_fixtures.build(FIXTURES)
    write_manifest()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
