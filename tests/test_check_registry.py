"""Each check is registered for one class of subjects, by that class's name."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pkgutil import walk_packages

import pytest

import seglog_format.checks
import seglog_format.tier
from seglog_format.checks.finding import CHECKS, findings_of


def classes_by_name() -> Counter[str]:
    """Count the classes of each name in the packages whose classes are subjects."""
    packages = (seglog_format.checks, seglog_format.tier)
    names = [found.name for each in packages for found in walk_packages(each.__path__, f"{each.__name__}.")]
    modules = [import_module(name) for name in names]
    return Counter(
        name
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    )


def test_each_check_is_registered_for_the_only_class_of_its_name() -> None:
    found = classes_by_name()
    assert CHECKS
    assert {name: found[name] for name in CHECKS} == dict.fromkeys(CHECKS, 1)


@pytest.mark.parametrize("module", ["seglog_format.checks", "seglog_format.tier.audit"])
def test_a_module_registers_all_checks_that_it_runs(module: str) -> None:
    program = f"""
import {module}
import sys
from pathlib import Path
from seglog_format.checks.finding import CHECKS
for name, loaded in sorted(sys.modules.items()):
    if name.startswith(("seglog_format.checks.", "seglog_format.tier.")):
        source = Path(loaded.__file__).read_text()
        run = [subject for subject in {sorted(CHECKS)} if f"findings_of({{subject}}(" in source]
        print(*(subject for subject in run if subject not in CHECKS))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_a_subject_without_checks_is_refused() -> None:
    class Unknown:
        pass

    with pytest.raises(LookupError, match="no check is registered for Unknown"):
        next(findings_of(Unknown()))
