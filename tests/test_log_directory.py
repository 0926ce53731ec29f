"""Chapter 11: log directories, their root files, and the state of a quorum."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.broker_names import texts
from helpers.support import authentic, authentic_names, vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format import open_log_directory
from seglog_format.checks import verify
from seglog_format.codec.checkpoints import decode_clean_shutdown, decode_meta_properties, decode_quorum_state
from seglog_format.errors import FormatError, Location, UnsupportedVersionError, UsageError
from seglog_format.log.listing import list_log_directory
from seglog_format.log.path_kind import PathKind, path_kind
from seglog_format.model import CleanShutdown, MetaProperties, QuorumState
from seglog_format.names import FileKind
from seglog_format.schema.text import properties

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UUID = "5a1c3bb2d34e4b59a1a2a1d0c3b4e5f6"
AT = Location("some/file")


def ids(path: Path) -> list[str]:
    found = [finding.requirement for finding in verify(path)]
    return [requirement for requirement in found if requirement != "SEG-PDR-016"]


def refusal(decode: Callable[..., Any], data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        decode(data, AT)
    assert caught.value.location.path == AT.path
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    return caught.value


# Directories


@pytest.mark.req("SEG-LDR-001")
@pytest.mark.parametrize(
    "called", ["lost+found", "backup", "orders-old", "orders-0-delete", "a\nb", "\udc80"], ids=ascii
)
def test_directories_that_are_no_partitions(tmp_path: Path, called: str) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / called).mkdir()
    listing = list_log_directory(tmp_path)
    assert [entry.path.name for entry in listing.partitions] == ["orders-0"]
    (error,) = listing.misnamed
    assert error.requirements[0] == "SEG-LDR-001"
    assert str(error).isprintable()
    assert ids(tmp_path) == ["SEG-LDR-001"]


@pytest.mark.req("SEG-LDR-001")
def test_directories_that_may_be_there(tmp_path: Path) -> None:
    names = ["orders-0", "orders-10", "orders-9", "__cluster_metadata-0", f"orders-0.{UUID}-future"]
    for name in [*names, "remote-log-index-cache"]:
        (tmp_path / name).mkdir()
        if name.startswith("orders"):
            (tmp_path / name / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAQ")
    (tmp_path / "lost+found").write_bytes(b"a file of that name is nothing to a broker")
    listing = list_log_directory(tmp_path)
    order = ["__cluster_metadata-0", "orders-0", f"orders-0.{UUID}-future", "orders-9", "orders-10"]
    assert [entry.path.name for entry in listing.partitions] == order
    assert [path.name for path in listing.special] == ["remote-log-index-cache"]
    assert not listing.misnamed
    assert [path.name for path in listing.others] == ["lost+found"]
    assert ids(tmp_path) == []


@pytest.mark.req("SEG-LDR-002")
@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("orders-00", ["SEG-PDR-017", "SEG-LDR-002"]),
        ("orders-1", []),
        (f"orders-0.{UUID}-future", []),
        (f"orders-0.{UUID}-delete", []),
        (f"orders-0.{UUID}-stray", []),
    ],
)
def test_a_partition_stands_once(tmp_path: Path, second: str, expected: list[str]) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / second).mkdir()
    assert ids(tmp_path) == expected


@pytest.mark.req("SEG-LDR-002")
def test_several_log_directories(tmp_path: Path) -> None:
    for path in ("a/orders-0", "a/orders-1", "b/orders-1", f"b/orders-0.{UUID}-future"):
        (tmp_path / path).mkdir(parents=True)
    opened = open_log_directory([tmp_path / "a", tmp_path / "b"])
    assert list(opened.repeated) == [("orders", 1)]


@pytest.fixture
def two_directories(tmp_path: Path) -> Path:
    """Log directories a and b; a has the root files of a broker that was closed, and every state of a directory."""
    log = tmp_path / "a" / "orders-0" / "00000000000000000010.log"
    for path in (log.parent, *(tmp_path / name for name in (f"a/old-3.{UUID}-delete", "a/orders-1", "b/orders-1"))):
        path.mkdir(parents=True)
    log.write_bytes(vector("V-06"))
    for number, kind in enumerate(("recovery-point", "log-start", "replication", "cleaner")):
        (tmp_path / "a" / f"{kind}-offset-checkpoint").write_text(f"0\n1\norders 0 {10 + number}\n", encoding="ascii")
    (tmp_path / "a" / ".kafka_cleanshutdown").write_bytes(b"")
    return tmp_path


@pytest.mark.req("SEG-CKP-010", "SEG-CKP-011")
def test_what_the_root_files_say(two_directories: Path) -> None:
    directory = open_log_directory(two_directories / "a").directories[0]
    partition = ("orders", 0)
    assert (directory.recovery_points, directory.log_start_offsets) == ({partition: 10}, {partition: 11})
    assert (directory.high_watermarks, directory.cleaner_offsets) == ({partition: 12}, {partition: 13})
    assert [directory.recovery_point(key) for key in (partition, ("orders", 1))] == [10, 0]
    assert (directory.has_clean_shutdown, directory.is_locked) == (True, False)
    assert repr(directory) == f"LogDirectory({str(two_directories / 'a')!r})"


@pytest.mark.req("SEG-CKP-010")
def test_a_partition_of_several_log_directories(two_directories: Path) -> None:
    opened = open_log_directory([two_directories / "a", two_directories / "b"])
    assert sorted(opened.partitions) == [("orders", 0), ("orders", 1)]
    assert opened.partitions["orders", 1].path == two_directories / "a" / "orders-1"
    assert [entry.name.topic for entry in opened.renamed("delete")] == ["old"]
    with opened.open("orders", 0) as partition:
        assert (partition.log_start_offset, partition.log_end_offset) == (11, 13)
    with pytest.raises(UsageError, match=r"no partition orders-7 in .*a, .*b"):
        opened.open("orders", 7)
    other = open_log_directory(two_directories / "b").partitions["orders", 1]
    with pytest.raises(UsageError, match="in none of these"):
        open_log_directory(two_directories / "a").directory_of(other)


def test_links_between_directories(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (tmp_path / "secret-0").mkdir()
    (root / "orders-0").mkdir(parents=True)
    (root / "orders-1").symlink_to(tmp_path / "secret-0")
    (root / "orders-2").symlink_to(root / "orders-0")
    (root / "orders-3").symlink_to(root)
    (root / "meta.properties").symlink_to(tmp_path / "secret-0")
    listing = list_log_directory(root)
    assert [entry.path.name for entry in listing.partitions] == ["orders-0", "orders-1", "orders-2", "orders-3"]
    assert [entry.name for entry in listing.skipped] == ["meta.properties"]
    assert not listing.root_files


@pytest.mark.parametrize("path", ["nowhere", "file"])
def test_paths_that_are_no_directory(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError):
        list_log_directory(tmp_path / path)


def test_which_directories_are_log_directories(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(b"")
    (tmp_path / "inner").mkdir()
    assert path_kind(tmp_path) is PathKind.PARTITION
    (tmp_path / "meta.properties").write_bytes(b"")
    assert path_kind(tmp_path) is PathKind.PARTITION
    (tmp_path / "orders-0").mkdir()
    assert path_kind(tmp_path) is PathKind.LOG_DIRECTORY


# The clean-shutdown file


@pytest.mark.req("SEG-LDR-003")
@pytest.mark.parametrize("content", [b"", b'{"version":0,"brokerEpoch":18}', b"?", b"\xff", b'{"version":7}'])
def test_its_presence_counts(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "orders-0").mkdir()
    (before,) = open_log_directory(tmp_path).directories
    assert not before.has_clean_shutdown
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    (after,) = open_log_directory(tmp_path).directories
    assert after.has_clean_shutdown
    assert list_log_directory(tmp_path).has_clean_shutdown


@pytest.mark.req("SEG-LDR-003")
def test_other_names_do_not_count(tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown.tmp").write_bytes(b"")
    (tmp_path / ".kafka_cleanshutdown").mkdir()
    assert not list_log_directory(tmp_path).has_clean_shutdown


@pytest.mark.req("SEG-LDR-004")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", CleanShutdown(0, -1)),
        (b'{"version":0,"brokerEpoch":18}', CleanShutdown(0, 18)),
        (b' { "brokerEpoch" : -1 , "version" : 0, "more": [1] } \n', CleanShutdown(0, -1)),
        (b'{"version":0,"brokerEpoch":9223372036854775807}', CleanShutdown(0, 2**63 - 1)),
    ],
)
def test_clean_shutdown(data: bytes, expected: CleanShutdown) -> None:
    assert decode_clean_shutdown(data, AT) == expected


@pytest.mark.req("SEG-LDR-004")
@each_of(
    ("data", "field"),
    [
        (b"?", ""),
        (b"\n", ""),
        (b"[]", ""),
        (b"null", ""),
        (b"0", ""),
        (b'"version"', ""),
        (b"\xff", ""),
        (b'{"version":0,', ""),
        (b"[" * 100_000, ""),
        (b'{"version":' + b"9" * 10_000 + b"}", ""),
        (b"{}", "version"),
        (b'{"version":1,"brokerEpoch":18}', "version"),
        (b'{"version":false,"brokerEpoch":18}', "version"),
        (b'{"version":0.0,"brokerEpoch":18}', "version"),
        (b'{"version":[0],"brokerEpoch":18}', "version"),
        (b'{"version":"' + b"\\u001b" * 10_000 + b'","brokerEpoch":18}', "version"),
        (b'{"version":0}', "broker_epoch"),
        (b'{"version":0,"brokerEpoch":null}', "broker_epoch"),
        (b'{"version":0,"brokerEpoch":"18"}', "broker_epoch"),
        (b'{"version":0,"brokerEpoch":{"a":' + b"[" * 500 + b"]" * 500 + b"}}", "broker_epoch"),
        (b'{"version":0,"brokerEpoch":9223372036854775808}', "broker_epoch"),
        (b'{"version":0,"brokerEpoch":NaN}', "broker_epoch"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_clean_shutdown_refused(data: bytes, field: str) -> None:
    error = refusal(decode_clean_shutdown, data)
    assert (error.requirements, error.location.field) == (("SEG-LDR-004",), field)


@pytest.mark.req("SEG-LDR-004")
def test_a_validator_looks_into_it(tmp_path: Path) -> None:
    marker = tmp_path / ".kafka_cleanshutdown"
    marker.write_bytes(b"{}")
    (finding,) = verify(tmp_path)
    assert (finding.requirement, finding.severity.value) == ("SEG-LDR-004", "warning")


# meta.properties

PAIRS = [
    (b"", []),
    (b"a=b", [("a", "b")]),
    (b"a:b\nc d", [("a", "b"), ("c", "d")]),
    (b"a = b \n", [("a", "b ")]),
    (b"a\t:\tb", [("a", "b")]),
    (b"a = = b", [("a", "= b")]),
    (b"a b = c", [("a", "b = c")]),
    (b"a", [("a", "")]),
    (b"=b", [("", "b")]),
    (b"#a=b\n!c=d\n \t\f# e\n\n \n", []),
    (b"#a\\\nb=c", [("b", "c")]),
    (b"a=b\rc=d\r\ne=f", [("a", "b"), ("c", "d"), ("e", "f")]),
    (b"a=b\\\n   c", [("a", "bc")]),
    (b"a=b\\\r\n\t\fc\\\rd", [("a", "bcd")]),
    (b"a=b\\\n#c", [("a", "b#c")]),
    (b"a=b\\\n\nc=d", [("a", "b"), ("c", "d")]),
    (b"a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
    (b"a\\=b\\:c\\ d=e", [("a=b:c d", "e")]),
    (b"\\#a=\\!b", [("#a", "!b")]),
    (b"a=\\t\\n\\f\\r\\q\\\\", [("a", "\t\n\f\rq\\")]),
    (b"a=\\u00e9\\u00E9", [("a", "éé")]),
    (b"a=\\ud83d\\ude00", [("a", "\U0001f600")]),
    (b"a=\\ud83d", [("a", "\ufffd")]),
    (b"a=\xe9", [("a", "é")]),
    (b"a=\xc3\xa9", [("a", "\xc3\xa9")]),
    (b"a=b\\", [("a", "b")]),
    (b"\\", []),
    (b"\\\n", []),
    (b"\\\n  \\\r\n\ta=b", [("a", "b")]),
    (b"a=1\na=2", [("a", "1"), ("a", "2")]),
    (b"a=\\u12", None),
    (b"a\\u=b", None),
    (b"a=\\u00g0", None),
    (b"a=\\\\u12", [("a", "\\u12")]),
]


@pytest.mark.req("SEG-LDR-005")
@each_of(("data", "pairs"), PAIRS)
def test_properties(data: bytes, pairs: list[tuple[str, str]] | None) -> None:
    assert properties(data) == pairs


V1 = b"version=1\nnode.id=1\ncluster.id=c\n"


@pytest.mark.req("SEG-LDR-005")
@pytest.mark.parametrize(
    ("data", "version", "cluster_id", "node_id", "directory_id"),
    [
        (b"", 0, None, None, None),
        (b"#\n#Sat Nov 21\nbroker.id=0\nversion=0\n", 0, None, 0, None),
        (b"broker.id=7\ncluster.id=c", 0, "c", 7, None),
        (V1, 1, "c", 1, None),
        (V1 + b"directory.id=d\n", 1, "c", 1, "d"),
        (V1 + b"broker.id=9\nother=x", 1, "c", 1, None),
        (b"version=0\nnode.id=9", 0, None, None, None),
        (b"version=1\nversion=0\nbroker.id=+3", 0, None, 3, None),
    ],
)
def test_meta_properties(
    data: bytes, version: int, cluster_id: str | None, node_id: int | None, directory_id: str | None
) -> None:
    found = decode_meta_properties(data, AT)
    assert (found.version, found.cluster_id, found.node_id, found.directory_id) == (
        version,
        cluster_id,
        node_id,
        directory_id,
    )
    assert list(found.properties) == properties(data)


def test_long_values_stay_whole() -> None:
    found = decode_meta_properties(b"cluster.id=" + b"x" * 1000)
    assert found.cluster_id == "x" * 1000
    assert type(found.cluster_id) is str


@pytest.mark.req("SEG-LDR-005")
@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"version=x", "version"),
        (b"version=", "version"),
        (b"version=1 ", "version"),
        (b"version=2147483648", "version"),
        (b"version=" + b"\x1b" * 10_000, "version"),
        (b"broker.id=1e3", "broker_id"),
        (V1 + b"node.id=x", "node_id"),
        (b"version=1\nnode.id=1", "version"),
        (b"version=1\ncluster.id=c", "version"),
        (b"cluster.id=\\u12", "escape"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_meta_properties_refused(data: bytes, field: str) -> None:
    error = refusal(decode_meta_properties, data)
    assert (error.requirements, error.location.field) == (("SEG-LDR-005",), field)
    assert not isinstance(error, UnsupportedVersionError)


@pytest.mark.req("SEG-LDR-005")
@pytest.mark.parametrize("data", [b"version=2", b"version=-1"])
def test_other_versions_of_meta_properties(data: bytes) -> None:
    error = refusal(decode_meta_properties, data)
    assert isinstance(error, UnsupportedVersionError)
    assert error.requirements == ("SEG-LDR-005",)


# quorum-state

QUORUM = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
    b'"data_version":0}'
)


@pytest.mark.req("SEG-LDR-006")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (QUORUM, QuorumState(0, 1, 1, -1, (1,))),
        (
            b'{"leaderId":-1,"leaderEpoch":3,"votedId":2,"votedDirectoryId":"x","data_version":1}',
            QuorumState(1, -1, 3, 2, (), "x"),
        ),
        (b'{"data_version":1,"votedDirectoryId":7}', QuorumState(1, -1, -1, -1)),
        (b'{"data_version":0}', QuorumState(0, -1, -1, -1, ())),
        (b'{"data_version":0,"leaderId":"x","currentVoters":{},"votedId":1e3}', QuorumState(0, -1, -1, -1, ())),
        (b'{"data_version":0,"currentVoters":[{"voterId":3},{},4]}', QuorumState(0, -1, -1, -1, (3, -1))),
    ],
)
def test_quorum_state(data: bytes, expected: QuorumState) -> None:
    assert decode_quorum_state(data, AT) == expected


@pytest.mark.req("SEG-LDR-006")
@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"", ""),
        (b"[]", ""),
        (QUORUM[:-1], ""),
        (b"{}", "data_version"),
        (b'{"data_version":"0"}', "data_version"),
        (b'{"data_version":2}', "data_version"),
        (b'{"data_version":-1}', "data_version"),
    ],
)
def test_quorum_state_refused(data: bytes, field: str) -> None:
    error = refusal(decode_quorum_state, data)
    assert (error.requirements, error.location.field) == (("SEG-LDR-006",), field)


# Whatever the bytes

DECODERS = [decode_clean_shutdown, decode_meta_properties, decode_quorum_state]
SAMPLES = [b'{"version":0,"brokerEpoch":18}', V1 + b"directory.id=\\u00e9\\\n x\n", QUORUM]


@pytest.mark.parametrize(("decode", "sample"), list(zip(DECODERS, SAMPLES, strict=True)))
def test_every_change_of_a_byte(decode: Callable[..., Any], sample: bytes) -> None:
    for position in range(len(sample)):
        changed = [
            sample[:position] + bytes([byte]) + sample[position + 1 :] for byte in (0, 0x22, 0x5C, 0x7F, 0x80, 0xFF)
        ]
        for data in [sample[:position], *changed]:
            result_or_refusal(decode, data)


@pytest.mark.parametrize("decode", DECODERS)
@given(st.one_of(st.binary(), st.text(st.sampled_from('{}[]":,0\\u9\n=# ab')).map(str.encode)))
def test_any_bytes(decode: Callable[..., Any], data: bytes) -> None:
    result_or_refusal(decode, data)


def result_or_refusal(decode: Callable[..., Any], data: bytes) -> None:
    try:
        assert isinstance(decode(data), (CleanShutdown, MetaProperties, QuorumState))
    except FormatError as error:
        text = str(error)
    else:
        return
    assert text.isprintable()


# What brokers left


@pytest.mark.req("SEG-LDR-004", "SEG-LDR-005", "SEG-LDR-006")
def test_every_text_that_a_broker_left() -> None:
    for _, text in texts("meta.properties"):
        found = decode_meta_properties(text.encode())
        assert found.node_id in {0, 1}
        assert (found.cluster_id is not None) == ("cluster.id=" in text)
        assert (found.version, found.directory_id is not None) == (int("version=1" in text), "directory.id" in text)
    for _, text in texts(".kafka_cleanshutdown"):
        assert (decode_clean_shutdown(text.encode()).broker_epoch >= 0) == bool(text)
    quorums = {0: QuorumState(0, 1, 1, -1, (1,)), 1: QuorumState(1, 1, 1, -1, (), "AAAAAAAAAAAAAAAAAAAAAA")}
    for _, text in texts("quorum-state"):
        assert decode_quorum_state(text.encode()) == quorums[json.loads(text)["data_version"]]


@pytest.mark.req("SEG-LDR-003")
@each_of("case", [name for name in authentic_names() if name.endswith(("/root", "/crash-kill"))])
def test_root_files_of_brokers(case: str) -> None:
    path = authentic(case)
    roots = {path: True} if case.endswith("/root") else {path / "before": False, path / "after": True}
    for root, is_clean in roots.items():
        listing = list_log_directory(root)
        assert path_kind(root) is PathKind.LOG_DIRECTORY
        assert listing.has_clean_shutdown == is_clean
        assert not listing.others
        assert not listing.misnamed
        assert listing.root_files.keys() >= {FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.REPLICATION_OFFSET_CHECKPOINT}
