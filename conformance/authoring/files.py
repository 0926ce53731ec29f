"""Family 43: names, checkpoints, metadata, snapshots, and the three indexes as files."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from authoring.casefile import Basis, Family, Json, may, must, should
from authoring.primitives import crc32c
from authoring.segments import aborted, time_entry
from authoring.verified import verified

if TYPE_CHECKING:
    from collections.abc import Sequence

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
SNAPSHOT_HEADER_SIZE: Final = 10
EPOCHS: Final = "leader-epoch-checkpoint"
METADATA: Final = "partition.metadata"
PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
MARKS_SINCE: Final = {"stray": "3.7"}
"""Releases that began to mark directories so, of those that are younger than the rule."""
UNIQUE: Final = "0123456789abcdef0123456789abcdef"
TOPIC_ID: Final = "kLrBX-8RTpavUzNNZr7xRg"
INT64_MAX: Final = 2**63 - 1

FLAGS: Final = {
    "NAME_DIGITS": {
        "effect": "Everything about a segment hangs on the number in its name. Read as text, with a fixed width, or in 32 bits, it leads to the wrong file.",
        "links": [],
    },
    "CHECKPOINT_MAP": {
        "effect": "The order of entries means nothing, and of two for one partition only one can count: a reader may keep a map.",
        "links": [],
    },
    "CHECKPOINT_CUT": {
        "effect": "A checkpoint that is read although it was cut gives a recovery point or a start offset that was never written.",
        "links": [],
    },
    "LOOSE_VERSION": {
        "effect": "Brokers look at one byte of the version of a transaction index entry; a later format would be misread.",
        "links": [],
    },
    "SNAPSHOT_STATE": {
        "effect": "Producer state that is read wrong makes a broker drop good batches as duplicates, or take duplicates for new.",
        "links": [],
    },
}


class Parsing:
    """Adds cases of one kind of file."""

    def __init__(self, family: Family, kind: str, file_name: str = "") -> None:
        self.family = family
        self.kind = kind
        self.file_name = file_name

    def good(
        self,
        name: str,
        why: str,
        basis: Basis,
        data: bytes | None,
        found: Json,
        *,
        file_name: str = "",
        base: int | None = None,
    ) -> None:
        """Add a file that is read."""
        self._add(name, "valid", why, basis, self._request(data, file_name, base), {"object": found})

    def either(self, name: str, why: str, basis: Basis, data: bytes, found: dict[str, Json]) -> None:
        """Add a file that may be read in several ways."""
        branches = [{"branch": branch, "object": answer} for branch, answer in found.items()]
        self._add(name, "acceptable", why, basis, self._request(data, "", None), {"allowed": branches})

    def bad(self, name: str, why: str, basis: Basis, data: bytes | None, *, file_name: str = "") -> None:
        """Add a file that is refused."""
        reject = {"name": "name", "checkpoint": "text", "metadata": "text"}.get(self.kind, "index")
        self._add(name, "invalid", why, basis, self._request(data, file_name, None), {"reject": {"class": reject}})

    def _request(self, data: bytes | None, file_name: str, base: int | None) -> Json:
        request: Json = {"kind": self.kind, "name": file_name or self.file_name}
        if data is not None:
            request["data"] = data.hex()
        if base is not None:
            request["baseOffset"] = str(base)
        return request

    def _add(self, name: str, result: str, why: str, basis: Basis, request: Json, expect: Json) -> None:
        self.family.add(f"{self.kind}-{name}", "parse", result, why, basis, request=request, expect=expect)


def small_files() -> Family:
    """Family 43."""
    family = Family(
        43, "files", "Names, checkpoints, metadata, snapshots, transaction index", "facts 1 and 4", flags=FLAGS
    )
    _file_names(Parsing(family, "name"))
    _directory_names(Parsing(family, "name"))
    _offset_checkpoints(Parsing(family, "checkpoint", RECOVERY_POINTS))
    _epochs(Parsing(family, "checkpoint", EPOCHS))
    _metadata(Parsing(family, "metadata", METADATA))
    _properties(Parsing(family, "metadata", PROPERTIES))
    _clean_shutdown(Parsing(family, "metadata", CLEAN_SHUTDOWN))
    _quorum_state(Parsing(family, "metadata", "quorum-state"))
    _snapshots(Parsing(family, "snapshot", "00000000000000000005.snapshot"))
    _offset_indexes(Parsing(family, "index", "00000000000000000100.index"))
    _time_indexes(Parsing(family, "timeindex", "00000000000000000100.timeindex"))
    _transaction_indexes(Parsing(family, "txnindex", "00000000000000000000.txnindex"))
    verified(family)
    return family


def _file_names(names: Parsing) -> None:
    def of(kind: str, base: int, suffix: str = "") -> Json:
        return {"kind": kind, "baseOffset": str(base), "suffix": suffix}

    digits = must("SEG-PDR-005", flags=("NAME_DIGITS",), since="0.8")
    for kind in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        why = "The files of a segment have the same base offset in their names, and different suffixes."
        names.good(f"kind{kind}", why, digits, None, of(kind, 368769), file_name=f"{368769:020}{kind}")
    for name, base in (("zero", 0), ("above-32-bits", 2**32 + 1), ("above-2-53", 2**53 + 1), ("greatest", INT64_MAX)):
        why = "The number in a file name is an offset of 64 bits."
        names.good(f"offset-{name}", why, digits, None, of(".log", base), file_name=f"{base:020}.log")
    for suffix in (".deleted", ".cleaned", ".swap"):
        names.good(
            f"suffix{suffix}",
            "The suffix says that the file is not, or not yet, part of the log.",
            must("SEG-PDR-009", flags=("NAME_DIGITS",)),
            None,
            of(".log", 5, suffix),
            file_name=f"{5:020}.log{suffix}",
        )
    loose = should("SEG-PDR-018", flags=("NAME_DIGITS",))
    for text in ("0.log", "77.log", "000000000000000000000007.log", "0000000000368769.log"):
        why = "A file name with another number of digits than twenty is unusual, but can be read."
        names.good(f"digits-{len(text) - 4}", why, loose, None, of(".log", int(text[:-4])), file_name=text)
    why = "A broker with another locale wrote digits of another script."
    names.good("arabic-digits", why, loose, None, of(".log", 12), file_name="\u0660" * 18 + "\u0661\u0662.log")
    far = must("SEG-PDR-007", flags=("NAME_DIGITS",), since="0.8")
    for text in ("09223372036854775808.log", "99999999999999999999.index", "18446744073709551616.log"):
        why = "The number in the file name is too large for an offset."
        names.bad(f"too-large-{text[:20]}", why, far, None, file_name=text)
    below = should("SEG-PDR-007", flags=("NAME_DIGITS",), since="0.8")
    names.bad("negative", "A number below 0 is no offset.", below, None, file_name="-0000000000000000005.log")
    names.good(
        "metadata-snapshot",
        "A snapshot of a metadata log: end offset and epoch.",
        must("SEG-PDR-015", since="3.0", needs=("parse:metadata-snapshot",)),
        None,
        {"kind": ".checkpoint", "baseOffset": "57", "suffix": ""},
        file_name="00000000000000000057-0000000003.checkpoint",
    )
    for name, text in (
        ("short-offset", "87-0000000003.checkpoint"),
        ("short-epoch", "00000000000000000057-000000003.checkpoint"),
        ("epoch-above-31-bits", "00000000000000000057-2147483648.checkpoint"),
        ("random-but-whole", "00000000000000000057-0000000003-1234567.checkpoint"),
    ):
        names.bad(
            f"metadata-snapshot-{name}",
            "The end offset has 20 digits and the epoch 10; more follows only while it is written.",
            must("SEG-PDR-015", since="3.0", needs=("parse:metadata-snapshot",)),
            None,
            file_name=text,
        )
    for text in ("notes.txt", "00000000000000000000.kafka", "00000000000000000000", ".log", "x.log"):
        names.bad(
            f"other-{text.strip('.').replace('.', '-') or 'dot'}",
            "A broker gives no file such a name.",
            must("SEG-PDR-005" if text.endswith(".log") else "SEG-PDR-001", "SEG-PDR-011"),
            None,
            file_name=text,
        )
    for text in (METADATA, EPOCHS):
        names.good(
            f"text-{text.replace('.', '-')}",
            "Checkpoint and metadata files have fixed names without a number.",
            may("SEG-PDR-012", needs=("parse:text-names",)),
            None,
            {"kind": text, "suffix": ""},
            file_name=text,
        )


def _directory_names(names: Parsing) -> None:
    basis = must("SEG-PDR-001", since="0.8")

    def of(topic: str, partition: int, state: str = "") -> Json:
        return {"topic": topic, "partition": partition, "state": state}

    good = {
        "topic-0": ("topic", 0),
        "my-topic-12": ("my-topic", 12),
        "a-b-c-7": ("a-b-c", 7),
        "a.b_c-3": ("a.b_c", 3),
        "topic--1": ("topic-", 1),
        "1-2-3": ("1-2", 3),
        "topic-2147483647": ("topic", 2**31 - 1),
        "__consumer_offsets-49": ("__consumer_offsets", 49),
        f"{'t' * 249}-0": ("t" * 249, 0),
    }
    for text, (topic, partition) in good.items():
        names.good(
            f"directory-{text if len(text) < len(UNIQUE) else 'long'}",
            "The last dash in a directory name separates topic and partition.",
            basis,
            None,
            of(topic, partition),
            file_name=text,
        )
    unusual = {"topic-007": 7, "topic-+5": 5, "topic-\u0667": 7}
    for number, (text, partition) in enumerate(unusual.items()):
        why = "Brokers also read partition numbers with a sign, leading zeros or digits of another script."
        names.good(f"directory-odd-{number}", why, should("SEG-PDR-017"), None, of("topic", partition), file_name=text)
    bad_basis = must("SEG-PDR-001", "SEG-LDR-001", since="0.8")
    bad = (
        "topic",
        "topic-",
        "-0",
        "-",
        "topic-x",
        "topic-1x",
        "topic-2147483648",
        "topic-99999999999",
        "lost+found",
        "topic_0",
        "topic-1.5",
    )
    for number, text in enumerate(bad):
        names.bad(
            f"directory-bad-{number}", f"The name {text} is no topic and partition.", bad_basis, None, file_name=text
        )
    marked = must("SEG-PDR-003", since="")
    for state in ("delete", "future", "stray"):
        names.good(
            f"directory-{state}",
            "The name of a marked directory contains topic, partition, a unique part and the mark.",
            replace(marked, since=MARKS_SINCE.get(state, "")),
            None,
            of("my-topic", 3, state),
            file_name=f"my-topic-3.{UNIQUE}-{state}",
        )
        why = "The directory name has the mark, but no unique part."
        names.bad(f"directory-{state}-without-unique", why, marked, None, file_name=f"my-topic-3-{state}")
    for name, why, terms, entries, its_entries, file_name in (
        ("directory-delete-dotted", "The topic name has dots: the unique part follows the last dot.", marked, "a.b.c", "delete", f"a.b.c-1.{UNIQUE}-delete"),
        ("directory-short-unique", "The unique part of a directory name may be any text.", should("SEG-PDR-004"), "t", "future", "t-1.x-future"),
    ):  # fmt: skip
        names.good(name, why, terms, None, of(entries, 1, its_entries), file_name=file_name)


def _lines(*rows: object, end: str = "\n") -> bytes:
    return "".join(f"{row}{end}" for row in rows).encode()


def _offset_checkpoints(files: Parsing) -> None:
    basis = must("SEG-CKP-001", "SEG-CKP-002", "SEG-CKP-003", "SEG-CKP-004", since="0.8")

    def of(*entries: Sequence[Any]) -> Json:
        return {"version": 0, "entries": [[topic, partition, str(offset)] for topic, partition, offset in entries]}

    two = (("a-b", 0, 5), ("t", 12, INT64_MAX))
    why = "Each line of a checkpoint has topic, partition and offset."
    files.good("one-entry", why, basis, _lines(0, 1, f"a-b 12 {INT64_MAX}"), of(("a-b", 12, INT64_MAX)))
    orders = {"in-order": of(*two), "any-order": of(*reversed(two))}
    loose = must("SEG-CKP-002", "SEG-CKP-003", flags=("CHECKPOINT_MAP",), since="0.8")
    why = "A reader may return the two entries in any order."
    files.either("two-entries", why, loose, _lines(0, 2, "a-b 0 5", f"t 12 {INT64_MAX}"), orders)
    none = must("SEG-CKP-005", since="0.8")
    ends = must("SEG-CKP-006", since="0.8")
    for name, why, terms, data, found in (
        ("no-entries", "A checkpoint with a count of 0 has no entries.", basis, _lines(0, 0), of()),
        ("empty", "An empty file has no entries.", none, b"", of()),
        ("version-only", "A checkpoint with a version and nothing else has no entries.", none, _lines(0), of()),
        ("crlf", "Lines end in CRLF on some systems.", ends, _lines(0, 1, f"a-b 12 {INT64_MAX}", end="\r\n"), of(("a-b", 12, INT64_MAX))),
        ("cr", "A carriage return alone ends a line, too.", ends, _lines(0, 1, "t 1 2", end="\r"), of(("t", 1, 2))),
        ("no-last-line-end", "The last line may lack its end.", ends, _lines(0, 1, "t 1 2")[:-1], of(("t", 1, 2))),
        ("white-space", "White space of any length separates the fields.", ends, _lines(0, 1, "t \t 1   2"), of(("t", 1, 2))),
        ("plus-and-zeros", "Signs and leading zeros are fine in a number.", must("SEG-CKP-004", since="0.8"), _lines("+0", "01", "t +1 0002"), of(("t", 1, 2))),
    ):  # fmt: skip
        files.good(name, why, terms, data, found)
    both = {"both": of(("t", 1, 2), ("t", 1, 3)), "last": of(("t", 1, 3))}
    twice = should("SEG-CKP-008", flags=("CHECKPOINT_MAP",))
    why = "A checkpoint with two entries for a partition is unusual, but can be read."
    files.either("twice", why, twice, _lines(0, 2, "t 1 2", "t 1 3"), both)
    why = "A checkpoint with a negative offset is unusual, but can be read."
    files.good("negative-offset", why, should("SEG-CKP-008"), _lines(0, 1, "t 1 -2"), of(("t", 1, -2)))
    cut = must("SEG-CKP-002", flags=("CHECKPOINT_CUT",), since="0.8")
    files.bad("version-1", "A version that does not exist.", must("SEG-CKP-001", since="0.8"), _lines(1, 1, "t 1 2"))
    files.bad("version-minus-1", "A negative version.", must("SEG-CKP-001", since="0.8"), _lines(-1, 1, "t 1 2"))
    files.bad("version-text", "A version that is no number.", must("SEG-CKP-004", since="0.8"), _lines("x", 1, "t 1 2"))
    files.bad(
        "version-space", "White space precedes the version.", must("SEG-CKP-004", since="0.8"), _lines(" 0", 1, "t 1 2")
    )
    files.bad("count-text", "A count that is no number.", must("SEG-CKP-004", since="0.8"), _lines(0, "one", "t 1 2"))
    files.bad("one-missing", "Fewer entries than the count says: the file was cut.", cut, _lines(0, 2, "t 1 2"))
    files.bad("all-missing", "The count says one entry, but there is none.", cut, _lines(0, 1))
    files.bad("one-too-many", "More entries than the count says.", cut, _lines(0, 1, "t 1 2", "t 2 2"))
    fields = must("SEG-CKP-003", since="0.8")
    files.bad("two-fields", "An entry with two fields.", fields, _lines(0, 1, "t 1"))
    files.bad("four-fields", "An entry with four fields.", fields, _lines(0, 1, "t 1 2 3"))
    files.bad("blank-line", "A blank line is an entry without fields.", fields, _lines(0, 1, "t 1 2", ""))
    files.bad("leading-space", "White space at the start is an empty field.", fields, _lines(0, 1, " t 1 2"))
    number = must("SEG-CKP-004", since="0.8")
    for name, text in (
        ("partition-text", "t x 2"),
        ("partition-2-31", "t 2147483648 2"),
        ("offset-text", "t 1 y"),
        ("offset-2-63", "t 1 9223372036854775808"),
        ("offset-decimal", "t 1 2.0"),
        ("offset-underscore", "t 1 1_0"),
    ):
        files.bad(name, "The partition or offset is not a number, or is too large.", number, _lines(0, 1, text))
    files.bad("not-utf-8", "The file is not valid UTF-8.", must("SEG-CKP-013", since="0.8"), b"0\n1\nt\xff 1 2\n")
    why = "A byte order mark is part of the first line."
    files.bad("byte-order-mark", why, must("SEG-CKP-004", "SEG-CKP-013", since="0.8"), b"\xef\xbb\xbf0\n1\nt 1 2\n")


def _epochs(files: Parsing) -> None:
    basis = must("SEG-CKP-002", "SEG-CKP-003", "SEG-CKP-004")

    def of(*entries: Sequence[int]) -> Json:
        return {"version": 0, "entries": [[str(epoch), str(offset)] for epoch, offset in entries]}

    for name, why, terms, data, found in (
        ("epochs-one", "Each line of a leader epoch checkpoint has epoch and start offset.", basis, b"0\n1\n5 0\n", of((5, 0))),
        ("epochs-three", "Three leader epochs, the last with a start offset above 2^53.", basis, _lines(0, 3, "0 0", "3 17", f"4 {2**53 + 1}"), of((0, 0), (3, 17), (4, 2**53 + 1))),
        ("epochs-empty", "An empty leader epoch checkpoint, as a broker creates it when it opens a log.", must("SEG-CKP-005"), b"", of()),
        ("epochs-back", "A checkpoint with decreasing leader epochs is unusual, but can be read.", should("SEG-CKP-007"), _lines(0, 2, "3 0", "2 9"), of((3, 0), (2, 9))),
    ):  # fmt: skip
        files.good(name, why, terms, data, found)
    for name, why, terms, data in (
        ("epochs-three-fields", "A line of an offset checkpoint in a leader epoch checkpoint: its first field is not a number, and it has three fields.",
         must("SEG-CKP-004", "SEG-CKP-003"), _lines(0, 1, "t 1 2")),
        ("epochs-three-numbers", "An entry with one field too many.", must("SEG-CKP-003"), _lines(0, 1, "0 1 2")),
        ("epochs-one-field", "An entry with one field.", must("SEG-CKP-003"), _lines(0, 1, "5")),
        ("epochs-too-large", "An epoch above 32 bits.", must("SEG-CKP-004"), _lines(0, 1, "2147483648 0")),
        ("epochs-cut", "The checkpoint has fewer entries than the count says.", must("SEG-CKP-002", flags=("CHECKPOINT_CUT",)), _lines(0, 2, "5 0")),
        ("epochs-version-1", "A version that does not exist.", must("SEG-CKP-001"), _lines(1, 1, "5 0")),
    ):  # fmt: skip
        files.bad(name, why, terms, data)


def _metadata(files: Parsing) -> None:
    basis = must("SEG-CKP-009", since="2.8")
    found = {"version": 0, "topicId": TOPIC_ID}
    for name, why, data, answer in (
        ("topic-id", "The file `partition.metadata` has two lines, the last without a line end.", f"version: 0\ntopic_id: {TOPIC_ID}".encode(), found),
        ("topic-id-line-end", "The last line of `partition.metadata` has a line end.", f"version: 0\ntopic_id: {TOPIC_ID}\n".encode(), found),
        ("topic-id-version-7", "A later version of `partition.metadata` can be read.", f"version: 7\ntopic_id: {TOPIC_ID}".encode(), {**found, "version": 7}),
    ):  # fmt: skip
        files.good(name, why, basis, data, answer)
    bad = {
        "negative-version": f"version: -1\ntopic_id: {TOPIC_ID}",
        "zero-id": f"version: 0\ntopic_id: {'A' * 22}",
        "short-id": "version: 0\ntopic_id: abc",
        "no-id": "version: 0\n",
        "empty": "",
        "other-order": f"topic_id: {TOPIC_ID}\nversion: 0",
        "no-base64": f"version: 0\ntopic_id: {TOPIC_ID[:-2]}!!",
        "no-colon": f"version 0\ntopic_id {TOPIC_ID}",
        "version-text": f"version: x\ntopic_id: {TOPIC_ID}",
    }
    for name, text in bad.items():
        why = "The file `partition.metadata` without a valid version and topic id is refused."
        files.bad(f"topic-id-{name}", why, basis, text.encode())


def _properties(files: Parsing) -> None:
    basis = must("SEG-LDR-005", since="0.9")

    def of(version: int, cluster: str | None, node: int | None, directory: str | None = None) -> Json:
        return {"version": version, "clusterId": cluster, "nodeId": node, "directoryId": directory}

    for name, why, data, found in (
        ("properties-0", "The file `meta.properties` of a ZooKeeper cluster has version 0.", b"#\n#Tue Nov 17 2020\nversion=0\nbroker.id=3\ncluster.id=abc\n", of(0, "abc", 3)),
        ("properties-0-bare", "Version 0 of `meta.properties` requires neither cluster id nor node id.", b"version=0\n", of(0, None, None)),
        ("properties-no-version", "Without a version, `meta.properties` has version 0.", b"broker.id=4\n", of(0, None, 4)),
        ("properties-1", "The file `meta.properties` of a KRaft cluster has version 1.", b"version=1\nnode.id=7\ncluster.id=kLrBX\n", of(1, "kLrBX", 7)),
        ("properties-directory", "The file `meta.properties` may have a directory id.", f"version=1\nnode.id=7\ncluster.id=c\ndirectory.id={TOPIC_ID}\n".encode(), of(1, "c", 7, TOPIC_ID)),
        ("properties-escapes", "The file `meta.properties` follows the rules of Java properties: colons, spaces, escapes.",
         b"! note\nversion : 1\n  node.id\\=x=1\nnode.id 7\ncluster.id=a\\u0062\\\n   c\n", of(1, "abc", 7)),
    ):  # fmt: skip
        files.good(name, why, basis, data, found)
    for number in (0, 2**30, 2**31 - 1):
        content = f"version=1\nnode.id={number}\ncluster.id=c\n".encode()
        files.good(
            f"properties-node-{number}", "The node id is a number of 32 bits.", basis, content, of(1, "c", number)
        )
    for number in (2**31, 2**32 + 7, 2**63):
        content = f"version=1\nnode.id={number}\ncluster.id=c\n".encode()
        files.bad(f"properties-node-{number}", "The node id has more than 32 bits.", basis, content)
    for name, text in (
        ("1-without-node", "version=1\ncluster.id=c\n"),
        ("1-without-cluster", "version=1\nnode.id=7\n"),
        ("version-2", "version=2\nnode.id=7\ncluster.id=c\n"),
        ("node-text", "version=1\nnode.id=x\ncluster.id=c\n"),
    ):
        why = "The file `meta.properties` does not say to which node and cluster the directory belongs."
        files.bad(f"properties-{name}", why, basis, text.encode())


def _clean_shutdown(marks: Parsing) -> None:
    basis = should("SEG-LDR-004", needs=("cleanShutdown",))
    why = "The mark of a clean shutdown is an empty file before 3.7, and a JSON object since."
    marks.good("mark-empty", why, basis, b"", {"version": 0, "brokerEpoch": "-1"})
    marks.good("mark-object", why, basis, b'{"version":0,"brokerEpoch":42}', {"version": 0, "brokerEpoch": "42"})
    marks.bad("mark-text", "Other text is not a mark of a clean shutdown.", basis, b"clean")
    marks.bad("mark-list", "A JSON list is not a mark of a clean shutdown.", basis, b"[]")


def _quorum_state(states: Parsing) -> None:
    basis = may("SEG-LDR-006", needs=("quorumState",), since="2.7")

    def found(version: int, *, leader: int = 1, voted: int = -1, voters: tuple[int, ...] = ()) -> Json:
        reported = {"dataVersion": version, "leaderId": leader, "leaderEpoch": 7}
        return {**reported, "votedId": voted, "voterIds": list(voters)}

    first = b'{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
    first += b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    second = b'{"leaderId":-1,"leaderEpoch":7,"votedId":3,"votedDirectoryId":"x","data_version":1}'
    unusual = b'{"leaderId":"1","leaderEpoch":7,"data_version":1}'
    for name, why, data, answer in (
        ("quorum-state-0", "Version 0 of `quorum-state` contains the voters.", first, found(0, voters=(1, 2))),
        ("quorum-state-1", "Version 1 of `quorum-state` contains the vote.", second, found(1, leader=-1, voted=3)),
        ("quorum-state-odd", "A leader id in `quorum-state` that is not a number means none.", unusual, found(1, leader=-1)),
    ):  # fmt: skip
        states.good(name, why, basis, data, answer)
    states.bad("quorum-state-2", "The version of the file or entry is unknown.", basis, second.replace(b":1}", b":2}"))
    states.bad("quorum-state-none", "The file `quorum-state` has no version.", basis, b'{"leaderId":1}')
    states.bad("quorum-state-text", "Other text is not a quorum state.", basis, b"leader")


def _snapshots(files: Parsing) -> None:
    entry = struct.Struct(">qhiqiqiq")
    flags = {"flags": ("SNAPSHOT_STATE",)}

    def packed(*rows: tuple[int, ...], count: int | None = None, version: int = 1) -> bytes:
        body = struct.pack(">i", len(rows) if count is None else count) + b"".join(entry.pack(*row) for row in rows)
        return struct.pack(">hI", version, crc32c(body)) + body

    def of(*rows: tuple[int, ...]) -> Json:
        names = (
            "producerId",
            "producerEpoch",
            "lastSequence",
            "lastOffset",
            "offsetDelta",
            "timestamp",
            "coordinatorEpoch",
            "currentTxnFirstOffset",
        )
        producers = []
        for row in rows:
            one = dict(zip(names, row, strict=True))
            producer: Json = {
                "producerId": str(one["producerId"]),
                "producerEpoch": one["producerEpoch"],
                "coordinatorEpoch": one["coordinatorEpoch"],
                "lastTimestamp": str(one["timestamp"]),
            }
            if one["currentTxnFirstOffset"] != -1:
                producer["currentTxnFirstOffset"] = str(one["currentTxnFirstOffset"])
            if one["lastOffset"] != -1:
                producer["batches"] = [
                    {
                        "lastSequence": one["lastSequence"],
                        "lastOffset": str(one["lastOffset"]),
                        "offsetDelta": one["offsetDelta"],
                        "timestamp": str(one["timestamp"]),
                    }
                ]
            producers.append(producer)
        return {"producers": producers}

    two = ((88, 0, 0, 2, 0, 1000, -1, 2), (77, 1, 1, 1, 1, 1001, -1, 0))
    basis = must("SEG-PSN-007", "SEG-PSN-002", **flags)
    marked = (9, 1, -1, -1, 0, 1_700_000_000_000, 5, -1)
    largest = (2**63 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1, 2**31 - 1, 2**63 - 1, 2**31 - 1, 2**63 - 2)
    many = tuple((at, 0, at, 10 * at + 1, 0, 1000, -1, -1) for at in range(30))
    for name, why, terms, data, found in (
        ("two-producers", "Two producers, both in a transaction.", must("SEG-PSN-007", "SEG-PSN-002", source="vector V-25", **flags), packed(*two), of(*two)),
        ("empty", "A broker without producers writes ten bytes.", basis, bytes.fromhex("000148674bc700000000"), of()),
        ("no-transaction", "An idempotent producer without a transaction.", basis, packed((5, 3, 2**31 - 1, 2**53 + 1, 9, 1_700_000_000_000, 4, -1)),
         of((5, 3, 2**31 - 1, 2**53 + 1, 9, 1_700_000_000_000, 4, -1))),
        ("markers-only", "A producer of whose data nothing is left, only a marker.", basis, packed(marked), of(marked)),
        ("largest-numbers", "Each field holds its largest number.", basis, packed(largest), of(largest)),
        ("thirty-producers", "A snapshot of thirty producers.", basis, packed(*many), of(*many)),
    ):  # fmt: skip
        files.good(name, why, terms, data, found)
    for version in (0, 2, -1):
        why = "The version of the snapshot does not exist; the checksum does not cover the version."
        files.bad(f"version-{version}", why, must("SEG-PSN-001", **flags), packed(*two, version=version))
    whole = packed(*two)
    for name, data in (
        ("crc", whole[:2] + b"\0\0\0\0" + whole[6:]),
        ("entry", whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]),
        ("last-byte", whole[:-1] + bytes([whole[-1] ^ 1])),
    ):
        why = "One change in the snapshot makes its checksum wrong."
        files.bad(f"damaged-{name}", why, must("SEG-PSN-002", **flags), data)
    size = must("SEG-PSN-003", **flags)
    for count in (0, 1, 3, 1_000_000, 2**31 - 1, -1):
        files.bad(
            f"count-{count}",
            "The count of producers does not fit the file size; the checksum is right.",
            should("SEG-PSN-003", **flags) if count in {0, 1} else size,
            packed(*two, count=count),
        )
    for left in (0, 1, 5, 9, 10, 55, 101):
        rules = ("SEG-PSN-002", "SEG-PSN-003") if left >= SNAPSHOT_HEADER_SIZE else ("SEG-PSN-003",)
        files.bad(f"cut-to-{left}", "The snapshot file is cut short.", must(*rules, **flags), whole[:left])


def _offset_indexes(files: Parsing) -> None:
    rows = struct.pack(">iiii", 3, 119, 5, 238)
    basis = must("SEG-IDX-011", since="0.8")
    found = {"entries": [["103", 119], ["105", 238]]}
    files.good("two-entries", "Offsets in an index are relative to the base offset of the segment.", basis, rows, found)
    files.good("empty", "An index without entries.", basis, b"", {"entries": []})
    files.good(
        "base-above-2-53",
        "The base offset of an index may be any offset.",
        basis,
        rows,
        {"entries": [[str(2**53 + 4), 119], [str(2**53 + 6), 238]]},
        file_name=f"{2**53 + 1:020}.index",
        base=2**53 + 1,
    )
    for name, reason, terms, data, answer in (
        ("widest", "An index entry with the greatest relative offset and position.", basis, struct.pack(">ii", 2**31 - 1, 2**31 - 2), {"entries": [[str(100 + 2**31 - 1), 2**31 - 2]]}),
        ("preallocated", "Zeros of preallocation after the entries are not entries.", may("SEG-IDX-007"), rows + bytes(160), {**found, "trailingZeroEntries": 20}),
    ):  # fmt: skip
        files.good(name, reason, terms, data, answer)
    for size in (2**16, 2**16 + 8, 2**17 - 16):
        why = "Zeros of preallocation after the entries are not entries, however many."
        zeros = {**found, "trailingZeroEntries": size // 8}
        files.good(f"preallocated-{size}", why, may("SEG-IDX-007"), rows + bytes(size), zeros)
    reason = "Bytes after the last whole entry of an index are ignored."
    files.good("odd-size", reason, should("SEG-IDX-001"), rows + b"\0\0\0", found)


def _time_indexes(files: Parsing) -> None:
    rows = time_entry(1101, 3) + time_entry(1201, 5)
    basis = must("SEG-TIX-010", since="0.10.1")
    found = {"entries": [["1101", "103"], ["1201", "105"]]}
    for name, why, terms, data, answer in (
        ("two-entries", "A time index entry has a timestamp, and an offset relative to the base offset.", basis, rows, found),
        ("empty", "A time index without entries.", basis, b"", {"entries": []}),
        ("large-times", "Timestamps in a time index have 64 bits.", basis, time_entry(2**53 + 1, 0) + time_entry(INT64_MAX, 2**31 - 1),
         {"entries": [[str(2**53 + 1), "100"], [str(INT64_MAX), str(100 + 2**31 - 1)]]}),
        ("preallocated", "Zeros of preallocation after the entries are not entries.", may("SEG-TIX-007"), rows + bytes(240), {**found, "trailingZeroEntries": 20}),
        ("odd-size", "Bytes after the last whole entry of an index are ignored.", should("SEG-TIX-001"), rows + b"\0" * 11, found),
    ):  # fmt: skip
        files.good(name, why, terms, data, answer)


def _transaction_indexes(files: Parsing) -> None:
    def of(*entries: tuple[int, int, int, int]) -> Json:
        names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
        return {
            "aborted": [
                {"version": 0, **{name: str(value) for name, value in zip(names, entry, strict=True)}}
                for entry in entries
            ]
        }

    basis = must("SEG-TXN-009")
    one, two = (77, 0, 3, 2), (2**53 + 1, 2**53 + 3, 2**53 + 9, 2**53 + 10)
    for name, why, terms, data, found in (
        ("one-entry", "An aborted transaction as a broker recorded it.", basis, aborted(*one), of(one)),
        ("two-entries", "Producer id and offsets of an aborted transaction have 64 bits.", basis, aborted(*one) + aborted(*two), of(one, two)),
        ("empty", "An empty index of aborted transactions has no entries.", basis, b"", of()),
        ("torn", "A crash has cut the last entry short: a reader ignores it.", should("SEG-TXN-001"), aborted(*one) + aborted(*two)[:33], of(one)),
    ):  # fmt: skip
        files.good(name, why, terms, data, found)
    version = must("SEG-TXN-002")
    for name, why, terms, data in (
        ("version-256", "The version of the entry is unknown; a broker also refuses it.", version, b"\1\0" + aborted(*one)[2:]),
        ("second-version-512", "The version of the second entry is unknown.", version, aborted(*one) + b"\2\0" + aborted(*two)[2:]),
        ("version-1", "The version of the entry is unknown, but brokers accept it, because they read only one byte of it.",
         should("SEG-TXN-002", flags=("LOOSE_VERSION",)), b"\0\1" + aborted(*one)[2:]),
    ):  # fmt: skip
        files.bad(name, why, terms, data)


def families() -> list[Family]:
    """All of this module."""
    return [small_files()]
