"""The proof that compares Wireshark's reading of our answers with ours: in short, and that it notices differences."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.support import bundled, need

from proofs import harness
from proofs.dissecting.conversation import SEGMENT_BYTES, Said, hex_dump
from proofs.dissecting.entry import Entry, differences
from proofs.dissecting.known import reason
from proofs.dissecting.ours import our_entries
from proofs.dissecting.shown import answers_in
from proofs.dissector import PROGRAMS, Verdict, compare

if TYPE_CHECKING:
    from pathlib import Path

BATCHES = "4.3.0/headers"
MESSAGES = "0.10.2.2/plain"
CAPTURED = """<pdml><packet><proto name="kafka"><field name="kafka.request_frame" show="1"/>
<field name="" show="Message Set"><field name="" show="Record Batch">
<field name="kafka.batch_first_timestamp" show="Jan  1, 1970 00:06:57.-70976493 UTC" value="000001a1fbc4fc13"/>
<field name="kafka.batch_last_timestamp" show="Nov  1, 2026 01:42:33.235000000 UTC" value="000001a1fbc4fc13"/>
<field name="" show="Record"><field name="kafka.record_attributes" show="0"/>
<field name="kafka.message_timestamp" show="Dec 31, 1969 23:59:59.999000000 UTC"/><field name="kafka.offset" show="7"/>
<field name="kafka.message_key" showname="Key: &lt;NULL&gt;"/>
<field name="kafka.message_value" showname="Value: &lt;MISSING&gt;"/>
<field name="" show="Headers"><field name="" show="Header (Key: a)"><field name="kafka.header_key" show="a" value="61"/>
<field name="kafka.header_value" showname="Header Value: ff" value="ff"/></field></field>
</field></field></field></proto></packet></pdml>"""


def entries_of(case: str) -> list[Entry]:
    log = next(path for path in sorted(bundled(case).rglob("*.log")) if path.stat().st_size)
    return our_entries(log.read_bytes())


def test_wireshark_reads_what_is_served_as_we_do(tmp_path: Path) -> None:
    need("Wireshark's dissector", PROGRAMS)
    report = tmp_path / "report.json"
    status = harness.main(["dissector", "--every", "31", "--report", str(report)])
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["failed"] == []
    assert status == 0
    assert found["counts"]["records compared"] > 0
    assert any(name.startswith("entries of magic 1") for name in found["counts"])


@pytest.mark.parametrize("case", [BATCHES, MESSAGES])
def test_every_field_that_is_read_otherwise_is_a_failure(case: str) -> None:
    entry = entries_of(case)[0]
    assert not list(differences(entry, entry))
    for name in entry.fields:
        [found] = differences(entry, Entry({**entry.fields, name: "something else"}, entry.items))
        assert (found.name, reason(found)) == (name, None)


def test_every_field_of_a_record_that_is_read_otherwise_is_a_failure() -> None:
    entry = entries_of(BATCHES)[0]
    first, *others = entry.items
    for name in first.fields:
        changed = replace(entry, items=[Entry({**first.fields, name: "something else"}), *others])
        [found] = differences(entry, changed)
        assert (found.kind, found.name, reason(found)) == ("item", name, None)


def test_a_record_that_is_not_read_is_a_failure() -> None:
    entry = entries_of(BATCHES)[0]
    [found] = differences(entry, replace(entry, items=entry.items[1:]))
    assert (found.name, reason(found)) == ("items", None)


def test_a_difference_is_explained_only_where_its_cause_is_seen() -> None:
    [entry] = entries_of(MESSAGES)[:1]
    late = Entry({**entry.fields, "value": b"ue"}, (), {"is_late": True})
    assert [reason(each) for each in differences(entry, late)] == ["attributes_of_two_bytes"]
    assert [reason(each) for each in differences(entry, replace(late, fields={**late.fields, "crc": 0}))].count(
        None
    ) == 1

    batch = entries_of(BATCHES)[0]
    undecoded = Entry(batch.fields, (), {"is_undecoded": True})
    assert [reason(each) for each in differences(batch, undecoded)] == ["codec"]

    time = Entry({"max_timestamp_text": 1_500_000_780_240})
    assert [reason(each) for each in differences(time, Entry({"max_timestamp_text": 350_057}))] == [
        "text_of_batch_times"
    ]
    assert [reason(each) for each in differences(time, Entry({"max_timestamp_text": None}))] == [None]

    record = Entry({"timestamp_ms": 9}, (), {"stored_timestamp_ms": 5})
    assert [reason(each) for each in differences(record, Entry({"timestamp_ms": 5}))] == ["append_time"]
    assert [reason(each) for each in differences(record, Entry({"timestamp_ms": 6}))] == [None]


def test_an_entry_that_is_not_read_is_a_failure() -> None:
    entries = entries_of(BATCHES)
    verdict = Verdict()
    compare("log", entries, entries[:-1], verdict)
    assert verdict.failures == [f"log: {len(entries)} entries, {len(entries) - 1} dissected"]


def test_without_wireshark_the_proof_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="this proof needs text2pcap, which is not on the PATH; tshark"):
        harness.main(["dissector"])


def test_what_the_dissector_shows_is_read_by_its_meaning() -> None:
    [[entry]] = answers_in(CAPTURED.encode())
    assert entry.fields["base_timestamp_ms"] == entry.fields["max_timestamp_ms"] == 0x1A1FBC4FC13
    assert entry.fields["base_timestamp_text"] is None
    assert entry.fields["max_timestamp_text"] == 1_793_497_353_235
    assert entry.items[0].fields == {
        "attributes": 0,
        "timestamp_ms": -1,
        "offset": 7,
        "key": None,
        "value": b"",
        "headers": [(b"a", b"\xff")],
    }


def test_a_frame_that_is_larger_than_a_packet_is_cut_into_segments() -> None:
    lines = hex_dump([Said(is_answer=False, frame=b"\1" * 17), Said(is_answer=True, frame=bytes(SEGMENT_BYTES + 1))])
    said = lines.splitlines()
    assert said[:3] == ["O", "000000" + " 01" * 16, "000010 01"]
    assert said.count("I") == 2
    assert said[-2:] == ["I", "000000 00"]
