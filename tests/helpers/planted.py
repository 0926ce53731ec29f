"""A directory of which somebody else wrote the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MODULES: Final = (
    "grpc_tools", "numpy", "json", "encodings", "sitecustomize", "usercustomize", "multiprocessing", "venv", "pyspark",
    "seglog_format", "seglog_conformance", "numba", "pyarrow", "google", "struct", "socket", "site",
)  # fmt: skip
PROGRAMS: Final = (
    "protoc",
    "java",
    "javac",
    "mvn",
    "go",
    "cargo",
    "rustc",
    "node",
    "npm",
    "python",
    "python3",
    "sh",
    "cp",
)


class Planted:
    """A directory with modules, programs and settings, each of which leaves a mark when it is used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.marks = directory.parent / "marks"
        self.marks.mkdir()
        for name in MODULES:
            for package in (directory / name, directory / "site" / name):
                package.mkdir(parents=True, exist_ok=True)
                for module in ("__init__", "__main__", "protoc", "spawn", "daemon", "wire", "forkserver"):
                    (package / f"{module}.py").write_text(self._python(f"{name}.{module}"), encoding="utf-8")
        for name in PROGRAMS:
            for program in (directory / name, directory / "bin" / name):
                program.parent.mkdir(exist_ok=True)
                program.write_text(f"#!/bin/sh\n: > '{self.marks}/{name}'\n", encoding="utf-8")
                program.chmod(0o755)
        (directory / "rust-toolchain.toml").write_text(f'[toolchain]\npath = "{directory}"\n', encoding="utf-8")
        (directory / ".mvn").mkdir()
        (directory / ".mvn" / "jvm.config").write_text("-XX:OnError=planted -Dplanted\n-invalid", encoding="utf-8")

    def _python(self, name: str) -> str:
        return f"open({str(self.marks / name)!r}, 'w').close()\n"

    @property
    def used(self) -> list[str]:
        """The names of what ran."""
        return sorted(path.name for path in self.marks.iterdir())
