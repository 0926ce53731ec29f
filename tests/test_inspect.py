"""Each field in a row: every byte of every vector belongs to one, pasted bytes are found, the page stands alone."""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers.batches import batch, record
from helpers.support import bundled, vector, vectors
from helpers.walking import each_of
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog_format import walk
from seglog_format.cli.inspect import HEADINGS, NARROW, bytes_text, command, field_rows, json_fields, page, widths_for
from seglog_format.errors import CorruptRecordError, UsageError
from seglog_format.inspection import Block, Field, Selection, inspect_file, inspect_pasted, pasted_bytes

if TYPE_CHECKING:
    from pathlib import Path

LOG = "00000000000000000000.log"
EVERYTHING = Selection(whole=True)
ENTRIES = sorted(name for name, data in vectors().items() if 14 <= int.from_bytes(data[8:12]) <= len(data) - 12)


def leaves(block: Block) -> list[Field]:
    return [field for field in block.fields if not field.is_group]


def field_named(block: Block, name: str) -> Field:
    return next(field for field in block.fields if field.name == name)


@each_of("name", ENTRIES)
def test_every_byte_belongs_to_exactly_one_field(name: str) -> None:
    for block in inspect_pasted(vector(name), EVERYTHING).blocks:
        covered = [position for field in leaves(block) for position in range(field.start, field.end)]
        assert covered == list(range(len(block.data))), block.title


@each_of("name", ENTRIES)
def test_groups_hold_their_fields(name: str) -> None:
    for block in inspect_pasted(vector(name), EVERYTHING).blocks:
        open_groups: list[Field] = []
        for field in block.fields:
            open_groups = open_groups[: field.depth]
            assert all(group.start <= field.start and field.end <= group.end for group in open_groups)
            open_groups.append(field)


def test_fields_of_a_batch_with_values_notes_and_requirements() -> None:
    (block,) = inspect_pasted(vector("V-06"), EVERYTHING).blocks
    crc = field_named(block, "crc")
    assert (crc.start, crc.end, crc.value, crc.note) == (17, 21, 0x2A41A989, "right")
    assert crc.requirements[0] == "SEG-BAT-003"
    assert field_named(block, "attributes").note == "no compression"
    assert field_named(block, "max_timestamp_ms").note == "1970-01-01T00:00:01.005Z"
    assert [field.note for field in block.fields if field.name == "offset_delta"] == [
        "offset 10",
        "offset 11",
        "offset 12",
    ]
    assert [field.value for field in block.fields if field.name == "value"] == [b"a", None, b"vv"]


@pytest.mark.parametrize(("name", "codec"), [("V-09", "gzip"), ("V-10", "snappy"), ("V-11", "lz4"), ("V-12", "zstd")])
def test_compressed_records_are_a_block_of_their_own(name: str, codec: str) -> None:
    stored, records = inspect_pasted(vector(name), EVERYTHING).blocks
    assert field_named(stored, "attributes").note == codec
    assert field_named(stored, "records").value == vector(name)[61:]
    assert records.is_derived
    assert bytes(records.data).hex() == "0e000000010261000e000a02026b010012000604026b04767600"


def test_messages_of_a_wrapper_are_a_block_of_their_own() -> None:
    stored, messages = inspect_pasted(vector("V-04"), EVERYTHING).blocks
    assert field_named(stored, "value").doc
    assert [field.value for field in messages.fields if field.name == "offset"] == [0, 1, 2]


def test_control_records_are_named() -> None:
    (block,) = inspect_pasted(vector("V-13"), EVERYTHING).blocks
    assert field_named(block, "key").note == "COMMIT"
    assert "coordinatorEpoch 7" in field_named(block, "value").note
    assert field_named(block, "attributes").note == "no compression, transactional, control"


def test_wrong_checksum_is_marked() -> None:
    data = bytearray(vector("V-06"))
    data[-1] ^= 1
    inspection = inspect_pasted(bytes(data), EVERYTHING)
    crc = field_named(inspection.blocks[0], "crc")
    assert crc.failed
    assert crc.note.startswith("WRONG")
    assert "[SEG-BAT-003]" in inspection.problems[0]


def test_record_that_cannot_be_read_is_marked_where_reading_stopped() -> None:
    data = bytearray(vector("V-06"))
    data[61 + 4] = 0x7E  # key length of the first record
    block, *_ = inspect_pasted(bytes(data), EVERYTHING).blocks
    assert any(field.failed and field.start >= 61 for field in block.fields)


def test_bytes_after_the_last_record_are_left_over() -> None:
    data = bytearray(vector("V-06"))
    data[57:61] = (2).to_bytes(4)
    (block,) = inspect_pasted(bytes(data), EVERYTHING).blocks
    assert (field_named(block, "left over").start, field_named(block, "left over").end) == (77, 87)


@each_of("size", range(18, 87))
def test_batch_cut_anywhere(size: int, tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(vector("V-06")[:size])
    (block,) = inspect_file(path, EVERYTHING).blocks
    assert block.fields[0].name == "tail"
    assert all(field.end <= size for field in block.fields)


@pytest.mark.parametrize("tail", [bytes(40), b"\xff" * 40, b"abc"])
def test_whatever_follows_the_last_entry_is_shown(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(vector("V-06") + tail)
    (block,) = inspect_file(path, EVERYTHING).blocks
    last = [field for field in block.fields if field.depth == 0][-1]
    assert (last.start, last.end) == (87, 87 + len(tail))
    assert last.name == ("unreadable" if tail[0] == 0xFF else "tail")


def hexdump(data: bytes, *, canonical: bool) -> str:
    rows = []
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        if canonical:
            pairs = [" ".join(f"{byte:02x}" for byte in row[:8]), " ".join(f"{byte:02x}" for byte in row[8:])]
            rows.append(f"{start:08x}  {'  '.join(pairs):<48}  |{text}|")
        else:
            rows.append(f"{start:08x}: {row.hex(' ', 2):<39}  {text}")
    return "\n".join(rows) + (f"\n{len(data):08x}\n" if canonical else "\n")


PASTED = {
    "hex": lambda data: data.hex(),
    "hex in lines": lambda data: "\n".join(data.hex()[start : start + 30] for start in range(0, 2 * len(data), 30)),
    "hex with blanks": lambda data: data.hex(" ").upper(),
    "hex with commas": lambda data: ", ".join(f"0x{byte:02x}" for byte in data),
    "escapes": lambda data: "".join(f"\\x{byte:02x}" for byte in data),
    "hex with comments": lambda data: data[:20].hex() + " ; the header\n" + data[20:].hex() + "  # the rest",
    "xxd": lambda data: hexdump(data, canonical=False),
    "hexdump -C": lambda data: hexdump(data, canonical=True),
    "Base64": lambda data: base64.b64encode(data).decode(),
    "Base64 in lines": lambda data: base64.encodebytes(data).decode(),
    "Base64 for URLs": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
}


@pytest.mark.parametrize("form", PASTED)
@pytest.mark.parametrize("name", ["V-04", "V-06", "V-12"])
def test_pasted_forms(form: str, name: str) -> None:
    data, written_as = pasted_bytes(PASTED[form](vector(name)).encode())
    assert data == vector(name)
    assert written_as.split()[0] in ("hex", "Base64")


def test_raw_bytes_are_taken_as_they_are() -> None:
    assert pasted_bytes(vector("V-06")) == (vector("V-06"), "raw bytes")


def test_entries_inside_of_something_else_are_found() -> None:
    around = b"\x00\x00\x00\x07response\x00\x00\x00\x02\x00\x09"
    inspection = inspect_pasted(around + vector("V-06") + vector("V-20") + around + vector("V-02"), EVERYTHING)
    starts = [block.position for block in inspection.blocks]
    assert starts == [len(around), 2 * len(around) + 87 + 61]
    assert "raw bytes" in inspection.remark


def test_batch_with_a_wrong_checksum_is_found_where_there_is_no_other() -> None:
    data = bytearray(vector("V-06"))
    data[17] ^= 1
    (block,) = inspect_pasted(b"\xff\xff\xff" + bytes(data), EVERYTHING).blocks
    assert block.position == 3
    assert "SEG-BAT-003" in block.problems[0]


@pytest.mark.req("SEG-LOG-001")
@pytest.mark.parametrize("content", [b"", b"zz", b"nothing of the kind", bytes(100)])
def test_nothing_to_be_found(content: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="SEG-LOG-001"):
        inspect_pasted(content, EVERYTHING)


@pytest.fixture
def two_batches(tmp_path: Path) -> Path:
    path = tmp_path / LOG
    path.write_bytes(vector("V-06") + vector("V-20"))
    return path


@pytest.mark.parametrize(
    ("selection", "position", "size"),
    [
        (Selection(), 0, 87),
        (Selection(count=2), 0, 148),
        (Selection(position=87), 87, 61),
        (Selection(offset=12), 0, 87),
        (Selection(offset=13), 87, 61),
        (Selection(batch=1), 87, 61),
    ],
)
def test_part_of_a_log(two_batches: Path, selection: Selection, position: int, size: int) -> None:
    block, *_ = inspect_file(two_batches, selection).blocks
    assert (block.position, len(block.data)) == (position, size)


def test_remark_tells_what_is_not_shown(two_batches: Path) -> None:
    assert inspect_file(two_batches, Selection()).remark == "61 bytes follow"
    assert inspect_file(two_batches, EVERYTHING).remark == ""


@pytest.mark.parametrize("selection", [Selection(offset=200), Selection(batch=2), Selection(position=148)])
def test_part_that_is_not_there(two_batches: Path, selection: Selection) -> None:
    with pytest.raises(UsageError, match="no "):
        inspect_file(two_batches, selection)


def test_a_position_inside_a_batch_names_the_batch(two_batches: Path) -> None:
    size = two_batches.stat().st_size
    middle = size // 2
    frames = [(frame.position, frame.end) for frame in walk(two_batches.read_bytes())]
    assert [end for _, end in frames] == [frames[1][0], size]
    for start, end in frames:
        for position in (start + 1, end - 1):
            found = inspect_file(two_batches, Selection(position=position)).blocks[0].problems
            assert found[-1] == f"position {position} is inside the batch at {start}, which ends at {end}"
        assert inspect_file(two_batches, Selection(position=start)).blocks[0].problems == []
    two_batches.write_bytes(bytes(30) + two_batches.read_bytes()[:middle])
    assert "is inside" not in str(inspect_file(two_batches, Selection(position=40)).blocks[0].problems)


def test_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="directory"):
        inspect_file(tmp_path, EVERYTHING)
    (tmp_path / LOG).write_bytes(vector("V-06"))
    with pytest.raises(UsageError, match=f"such as {LOG}$"):
        inspect_file(tmp_path, Selection())


def test_slots_of_an_index(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000100.index"
    path.write_bytes(bytes.fromhex("00000005 00000100 00000009 00000200") + bytes(24) + b"\x01")
    (block,) = inspect_file(path, EVERYTHING).blocks
    assert [field.note for field in block.fields if field.name == "relative_offset"] == ["offset 105", "offset 109"]
    assert block.fields[-1].note == "3 slots of zeros"
    (block,) = inspect_file(path, Selection(batch=1, count=1)).blocks
    assert (block.position, len(block.data)) == (8, 8)
    (block,) = inspect_file(path, Selection(position=8, count=1)).blocks
    assert block.position == 8
    for selection in (Selection(offset=105), Selection(batch=5)):
        with pytest.raises(UsageError):
            inspect_file(path, selection)


def test_producer_snapshot_and_a_damaged_one(tmp_path: Path) -> None:
    path = next(bundled("4.3.0/txn").rglob("*270.snapshot"))
    (block,) = inspect_file(path, EVERYTHING).blocks
    assert field_named(block, "crc").note == "right"
    assert not block.problems
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes() + b"\x00")
    inspection = inspect_file(copy, EVERYTHING)
    assert len(inspection.problems) == 2
    copy.write_bytes(path.read_bytes()[:-1])
    assert "SEG-PSN-003" in inspect_file(copy, EVERYTHING).problems[0]


def test_fields_of_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n2\n3 0\n5 120\n")
    (block,) = inspect_file(path, EVERYTHING).blocks
    read = [(one.name, one.start, one.end, one.value) for one in block.fields if one.name in {"epoch", "start_offset"}]
    assert read == [("epoch", 4, 5, 3), ("start_offset", 5, 7, 0), ("epoch", 8, 9, 5), ("start_offset", 9, 13, 120)]
    assert field_named(block, "entry_count").requirements == ("SEG-CKP-002", "SEG-CKP-005")


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("recovery-point-offset-checkpoint", b"0\n1\norders 0 57\n", "offset", 57),
        ("partition.metadata", b"version: 0\ntopic_id: VnD2Iu21SAKpA1NdU4pcqA", "topic_id", "VnD2Iu21SAKpA1NdU4pcqA"),
    ],
)
def test_fields_of_other_text_files(tmp_path: Path, name: str, text: bytes, field: str, value: object) -> None:
    (tmp_path / name).write_bytes(text)
    (block,) = inspect_file(tmp_path / name, EVERYTHING).blocks
    assert field_named(block, field).value == value


@pytest.mark.parametrize(("name", "last"), [("notes", b"0 0"), ("leader-epoch-checkpoint", b"x 0")])
def test_lines_of_a_text_file_without_fields_or_with_damage(tmp_path: Path, name: str, last: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(b"0\n1\n" + last + b"\n")
    (block,) = inspect_file(path, EVERYTHING).blocks
    assert bytes(block.data) == path.read_bytes()
    assert [(field.start, field.end, field.value) for field in block.fields] == [
        (0, 2, b"0"),
        (2, 4, b"1"),
        (4, 8, last),
    ]


def test_json_has_positions_in_the_file() -> None:
    lines = list(json_fields(inspect_pasted(b"\xff" + vector("V-06"), EVERYTHING)))
    crc = next(line for line in lines if line["field"].endswith(".crc"))
    assert (crc["position"], crc["size"], crc["value"]) == (18, 4, 0x2A41A989)
    assert crc["field"] == "batch @1.crc"
    header = next(line for line in lines if line["field"] == "batch @1.records[2].value")
    assert header["value"] == "7676"
    assert json.dumps(lines)


@pytest.fixture(scope="module")
def html() -> str:
    path = next(bundled("4.3.0/txn").rglob(LOG))
    return page(inspect_file(path, EVERYTHING))


def test_page_needs_nothing_from_elsewhere(html: str) -> None:
    assert re.findall(r"(?:src|href|url|@import|fetch)\s*[=(]", html) == []
    assert re.findall(r"https?://", html) == []


def test_page_is_small(html: str) -> None:
    path = next(bundled("4.3.0/txn").rglob(LOG))
    assert len(html) < 12_000 + 12 * path.stat().st_size
    assert len(page(inspect_pasted(vector("V-06"), EVERYTHING))) < 20_000


def page_data(html: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert match
    text = match[1] if match[1][0] == "{" else zlib.decompress(base64.b64decode(match[1]))
    data: dict[str, object] = json.loads(text)
    return data


def test_page_carries_bytes_fields_and_the_text_of_requirements(html: str) -> None:
    data = page_data(html)
    path = next(bundled("4.3.0/txn").rglob(LOG))
    first, *derived = data["blocks"]
    assert base64.b64decode(first["data"]) == path.read_bytes()
    assert any(block["derived"] for block in derived)
    level, text = data["requirements"]["SEG-BAT-003"]
    assert level == "MUST"
    assert "CRC-32C" in text


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "$DATA$", "<b>&amp;", "\x1b[31m\u202e"])
def test_page_shows_names_as_text(name: str) -> None:
    inspection = inspect_pasted(vector("V-06"), EVERYTHING, name=name)
    html = page(inspection)
    assert html.count("<script") == 2
    assert html.count("</script>") == 2
    assert "\x1b" not in html
    assert "<b>" not in html.split("<body>")[0].split("<title>")[1]
    assert page_data(html)["blocks"]


def test_page_grows_with_its_data_and_no_quicker(tmp_path: Path) -> None:
    data = vector("V-06") * 300
    log = tmp_path / LOG
    log.write_bytes(data)
    html = page(inspect_file(log, EVERYTHING))
    assert len(html) < 4 * len(data)
    assert base64.b64decode(page_data(html)["blocks"][0]["data"]) == data


@settings(max_examples=60)
@given(st.binary(max_size=200), st.integers(0, 2))
def test_any_bytes_give_fields_or_an_error(content: bytes, magic: int) -> None:
    data = content[:8] + max(len(content) - 12, 14).to_bytes(4) + content[12:16] + bytes([magic]) + content[17:]
    try:
        inspection = inspect_pasted(data, EVERYTHING)
    except CorruptRecordError:
        return
    for block in inspection.blocks:
        assert all(0 <= field.start <= field.end <= len(block.data) for field in block.fields)
    assert page(inspection)
    assert list(json_fields(inspection))


@pytest.mark.parametrize("name", ["V-04", "V-06", "V-08", "V-12", "V-13", "V-19"])
def test_any_damaged_byte_gives_fields(name: str, tmp_path: Path) -> None:
    path = tmp_path / LOG
    for position in range(len(vector(name))):
        data = bytearray(vector(name))
        data[position] ^= 0x81
        path.write_bytes(data)
        inspection = inspect_file(path, EVERYTHING)
        assert inspection.problems or position < 16  # offset, size and leader epoch have no checksum
        for block in inspection.blocks:
            assert all(0 <= field.start <= field.end <= len(block.data) for field in block.fields)


# Large batches


@pytest.mark.parametrize("codec", [0, 1])
def test_records_too_large_to_be_shown_are_named(codec: int, tmp_path: Path) -> None:
    section = record(value=b"v" * (1 << 20))
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(batch(gzip.compress(section) if codec else section, attributes=codec))
    first, *derived = inspect_file(log, Selection()).blocks
    remarks = [field.note for field in first.fields] + [block.title for block in derived]
    assert sum("more than 1,048,576 bytes, not shown here" in remark for remark in remarks) == 1
    assert [len(block.data) for block in derived] == [0] * codec


def test_a_long_value_is_text_by_its_beginning() -> None:
    assert bytes_text("ä".encode() * 4096) == '8192 bytes "' + "ä" * 60 + '…"'
    assert bytes_text(b"a" * 4095 + "ä".encode()) == '4097 bytes "' + "a" * 60 + '…"'
    assert bytes_text(b"\xff" * 5000).startswith("5000 bytes 0xffff")


# Rows


def shown(data: bytes, *arguments: str, width: int = 120) -> list[str]:
    """Return what the command prints of some bytes, without the last line, which says how they were written."""
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(command, ["-", *arguments], input=data.hex())
    return result.stdout.splitlines()[:-1]


def test_a_row_for_each_field() -> None:
    title, heading, first, *rows = shown(vector("V-06"))
    assert (title, heading.split()) == ("bytes 0 to 87 of <stdin>", list(HEADINGS))
    assert first.split() == ["0", "87", "batch", "@0", "offsets", "10", "to", "12"]
    crc = next(row for row in rows if " crc " in row)
    assert re.split(r"\s{2,}", crc.strip()) == ["17", "4", "2a 41 a9 89", "crc", "0x2a41a989", "right", "SEG-BAT-003"]
    (block,) = inspect_pasted(vector("V-06"), EVERYTHING).blocks
    assert len(rows) + 1 == len(block.fields)


@pytest.mark.parametrize("width", [40, 80, 99, 100, 120, 200])
def test_rows_fit_the_line(width: int) -> None:
    rows = shown(vector("V-06"), width=width)
    assert max(map(len, rows)) <= width
    if width >= 80:
        assert all(" ".join(row.split()[:2]).strip() for row in rows)
        assert next(row for row in rows if " magic " in row).split()[:5] == ["16", "1", "02", "magic", "2"]


@pytest.mark.parametrize("width", [80, 99, 100, 160])
def test_what_does_not_fit_is_named(width: int) -> None:
    rows = shown(vector("V-06"), width=width)
    assert (NARROW in rows) == (not any("SEG-BAT-003" in row for row in rows)) == (width < 100)


def test_a_wrong_field_is_marked_without_colour() -> None:
    data = bytearray(vector("V-06"))
    data[67] ^= 1
    marked = [row.split()[3:5] for row in shown(bytes(data)) if row.startswith("!")]
    assert marked == [["batch", "@0"], ["2a", "41"]]


def test_deeper_fields_are_folded() -> None:
    *_, entry = shown(vector("V-06"), "--depth", "0")
    assert entry.split() == ["0", "87", *["00"] * 7, "…", "batch", "@0", "offsets", "10", "to", "12"]
    rows = shown(vector("V-06"), "--depth", "1")
    assert rows[-1].split()[:2] == ["61", "26"]
    assert not any(" offset_delta " in row for row in rows)


def test_a_row_shows_the_first_bytes_of_a_long_field() -> None:
    block = Block("", memoryview(bytes(1 << 20)), fields=[Field("value", 3, 1 << 20, value=b"")])
    _, row = (row.plain for row in field_rows(block, block.fields, widths_for(block, block.fields, 120)))
    assert row.split() == ["3", str((1 << 20) - 3), *["00"] * 7, "…", "value", '""']
