"""``make release-check``: the files of a release, built and tried without access to this repository.

Builds a wheel, an sdist and the archive of test vectors into ``dist/``, installs the wheel into an empty environment in
a temporary directory, and uses it from there: rules, test data, verification, the suite, the columnar engine, and the
tour of ``make demo`` out of the unpacked sdist.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

from seglog_conformance.toolchains import child_processes

from proofs.unpacking import unpack_archive

REPOSITORY: Final = Path(__file__).resolve().parent.parent
DIST: Final = REPOSITORY / "dist"
LARGEST: Final = 10 * 2**20
"""Maximum bytes of a wheel; package indexes accept more, but users have to download it."""

COMMANDS: Final = (
    "seglog --version",
    "seglog explain SEG-IDX-004",
    "seglog schema RecordBatchHeader",
    "seglog generate --seed 1 -o made",
    "seglog verify made",
    "seglog conform run --testee reference --family 16 --family 28",
    "seglog fixtures export -o vectors.zip --family crc",
)
COUNT_ROWS: Final = """
from seglog_format import open_log_directory
from seglog_conformance.toolchains import child_processes
print(sum(batch.num_rows for batch in open_log_directory("made").scan()), "rows as Arrow")
"""
PLUGIN_TEST: Final = """
from hypothesis import given
from seglog_format import decode_batch
from seglog_format.strategies import segments

def test_fixtures(seglog_partition, seglog_generate):
    assert list(seglog_partition("4.4/txn").glob("*.snapshot")) and list(seglog_generate(seed=1).iterdir())

@given(segments())
def test_strategies(segment):
    assert decode_batch(segment.data) == segment.batches[0]
"""


def build() -> tuple[Path, Path, Path]:
    """Return the wheel, the wheel of the test data, and the sdist."""
    shutil.rmtree(DIST, ignore_errors=True)
    say("building wheel and sdist")
    run([sys.executable, "-m", "build", "--sdist", "--wheel", "--outdir", str(DIST)], REPOSITORY, quiet=True)
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run([sys.executable, "-m", "build", "--wheel", "--outdir", str(DIST), "fixtures"], REPOSITORY, quiet=True)
    (testdata,) = DIST.glob("seglog_testdata-*.whl")
    version = wheel.name.split("-")[1]
    vectors = DIST / f"seglog-fixtures-{version}.zip"
    seglog = Path(sys.executable).with_name("seglog")
    run([str(seglog), "fixtures", "export", "-o", str(vectors)], REPOSITORY, quiet=True)
    for path in sorted(DIST.iterdir()):
        data = path.read_bytes()
        say(f"{path.name}: {len(data) / 2**20:.1f} MiB, sha256 {hashlib.sha256(data).hexdigest()[:16]}...")
    for each in (wheel, testdata):
        if each.stat().st_size > LARGEST:
            sys.exit(f"{each.name} is larger than {LARGEST} bytes")
    return wheel, testdata, source


def environment(directory: Path) -> Path:
    """Return the directory of programs of a new and empty environment."""
    venv.create(directory, with_pip=True)
    return directory / "bin"


def try_wheel(wheel: Path, testdata: Path, programs: Path, working_directory: Path) -> None:
    """Use the content of the wheels, from a directory outside of the repository."""
    say("installing the wheel into an empty environment")
    install(programs, str(wheel), working_directory)
    run([str(programs / "python"), "-c", "import numba"], working_directory, fails=True)
    for command in COMMANDS:
        first, *rest = command.split()
        run([str(programs / first), *rest], working_directory)
    say("using the test data in tests of another project")
    install(programs, str(testdata), working_directory)
    run(
        [str(programs / "python"), "-c", "import seglog_testdata as data; data.case('4.4/txn').partition()"],
        working_directory,
    )
    install(programs, f"{wheel}[conform]", working_directory)
    install(programs, "pytest", working_directory)
    (working_directory / "test_plugin.py").write_text(PLUGIN_TEST, encoding="utf-8")
    run([str(programs / "python"), "-m", "pytest", "-q", "test_plugin.py"], working_directory)
    say("installing what the columnar engine needs")
    install(programs, f"{wheel}[fast]", working_directory)
    run([str(programs / "python"), "-c", COUNT_ROWS], working_directory)


def take_tour(source: Path, programs: Path, working_directory: Path) -> None:
    """Run the tour of ``make demo``, with the tools of the sdist and the package of the wheel."""
    unpack_archive(source, working_directory)
    (unpacked,) = (path for path in working_directory.iterdir() if path.name == source.name.removesuffix(".tar.gz"))
    run([str(programs / "python"), "-P", "tools/demo.py"], unpacked, quiet=True, path=unpacked / "tools")


def install(programs: Path, what: str, working_directory: Path) -> None:
    """Install a package."""
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", what]
    run(pip, working_directory, quiet=True)


def run(
    command: list[str], working_directory: Path, *, quiet: bool = False, fails: bool = False, path: Path | None = None
) -> None:
    """Run a command, and end with an error if its exit status is not the expected one.

    Args:
        command: its words.
        working_directory: its working directory.
        quiet: whether to show its output only if it fails.
        fails: whether it must fail.
        path: the only entry of ``PYTHONPATH``.
    """
    if not quiet:
        reported = " ".join(word for word in [Path(command[0]).name, *command[1:]] if "\n" not in word)
        say(f"$ {reported}")
    variables: dict[str, str | None] = {name: None for name in os.environ if name.startswith("PYTHON")}
    if path is not None:
        variables["PYTHONPATH"] = str(path)
    done = child_processes.run(
        command,
        check=False,
        directory=working_directory,
        changes=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if bool(done.returncode) != fails:
        sys.exit(f"{done.stdout}\nthis ended with status {done.returncode}: {' '.join(command)}")
    if not quiet and not fails:
        print("\n".join(done.stdout.splitlines()[-3:]), flush=True)


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, flush=True)


def main() -> int:
    """Check the reports, build everything, and use it as a user who has nothing else."""
    say("the reports: commit, age, command and digests")
    run([sys.executable, "-m", "tools.reports", "--current"], REPOSITORY)
    say("the pages in Chinese")
    run([sys.executable, "-m", "tools.docs.translations"], REPOSITORY)
    wheel, testdata, source = build()
    with tempfile.TemporaryDirectory(prefix="seglog-release-") as name:
        working_directory = Path(name)
        programs = environment(working_directory / "environment")
        try_wheel(wheel, testdata, programs, working_directory)
        say("the tour of `make demo`, with the wheel")
        take_tour(source, programs, working_directory)
    print("The release can be used: dist/ holds what to publish.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
