"""All cases as an archive of plain files, for users who want the bytes without the runner and without Python."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from seglog_conformance.cases import MissingFixtureError
from seglog_conformance.environment import suite_digest, suite_version
from seglog_format.storage.new_directory import write_report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json

EPOCH: Final = (1980, 1, 1, 0, 0, 0)
ROOT: Final = "seglog-vectors"
README: Final = """\
Vectors of the segmented log format, {count} cases.

  index.jsonl          one line for each case: its directory, id, family, operation, level, result, requirements
  schemas/             JSON Schemas of answers and cases
  NN-FAMILY/CASE/
    case.json          id, op, requirements, level, result, needs, flags, why, since, source, and the request without
                       its bytes
    input.bin          the bytes of the request, if it has "data"
    files/             the files of the request, if it has "files"
    expected.json      the answer; what "result" means:
                         valid       exactly this answer
                         invalid     it has to be refused; "batches" may have been delivered before
                         acceptable  one of "allowed"
                         undefined   anything but a crash, a hang, or memory without bounds
    expected/          the files of the answer, if it has "files"

Integers of 64 bits are decimal strings, bytes lower-case hex; null is null, empty is "".
An id is never used again for other bytes. Cases are of suite {version}, SHA-256 {digest}.
"""


def export(cases: Sequence[Case], path: Path) -> int:
    """Write the archive; the same cases give the same bytes.

    Args:
        cases: cases to write; those with missing fixtures are left out.
        path: path of the archive.

    Returns:
        The number of cases in the archive.
    """
    entries: dict[str, bytes] = {}
    lines = []
    for case in cases:
        try:
            files = dict(_files(case))
        except MissingFixtureError:
            continue
        entries |= files
        lines.append(_index_line(case, files))
    entries["index.jsonl"] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for schema in ("protocol", "case-file"):
        resource = resources.files(__package__).joinpath("schemas", f"{schema}.json")
        entries[f"schemas/{schema}.json"] = resource.read_bytes()
    text = README.format(count=len(lines), version=suite_version(), digest=suite_digest(cases))
    entries["README.txt"] = text.encode()
    _write(path, entries)
    return len(lines)


def index(cases: Sequence[Case]) -> Iterator[Json]:
    """Yield the lines of the archive's index, one for each case with its fixtures."""
    for case in cases:
        try:
            yield _index_line(case, dict(_files(case)))
        except MissingFixtureError:
            continue


def directory(case: Case) -> str:
    """Return the directory of a case in the archive."""
    return f"{case.family:02}-{case.family_name}/{case.id.partition('/')[2]}"


def _files(case: Case) -> Iterator[tuple[str, bytes]]:
    base = directory(case)
    request, expect = dict(case.request), dict(case.expect)
    if "data" in request:
        yield f"{base}/input.bin", bytes.fromhex(request.pop("data"))
    for name, data in request.pop("files", {}).items():
        yield f"{base}/files/{name}", bytes.fromhex(data)
    for name, data in (expect.get("files") or {}).items():
        if isinstance(data, str):
            yield f"{base}/expected/{name}", bytes.fromhex(data)
    yield f"{base}/case.json", _json({**_about(case), "request": request})
    yield f"{base}/expected.json", _json(expect)


def _about(case: Case) -> Json:
    return {
        "id": case.id,
        "family": case.family,
        "op": case.op,
        "requirements": list(case.requirements),
        "level": case.level,
        "result": case.result,
        "needs": list(case.needs),
        "flags": {name: case.families_flags.get(name, {}) for name in case.flags},
        "why": case.why,
        "since": case.since,
        "source": case.source,
    }


def _index_line(case: Case, files: dict[str, bytes]) -> Json:
    sums = {
        name.rpartition("/")[2]: hashlib.sha256(data).hexdigest() for name, data in files.items() if "/input" in name
    }
    names = ("id", "family", "op", "level", "result", "requirements", "needs")
    about = _about(case)
    return {"directory": directory(case), **{name: about[name] for name in names}, "sha256": sums}


def _json(value: Json) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _write(path: Path, entries: dict[str, bytes]) -> None:
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            info = ZipInfo(f"{ROOT}/{name}", EPOCH)
            info.compress_type = ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, entries[name])
    write_report(path, content.getvalue())
