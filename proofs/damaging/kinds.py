"""Random damages to directories, as disks, people, backups and killed programs cause them.

This module was written independently of the generators in the tests, so it does not share their omissions. Every damage
changes something at or below one directory, in its present state, and describes the change in one line.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    Damage = Callable[["Path", "Path", random.Random], str]

SUFFIXES: Final = (".swap", ".cleaned", ".deleted", ".tmp", ".part", ".bak", "~")
STATES: Final = ("delete", "stray", "future")
UNIQUE: Final = "0123456789abcdef0123456789abcdef"
SIZES: Final = (2**31 - 1, 2**31, 2**31 + 1, 3 * 2**30, 10 * 2**30)
ENDINGS: Final = (".log", ".log", ".log", ".index", ".timeindex", ".txnindex", ".snapshot", "")
LARGEST: Final = 2**26
HUGE: Final = (2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30)


def files_below(root: Path, ending: str = "") -> list[Path]:
    """Return the regular files with this suffix, except those that an earlier damage has made huge."""
    found = (path for path in root.rglob(f"*{ending}") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if path.stat().st_size < LARGEST)


def partitions_of(root: Path) -> list[Path]:
    """Return the directories directly below the root."""
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())


def pick(root: Path, dice: random.Random) -> Path:
    """Return a file, more often a log than another one."""
    return dice.choice(files_below(root, dice.choice(ENDINGS)) or files_below(root) or [_some_file(root)])


def _some_file(root: Path) -> Path:
    path = root / "nothing-left"
    path.write_bytes(b"")
    return path


def _range(size: int, dice: random.Random) -> tuple[int, int]:
    start = dice.randrange(size + 1)
    return start, min(size, start + dice.choice((1, 7, 61, 512, 4096, size)))


# Bytes


def _flip_bits(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    data = bytearray(path.read_bytes())
    positions = [dice.randrange(len(data)) for _ in range(dice.choice((1, 1, 2, 20)))] if data else []
    for position in positions:
        data[position] ^= 1 << dice.randrange(8)
    path.write_bytes(data)
    return f"flip bits of {path.name} at {positions}"


def _zero_range(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    data = bytearray(path.read_bytes())
    start, end = _range(len(data), dice)
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    return f"zero {path.name} from {start} to {end}"


def _cut_out(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    data = path.read_bytes()
    start, end = _range(len(data), dice)
    path.write_bytes(data[:start] + data[end:])
    return f"cut {start} to {end} out of {path.name}"


def _repeat_range(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    data = path.read_bytes()
    start, end = _range(len(data), dice)
    path.write_bytes(data[:end] + data[start:end] + data[end:])
    return f"repeat {start} to {end} of {path.name}"


def _overwrite_range(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    data = bytearray(path.read_bytes())
    start, end = _range(len(data), dice)
    data[start:end] = dice.randbytes(end - start)
    path.write_bytes(data)
    return f"overwrite {path.name} from {start} to {end}"


# Sizes


def _truncate(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    size = dice.choice((0, dice.randrange(path.stat().st_size + 1)))
    os.truncate(path, size)
    return f"truncate {path.name} to {size}"


def _extend(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    count = dice.choice((1, 11, 12, 61, 4096, 70_000))
    tail = dice.choice((bytes(count), dice.randbytes(count), path.read_bytes()[:count]))
    with path.open("ab") as file:
        file.write(tail)
    return f"extend {path.name} by {len(tail)} bytes that begin {tail[:4].hex()}"


def _make_sparse(root: Path, _outside: Path, dice: random.Random) -> str:
    path, size = pick(root, dice), dice.choice(SIZES)
    os.truncate(path, size)
    return f"make {path.name} sparse, {size} bytes"


# Names


def _remove_file(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    path.unlink()
    return f"remove {path.name}"


def _remove_segment(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    gone = [each for each in path.parent.glob(f"{path.name.partition('.')[0]}.*") if not each.is_dir()]
    for each in gone:
        each.unlink()
    return f"remove {', '.join(sorted(each.name for each in gone))}"


def _rename_file(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    stem, dot, ending = path.name.partition(".")
    number = int(stem) if stem.isdecimal() else 0
    shifted = dice.choice((number + 1, max(number - 1, 0), number + 1000, dice.choice(HUGE)))
    names = (f"{shifted:020}{dot}{ending}", f"{number}{dot}{ending}", f"-{number:019}{dot}{ending}", f"x{path.name}")
    target = path.with_name(dice.choice(names))
    if not target.exists():
        path.rename(target)
    return f"rename {path.name} to {target.name}"


def _leave_over(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    target = path.with_name(path.name + dice.choice(SUFFIXES))
    how = dice.choice(("rename", "copy", "cut copy", "empty"))
    if how == "rename":
        path.rename(target)
    else:
        data = path.read_bytes()
        size = {"copy": len(data), "empty": 0}.get(how, dice.randrange(len(data) + 1))
        target.write_bytes(data[:size])
    return f"{how} {path.name} to {target.name}"


def _leave_directory_over(root: Path, _outside: Path, dice: random.Random) -> str:
    path = dice.choice(partitions_of(root) or [root])
    target = root / f"{path.name}.{UNIQUE}-{dice.choice(STATES)}"
    is_copy = dice.random() < 0.5 or path == root  # noqa: PLR2004 - as often as not
    if is_copy:
        shutil.copytree(path, target, symlinks=True, ignore=shutil.ignore_patterns(f"*.{UNIQUE}-*"))
    else:
        path.rename(target)
    return f"{'copy' if is_copy else 'rename'} {path.name} to {target.name}"


def _copy_segment(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    directory = dice.choice(partitions_of(root) or [root])
    stem, dot, ending = path.name.partition(".")
    number = int(stem) if stem.isdecimal() else 0
    target = directory / f"{number + dice.choice((0, 1, 50, 10**6)):020}{dot}{ending}"
    if target != path:
        shutil.copyfile(path, target, follow_symlinks=False) if not target.is_symlink() else None
    return f"copy {path.parent.name}/{path.name} to {target.parent.name}/{target.name}"


def _make_directory_of(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    path.unlink()
    path.mkdir()
    return f"a directory instead of {path.name}"


def _add_foreign(root: Path, _outside: Path, dice: random.Random) -> str:
    directory = dice.choice([root, *partitions_of(root)])
    name = dice.choice(("lost+found", "notes.txt", "orders", "x-1", ".hidden", "..-0", "\udcff-0", "a\nb.log"))
    path = directory / name
    if not path.exists():
        path.write_bytes(dice.randbytes(20)) if dice.random() < 0.5 else path.mkdir()  # noqa: PLR2004 - as above
    return f"add {name!r} to {directory.name}"


# Links and special files


def _make_link(root: Path, outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    kept = outside / f"{len(list(outside.iterdir()))}-{path.name}"
    shutil.copyfile(path, kept)
    inside = path.with_name("kept")
    targets = (kept, path, path.with_name("nowhere"), path.parent, outside, "/dev/zero", "/dev/null", inside)
    target = dice.choice(targets)
    if target == inside:
        shutil.copyfile(path, inside)
    path.unlink()
    path.symlink_to(target)
    return f"make {path.name} a link to {target}"


def _link_directory(root: Path, outside: Path, dice: random.Random) -> str:
    path = dice.choice(partitions_of(root) or [root / "none-0"])
    target = dice.choice((outside / path.name, path, root))
    if path.is_dir():
        shutil.move(path, outside / path.name)
    path.symlink_to(target)
    return f"make {path.name} a link to {target}"


def _make_pipe(root: Path, _outside: Path, dice: random.Random) -> str:
    path = pick(root, dice)
    path.unlink()
    os.mkfifo(path)
    return f"make {path.name} a pipe"


# Permissions


def _forbid(root: Path, _outside: Path, dice: random.Random) -> str:
    path = dice.choice((pick(root, dice), dice.choice(partitions_of(root) or [root])))
    mode = dice.choice((0o000, 0o000, 0o200, 0o400, 0o500))
    path.chmod(mode)
    return f"mode {mode:03o} for {path.name}"


# Checkpoints


def _spoil_checkpoint(root: Path, _outside: Path, dice: random.Random) -> str:
    names = ("checkpoint", "meta.properties", ".kafka_cleanshutdown", "partition.metadata")
    paths = [path for path in files_below(root) if path.name.endswith(names)]
    path = dice.choice(paths or [_some_file(root)])
    text = path.read_text(encoding="latin-1")
    words = text.split(" ")
    changes = (
        "",
        text[: dice.randrange(len(text) + 1)],
        dice.randbytes(30).decode("latin-1"),
        "\0" * 100,
        " ".join([*words[:-1], f"{dice.choice(('-1', '-5', *map(str, HUGE)))}\n"]),
        text.replace("0\n", f"{dice.choice(HUGE)}\n", 1),
        text + "orders 0 17\n",
        text + "x 1 2\n" * 10_000,
    )
    path.write_text(dice.choice(changes), encoding="latin-1")
    return f"spoil {path.name}: {path.stat().st_size} bytes"


DAMAGES: Final[tuple[Damage, ...]] = (
    _flip_bits,
    _zero_range,
    _cut_out,
    _repeat_range,
    _overwrite_range,
    _truncate,
    _extend,
    _make_sparse,
    _remove_file,
    _remove_segment,
    _rename_file,
    _leave_over,
    _leave_directory_over,
    _copy_segment,
    _make_directory_of,
    _add_foreign,
    _make_link,
    _link_directory,
    _make_pipe,
    _forbid,
    _spoil_checkpoint,
)


def damage(root: Path, outside: Path, dice: random.Random) -> list[tuple[str, str]]:
    """Damage a directory one to three times.

    Returns:
        For each damage, its name and its description, which says if it was no longer possible.
    """
    done = []
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        change = dice.choice(DAMAGES)
        try:
            done.append((change.__name__.strip("_"), change(root, outside, dice)))
        except OSError as error:
            done.append((change.__name__.strip("_"), f"not possible: {error.strerror}"))
    return done
