"""Hook of hatchling: put the libraries of kernels that `seglog warm` made into the wheel.

A wheel without them, as one that pip makes of an sdist, is of Python alone. Where it is installed, `seglog warm` makes
the library; until then the plain engine reads.
"""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from types import ModuleType

HOME = "seglog_format/columnar"


class WheelKernels(BuildHookInterface):  # type: ignore[type-arg,misc] # hatchling is installed where wheels are built
    """Adds libraries of these sources, and the platform that they are for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to what is built, unless it is an editable installation, which has the directory itself."""
        known = kernel_library(Path(self.root, HOME))
        for library in sorted(known.DIRECTORY.glob(f"*/{known.LINKED}")) if version != "editable" else ():
            manifest = json.loads((library.parent / known.MANIFEST).read_text(encoding="utf-8"))
            if any(known.digest(module) != kept for module, kept in manifest["sources"].items()):
                self.app.display_warning(f"{library.parent} is left out: it is of other sources (seglog warm)")
                continue
            for name in (known.LINKED, known.MANIFEST):
                target = f"{HOME}/kernels/{library.parent.name}/{name}"
                build_data["force_include"][str(library.with_name(name))] = target
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{manifest['machine'].replace(' ', '_')}"


def kernel_library(directory: Path) -> ModuleType:
    """Load the module that knows libraries, without the package, whose dependencies a build does not have."""
    spec = spec_from_file_location("kernel_library", directory / "kernel_library.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
