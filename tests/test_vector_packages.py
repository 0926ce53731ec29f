"""The cases as packages: each is built, installed from the file that was built, and used in a program of ten lines."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from helpers.support import need
from seglog_conformance.cases import load_cases

from tools.vector_packages import FILE, FOLDERS, write_packages

if TYPE_CHECKING:
    from pathlib import Path

CASES = [case for case in load_cases() if not case.is_made][:40]
EXPECTED = f"{len(CASES)} {CASES[0].id} {CASES[-1].id}"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("packages")
    write_packages(directory, CASES, "1.2.3", "example.org/owner")
    return directory


def run(directory: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_holds_the_same_cases_and_a_version(packages: Path) -> None:
    texts = {(packages / name / folder / FILE).read_text() for name, folder in FOLDERS.items()}
    (text,) = texts
    first = json.loads(text.splitlines()[0])
    assert (first["id"], first["request"], first["expect"]) == (CASES[0].id, CASES[0].request, CASES[0].expect)
    assert not [path for path in packages.rglob("*") if path.is_file() and "@" in path.read_text()]
    assert "<groupId>org.example</groupId>" in (packages / "java" / "pom.xml").read_text()


def test_python(packages: Path, tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip")
    run(tmp_path, *pip, "wheel", "-q", "--no-deps", "-w", ".", str(packages / "python"))
    (wheel,) = tmp_path.glob("*.whl")
    run(tmp_path, *pip, "install", "-q", "--no-deps", "--target", "installed", str(wheel))
    program = "import seglog_vectors as v; c = list(v.cases()); print(len(c), c[0]['id'], c[-1]['id'])"
    assert run(tmp_path / "installed", sys.executable, "-c", program) == EXPECTED


def test_npm(packages: Path, tmp_path: Path) -> None:
    need("the package", ["node", "npm"])
    run(packages / "npm", "npm", "pack", "--silent", "--pack-destination", str(tmp_path))
    (archive,) = tmp_path.glob("*.tgz")
    run(tmp_path, "npm", "install", "--silent", "--offline", "--no-audit", str(archive))
    (tmp_path / "test.mjs").write_text(
        "import { cases } from 'seglog-vectors'\n"
        "const all = cases()\n"
        "console.log(all.length, all[0].id, all.at(-1).id)\n"
    )
    assert run(tmp_path, "node", "test.mjs") == EXPECTED


def test_go(packages: Path, tmp_path: Path) -> None:
    need("the package", ["go"])
    (tmp_path / "go.mod").write_text(
        "module test\n\ngo 1.21\n\nrequire example.org/owner/seglog-vectors v1.2.3\n\n"
        f"replace example.org/owner/seglog-vectors => {packages / 'go'}\n"
    )
    (tmp_path / "main.go").write_text(
        'package main\n\nimport (\n\t"fmt"\n\n\tvectors "example.org/owner/seglog-vectors"\n)\n\nfunc main() {\n'
        "\tcases, err := vectors.Cases()\n\tif err != nil {\n\t\tpanic(err)\n\t}\n"
        "\tfmt.Println(len(cases), cases[0].ID, cases[len(cases)-1].ID)\n}\n"
    )
    assert run(tmp_path, "go", "run", ".") == EXPECTED


def test_rust(packages: Path, tmp_path: Path) -> None:
    need("the package", ["cargo"])
    run(
        packages / "rust",
        "cargo",
        "package",
        "-q",
        "--offline",
        "--no-verify",
        "--allow-dirty",
        "--target-dir",
        "target",
    )
    (crate,) = packages.glob("rust/target/package/*.crate")
    run(tmp_path, "tar", "xzf", str(crate))
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "test"\nversion = "0.0.0"\nedition = "2021"\n\n'
        '[dependencies]\nseglog-vectors = { path = "seglog-vectors-1.2.3" }\n'
    )
    (tmp_path / "src" / "main.rs").write_text(
        "fn id(line: &str) -> &str {\n    line.split('\"').nth(3).unwrap()\n}\n\nfn main() {\n"
        "    let cases: Vec<&str> = seglog_vectors::cases().collect();\n"
        '    println!("{} {} {}", cases.len(), id(cases[0]), id(cases[cases.len() - 1]));\n}\n'
    )
    assert run(tmp_path, "cargo", "run", "-q", "--offline") == EXPECTED


def test_java(packages: Path, tmp_path: Path) -> None:
    need("the package", ["java", "mvn"])
    run(packages / "java", "mvn", "-q", "-B", "package")
    (jar,) = packages.glob("java/target/*.jar")
    (tmp_path / "Test.java").write_text(
        "import java.util.List;\nimport java.util.stream.Collectors;\nimport seglog.vectors.Vectors;\n\n"
        "class Test {\n    public static void main(String[] arguments) {\n"
        "        List<String> all = Vectors.cases().collect(Collectors.toList());\n"
        '        System.out.println(all.size() + " " + id(all.get(0)) + " " + id(all.get(all.size() - 1)));\n    }\n\n'
        '    static String id(String line) {\n        return line.split("\\"")[3];\n    }\n}\n'
    )
    assert run(tmp_path, "java", "-cp", str(jar), "Test.java") == EXPECTED
