"""What `make kafka-next` finds between two releases, and that its report on 4.4.0 names all that is known to differ."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import FIXTURES, REPOSITORY, need
from helpers.walking import each_of
from seglog_conformance.cases import load_cases
from seglog_conformance.direct import DirectTestee
from seglog_conformance.judging import Examiner
from seglog_conformance.reference import Reference

from tools import witnesses
from tools.kafka_next import __main__ as command
from tools.kafka_next import (
    answers,
    asked_again,
    classes,
    definitions,
    disassembly,
    features,
    introspection,
    jars,
    required,
    text,
)
from tools.kafka_next.compare import compared, compared_trees

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]
REPORT: Json = json.loads((REPOSITORY / "reports" / "kafka-4.4.0.json").read_text(encoding="utf-8"))
LOG = "org.apache.kafka.storage.internals.log"
RECORD = "org.apache.kafka.common.record.internal"
UTILS = "org.apache.kafka.common.utils"
READ_LIMITED = "(InputStream, long, long, int, Long, int) throws IOException"
RECORDS = "CloseableIterator<Record>"
FOUND = "FileRecords$TimestampAndOffset"


# Messages


def definition(fields: list[Json], **head: str) -> Json:
    return {"name": "ThingRecord", "type": "metadata", "validVersions": "0", "fields": fields, **head}


def test_definitions_are_flat_facts_without_texts() -> None:
    found = definitions.flat(
        definition(
            [
                {"name": "Id", "type": "int32", "versions": "0+", "about": "a text", "default": -1},
                {"name": "Parts", "type": "[]Part", "versions": "1+", "tag": 3, "taggedVersions": "1+"},
            ],
            commonStructs=[{"name": "Part", "fields": [{"name": "Size", "type": "int8", "versions": "1+"}]}],  # type: ignore[arg-type]
        )
    )
    assert found == {
        "": {"type": "metadata", "validVersions": "0"},
        "id": {"type": "int32", "versions": "0+", "default": "-1"},
        "parts": {"type": "[]Part", "versions": "1+", "tag": "3", "taggedVersions": "1+"},
        "parts.size": {"type": "int8", "versions": "1+"},
    }


def test_definitions_in_jars_are_told_apart_by_where_they_go(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kafka-clients-9.9.9.jar", "w") as jar:
        jar.writestr("common/message/Thing.json", "// a license\n" + json.dumps(definition([])))
        jar.writestr("common/message/Ask.json", json.dumps({"name": "Ask", "type": "request", "fields": []}))
        jar.writestr("org/apache/kafka/shaded/message/Other.json", json.dumps(definition([], name="Other")))
    with zipfile.ZipFile(tmp_path / "other-1.0.jar", "w") as jar:
        jar.writestr("common/message/More.json", json.dumps(definition([], name="More")))
    stored, sent = definitions.read(tmp_path, "9.9.9")
    assert (list(stored), list(sent)) == (["ThingRecord"], ["Ask"])


def test_what_is_new_gone_and_changed() -> None:
    old, new = {"a": {"x": "1"}, "b": {"x": "1", "y": "2"}}, {"b": {"x": "1", "y": "3", "z": "4"}, "c": {}}
    assert compared(old, new) == {
        "new": {"c": {}},
        "gone": {"a": {"x": "1"}},
        "changed": {"b": {"y": ["2", "3"], "z": [None, "4"]}},
    }
    assert compared(old, old) == {}
    assert compared_trees({"t": old}, {"t": new, "u": {}}) == {"new": {"u": {}}, "changed": {"t": compared(old, new)}}


# Classes

HEAD = 'Compiled from "Thing.java"\npublic class org.apache.kafka.storage.Thing {\n'
FIRST = """\
  public static final int LIMIT = 5;

  private final int size;

  public int size(int) throws java.io.IOException;
    Code:
       0: ldc           #1                  // String short
       2: iload_1
       3: ifeq          8
       6: iconst_1
       7: ireturn
       8: invokedynamic #7,  0              // InvokeDynamic #0:run:()Ljava/lang/Runnable;
      13: areturn
    Exception table:
       from    to  target type
           0     3     8   Class java/io/IOException

  private static void lambda$size$0();
    Code:
       0: return

  static {};
    Code:
       0: return
}
"""
SAME_CODE = (
    FIRST.replace("ldc           #1 ", "ldc_w         #900")
    .replace("       2: iload_1", "       3: iload_1")
    .replace("       3: ifeq          8", "       4: ifeq          9")
    .replace("       6: iconst_1", "       7: iconst_1")
    .replace("       7: ireturn", "       8: ireturn")
    .replace(
        "       8: invokedynamic #7,  0              // InvokeDynamic #0",
        "       9: invokedynamic #70,  0 // InvokeDynamic #3",
    )
    .replace("      13: areturn", "      14: areturn")
    .replace("           0     3     8   Class", "           0     4     9   Class")
    .replace("lambda$size$0", "lambda$size$12")
)


def parsed(body: str) -> disassembly.Class:
    return disassembly.parse((HEAD + body).splitlines())["org.apache.kafka.storage.Thing"]


def test_members_are_what_somebody_wrote() -> None:
    assert parsed(FIRST).members == {
        "public static final int LIMIT = 5",
        "private final int size",
        "public int size(int) throws java.io.IOException",
        "static {}",
    }
    assert {name: len(digests) for name, digests in parsed(FIRST).code.items()} == {"size": 2, "initializer": 1}


def test_of_a_text_in_a_constant_only_a_digest_is_kept() -> None:
    declared = "  public static final java.lang.String {} = {};\n}}\n"
    key = parsed(declared.format("KEY", '"segment.bytes"')).members
    assert key == {'public static final java.lang.String KEY = "segment.bytes"'}
    (first,) = parsed(declared.format("DOC", '"The size, in \\"bytes\\", of a file"')).members
    (second,) = parsed(declared.format("DOC", '"The size of a file"')).members
    assert (first.partition(" = ")[0], first != second) == ("public static final java.lang.String DOC", True)
    assert not {"size", "file"} & {*first.split(), *second.split()}
    assert '_DOC = \\"' not in json.dumps(REPORT)


def test_places_and_numbers_of_a_compiler_are_no_change() -> None:
    assert SAME_CODE != FIRST
    assert parsed(SAME_CODE).code == parsed(FIRST).code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// String short", "// String long"),
        ("iconst_1", "iconst_2"),
        ("ifeq          8", "ifeq          6"),
        ("     8   Class java/io/IOException", "     6   Class java/io/IOException"),
        ("lambda$size$0();\n    Code:\n       0: return", "lambda$size$0();\n    Code:\n       0: nop"),
    ],
)
def test_another_instruction_is_a_change_of_its_method(old: str, new: str) -> None:
    assert old in FIRST
    assert classes.code({"T": parsed(FIRST)}, {"T": parsed(FIRST.replace(old, new))}) == {"T": ["size"]}


SWITCH = """\
  int chosen(int);
    Code:
       0: iload_1
       1: tableswitch   { // 1 to 2
                     1: 24
                     2: 26
               default: 26
          }
      24: iconst_1
      25: ireturn
      26: iconst_2
      27: ireturn
}
"""


def test_branches_of_a_switch_are_code() -> None:
    aligned = SWITCH.replace("24", "34").replace("26", "36").replace("25:", "35:").replace("27:", "37:")
    assert parsed(aligned).code == parsed(SWITCH).code
    assert parsed(SWITCH.replace("1: 24", "1: 26")).code != parsed(SWITCH).code


def test_a_header_that_changed_is_a_change_of_signatures() -> None:
    other = disassembly.parse((HEAD.replace("Thing {", "Thing implements a.B {") + FIRST).splitlines())
    found = classes.signatures({"org.apache.kafka.storage.Thing": parsed(FIRST)}, other)
    assert found["org.apache.kafka.storage.Thing"]["header"] == [
        "public class Thing",
        "public class Thing implements B",
    ]


def test_a_header_tells_the_name_behind_parameters_of_types() -> None:
    header = "public abstract class a.B<T extends java.util.Map<K, java.util.List<V>>> extends a.C<T>"
    assert disassembly.name_of(header) == "a.B"


def test_moved_classes_are_found_and_renamed_in_text_and_code() -> None:
    old = {
        f"{UTILS}.Crc": "clients",
        f"{UTILS}.Both": "clients",
        f"{UTILS}.Crc$1": "clients",
        f"{UTILS}.Gone": "clients",
    }
    new = {
        f"{UTILS}.internals.Crc": "clients",
        "kafka.a.Both": "x",
        "kafka.b.Both": "x",
        f"{UTILS}.internals.Crc$1": "clients",
    }
    moved = classes.moves(old, new)
    assert moved == {f"{UTILS}.Crc": f"{UTILS}.internals.Crc"}
    rename = classes.renaming(moved)
    for line in ("(I{}Crc;J)V", "{}Crc.update:(J)V", "class {}Crc$Inner x", "{}Crcs {}Crc"):
        for spelled in (UTILS, UTILS.replace(".", "/")):
            there = f"{UTILS}.internals".replace(".", "/" if "/" in spelled else ".")
            mark = spelled[3]
            expected = line.replace("{}Crcs", f"{spelled}{mark}Crcs").replace("{}Crc", f"{there}{mark}Crc")
            assert rename(line.replace("{}", f"{spelled}{mark}")) == expected
    assert classes.names({"a.A": "x", "a.B": "x"}, {"a.A": "y", "a.B": "x"}, {}) == {"jar": {"a.A": ["x", "y"]}}
    reported = classes.names(old, new, moved)
    assert reported == {
        "new": ["kafka.a.Both", "kafka.b.Both"],
        "gone": [f"{UTILS}.Both", f"{UTILS}.Gone"],
        "moved": moved,
    }


SOURCES = {
    "1.0.0": "int read(int a) { return a + 1; } void same() { } public static final int LIMIT = 5;"
    " Object kept = new Object() { public int inside() { return 1; } public int alike() { return 1; } };",
    "2.0.0": "int read(int a) { return a + 2; } void same() { } public static final int LIMIT = 6;"
    " Object kept = new Object() { public int inside() { return 2; } public int alike() { return 1; } };"
    " int read(int a, int b) { return 0; } Runnable more() { return new Runnable() { public void run() { } }; }",
}


def compiled(tmp_path: Path, release: str) -> tuple[Path, str]:
    """Return a jar of a release with one class."""
    source = tmp_path / release / "Thing.java"
    source.parent.mkdir()
    source.write_text(f"package org.apache.kafka.storage; class Thing {{ {SOURCES[release]} }}", encoding="utf-8")
    command = ["javac", "-d", str(source.parent / "out"), str(source)]
    subprocess.run(command, check=True)
    archive = shutil.make_archive(str(source.parent / "kafka-storage"), "zip", source.parent / "out")
    (source.parent / f"kafka-storage-{release}.jar").write_bytes((source.parent / archive).read_bytes())
    return source.parent, release


def test_what_differs_in_jars_is_found_without_being_told(tmp_path: Path) -> None:
    need("compiled classes", ["javac", "javap"])
    found = classes.compare_classes(compiled(tmp_path, "1.0.0"), compiled(tmp_path, "2.0.0"))
    name = "org.apache.kafka.storage.Thing"
    assert found == {
        "signatures": {
            name: {
                "new": [
                    "int read(int, int)",
                    "java.lang.Runnable more()".removeprefix("java.lang."),
                    "public static final int LIMIT = 6",
                ],
                "gone": ["public static final int LIMIT = 5"],
            }
        },
        "code": {name: ["inside", "read"]},
    }


# Settings, features, answers


def test_lines_about_settings_and_features() -> None:
    lines = [
        "setting\ta.Config\tmax.bytes\tINT\t5\t[1,...]",
        "setting\ta.Config$\tmax.bytes\tINT\t5\t[1,...]",
        "level\tx.version\tX_0\t0",
        "level\tx.version\tX_1\t1",
        "level\ty.version\tY_0\t0",
        "production\tx.version\t0",
    ]
    settings, features = introspection.read(lines)
    assert settings == {"max.bytes": {"a.Config": {"type": "INT", "default": "5", "allowed": "[1,...]"}}}
    assert features == {"x.version": {"X_0": "0, in production", "X_1": "1, in development"}, "y.version": {"Y_0": "0"}}


class Liar(Reference):
    """Answers one case otherwise."""

    def answer(self, request: Json) -> Json:
        """Answer a request."""
        found = super().answer(request)
        if request["op"] == "decode" and found.get("batches"):
            found["batches"][0]["position"] += 1
        return found


def test_answers_are_compared_but_for_words() -> None:
    cases = [case for case in load_cases() if case.family_name == "plain-batches"][:4]
    reported = [
        answers.answers(Examiner(DirectTestee("x", each)), cases) for each in (Reference(), Reference(), Liar())
    ]
    assert answers.differences(reported[0], reported[1]) == {"asked": 4, "differ": {}}
    lie = {"verdicts": ["PASS", "DIFFER"], "at": ["batches[0].position"]}
    assert answers.differences(reported[0], reported[2])["differ"] == {case.id: lie for case in cases}
    same = {case: ("PASS", {}) for case in reported[0]}
    assert answers.differences(reported[0], same)["differ"].keys() == reported[0].keys()
    assert answers.plain({"reject": {"message": "no", "error": "E"}, "seq": 4, "a": [{"message": 1}]}) == {
        "reject": {"error": "E"},
        "a": [{}],
    }
    assert answers.differences({"a": ("PASS", {})}, {"b": ("PASS", {})}) == {
        "asked": 0,
        "differ": {},
        "onlyBase": ["a"],
        "onlyRelease": ["b"],
    }


# The command


def test_the_base_is_the_last_known_release_before() -> None:
    known = ("4.3.0", "4.10.0", "4.4.0")
    assert [command.base_of(release, known) for release in ("4.4.0", "4.4.1", "5.0.0")] == ["4.3.0", "4.4.0", "4.10.0"]
    with pytest.raises(ValueError, match="--base"):
        command.base_of("4.3.0", known)


@pytest.mark.parametrize("release", ["4.4", "../4.4.0", "latest"])
def test_other_words_are_no_release(release: str) -> None:
    with pytest.raises(SystemExit):
        command.main([release])


def test_a_release_that_there_is_not_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jars, "WORK", tmp_path)
    monkeypatch.setattr(jars, "PLUGIN", "--no-such-option")
    need("Kafka's jars", ["mvn"])
    with pytest.raises(jars.JarsError, match=r"^Maven cannot fetch Kafka 0\.0\.1: \S[^\n]*$"):
        jars.fetch("0.0.1")
    assert not (tmp_path / "0.0.1" / "complete").exists()


# The report on 4.4.0: everything that is known to differ was found


@pytest.mark.parametrize(
    ("field", "tag"), [("storedDescriptionTopologyEpoch", "2"), ("failedDescriptionTopologyEpoch", "3")]
)
def test_the_report_names_new_fields(field: str, tag: str) -> None:
    found = REPORT["stored"]["changed"]["StreamsGroupMetadataValue"]["new"][field]
    assert (found["type"], found["tag"], found["default"]) == ("int32", tag, "-1")


def test_the_report_names_new_kinds_and_no_other_change_of_stored_messages() -> None:
    stored = REPORT["stored"]
    assert stored["new"].keys() == {"UnregisterControllerRecord", "AbortedTxn"}
    assert stored["new"]["UnregisterControllerRecord"][""]["apiKey"] == "29"
    assert (stored.keys(), stored["changed"].keys()) == ({"new", "changed"}, {"StreamsGroupMetadataValue"})
    assert [facts["type"] for path, facts in stored["new"]["AbortedTxn"].items() if path] == ["int64"] * 4


def test_the_report_names_feature_levels() -> None:
    found = REPORT["features"]["changed"]
    assert {level: found["metadata.version"][level][1] for level in ("IBP_4_4_IV0", "IBP_4_4_IV1", "IBP_4_4_IV2")} == {
        "IBP_4_4_IV0": "31, in production",
        "IBP_4_4_IV1": "32, in production",
        "IBP_4_4_IV2": "33, in production",
    }
    assert found["share.version"] == {"SV_2": [None, "2, in production"]}
    assert found.keys() == {"metadata.version", "share.version"}


def test_every_level_in_production_has_a_row_in_appendix_b() -> None:
    witness = json.loads((FIXTURES / "witnesses" / "feature_levels.json").read_text(encoding="utf-8"))
    for levels in witness["levels"].values():
        assert features.undescribed({"new": levels}) == []
    assert features.undescribed(REPORT["features"]) == []
    known = {name for name in witness["levels"]["4.4.0"] if not name.startswith(features.FOR_TESTS)}
    assert {name for name, _ in features.described()} == known


def test_the_page_names_a_level_that_appendix_b_does_not_describe() -> None:
    changed = {"transaction.version": {"TV_3": [None, "3, in production"], "TV_4": [None, "4, in development"]}}
    report = REPORT | {"features": {"new": {"x.version": {"X_0": "0", "X_1": "1"}}, "changed": changed}}
    assert [line for line in text.page(report) if "appendix B" in line] == [
        "- **`transaction.version` 3 has no row in appendix B: find out what it changes on disk**",
        "- **`x.version` 1 has no row in appendix B: find out what it changes on disk**",
    ]


@pytest.mark.parametrize(
    ("name", "type_", "default"),
    [
        ("max.decompressed.message.bytes", "INT", "2147483639"),
        ("remote.copy.lag.ms", "LONG", "0"),
        ("remote.copy.lag.bytes", "LONG", "-1"),
        ("errors.deadletterqueue.group.enable", "BOOLEAN", "false"),
        ("errors.deadletterqueue.topic.name.prefix", "STRING", "dlq."),
        ("errors.deadletterqueue.topic.name", "STRING", ""),
        ("errors.deadletterqueue.copy.record.enable", "BOOLEAN", "false"),
        ("streams.assignor.name", "STRING", "null"),
        ("streams.rack.aware.assignment.tags", "LIST", "[]"),
    ],
)
def test_the_report_names_settings(name: str, type_: str, default: str) -> None:
    (facts,) = {tuple(facts.items()) for facts in REPORT["settings"]["new"][name].values()}
    assert dict(facts) | {"type": type_, "default": default} == dict(facts)


def test_the_report_names_classes_that_moved_and_went() -> None:
    found = REPORT["classes"]
    utils = {old.rpartition(".")[2] for old, new in found["moved"].items() if new.startswith(f"{UTILS}.internals.")}
    assert utils >= {"BufferSupplier", "CloseableIterator", "ByteUtils", "Crc32C", "LogContext", "Exit", "KafkaThread"}
    assert utils >= {"ByteBufferOutputStream"}
    assert len(utils) == 32
    assert found["moved"][f"{LOG}.AbortedTxn"] == "org.apache.kafka.common.message.AbortedTxn"
    assert "org.apache.kafka.metadata.bootstrap.BootstrapDirectory" in found["gone"]
    for name in ("properties.MetaProperties", "properties.MetaPropertiesEnsemble", "ConfigRepository"):
        assert found["jar"][f"org.apache.kafka.metadata.{name}"] == ["kafka-metadata", "kafka-server-common"]


@each_of(
    ("name", "kind", "declaration"),
    [
        (f"{RECORD}.Records", "new", "public static final int SOFT_MAX_ARRAY_LENGTH = 2147483639"),
        (f"{RECORD}.DefaultRecord", "new", f"public static DefaultRecord readFrom{READ_LIMITED}"),
        (f"{RECORD}.DefaultRecord", "new", f"public static PartialDefaultRecord readPartiallyFrom{READ_LIMITED}"),
        (f"{RECORD}.RecordBatch", "new", f"public abstract {RECORDS} streamingIterator(BufferSupplier, int)"),
        (f"{RECORD}.RecordBatch", "new", "public default Optional<Long> offsetOfMaxTimestamp(int)"),
        (f"{RECORD}.FileRecords", "new", f"public {FOUND} searchForTimestamp(long, int, long, int)"),
        (f"{RECORD}.FileRecords", "gone", "public void closeHandlers() throws IOException"),
        (f"{LOG}.LogValidator", "new", "private final int maxRecordBodySize"),
        (f"{LOG}.Cleaner", "new", "private void cleanInto("),
        (f"{LOG}.Cleaner", "new", "private boolean buildOffsetMapForSegment("),
        (f"{LOG}.UnifiedLog", "new", "public void prepareActiveSegmentForClose()"),
        (f"{LOG}.UnifiedLog", "new", "public void closeQuietly()"),
        (f"{LOG}.UnifiedLog", "gone", "public void closeHandlers()"),
        (f"{LOG}.AbstractIndex", "gone", "public void closeHandler()"),
        (f"{LOG}.AbstractIndex", "gone", "public void flush()"),
        (f"{LOG}.AbstractIndex", "new", "public void flush() throws IOException"),
        (f"{LOG}.LocalLog", "gone", "public static TopicPartition parseTopicPartitionName(File) throws IOException"),
        (f"{LOG}.LocalLog", "new", "public static TopicPartition parseTopicPartitionName(File)"),
        (f"{LOG}.LogManager", "new", "public void shutdown("),
        ("kafka.log.LogManager", "gone", "public OptionalLong readBrokerEpochFromCleanShutdownFiles()"),
        ("org.apache.kafka.common.message.AbortedTxn", "gone", "public short version()"),
        ("org.apache.kafka.metadata.storage.Formatter", "new", "public static void writeBoostrapSnapshot("),
        ("org.apache.kafka.metadata.storage.Formatter", "gone", "static void writeDynamicQuorumSnapshot("),
    ],
)  # fmt: skip
def test_the_report_names_signatures_and_constants(name: str, kind: str, declaration: str) -> None:
    declared = REPORT["classes"]["signatures"][name][kind]
    assert [
        each for each in declared if each == declaration or (declaration.endswith("(") and each.startswith(declaration))
    ]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (f"{LOG}.LogSegment", "close"),
        (f"{LOG}.UnifiedLog", "close"),
        (f"{LOG}.AbstractIndex", "flush"),
        (f"{LOG}.TransactionIndex", "append"),
        (f"{LOG}.Cleaner", "buildOffsetMap"),
        ("org.apache.kafka.metadata.storage.Formatter", "doFormat"),
    ],
)
def test_the_report_names_methods_whose_code_changed(name: str, method: str) -> None:
    assert method in REPORT["classes"]["code"][name]


def test_the_report_names_what_classes_answer_otherwise() -> None:
    found = REPORT["answers"]
    assert found["kafka-storage"]["differ"].keys() >= {
        "compaction-results/compact-life-36-0",
        "files/txnindex-version-1",
        "record-length/length-2147483647-compressed",
    }
    assert found["kafka-clients"]["differ"].keys() >= {"record-length/length-2147483647-compressed"}
    assert found["kafka-storage"]["asked"] > 1800


def test_places_in_answers() -> None:
    before, after = {"a": [1, {"b": 2}], "c": 3, "d": [1]}, {"a": [1, {"b": 4}], "e": 5, "d": [1, 2]}
    assert sorted(answers.differing_paths(before, after)) == ["a[1].b", "c", "d", "e"]


def test_the_page_has_all_of_the_report_but_long_lists() -> None:
    page = "\n".join(text.page(REPORT))
    for name in (*REPORT["settings"]["new"], *REPORT["classes"]["gone"], *REPORT["classes"]["code"]):
        assert f"`{name}`" in page
    assert "Nothing." not in page


def test_the_definitions_of_both_releases_give_the_report() -> None:
    base, release = REPORT["base"], REPORT["release"]
    homes = [jars.WORK / each / "jars" for each in (base, release)]
    if not all((home.parent / "complete").is_file() for home in homes):
        pytest.skip("the jars are not here; make kafka-next VERSION=4.4.0 fetches them")
    (stored, _), (new_stored, _) = (
        definitions.read(home, each) for home, each in zip(homes, (base, release), strict=True)
    )
    assert compared_trees(stored, new_stored) == REPORT["stored"]


# What this project has to change


def fact(**values: Any) -> Json:  # noqa: ANN401 - JSON
    named = {"fact": "F.", "owner": ["seglog_format.state.config:LogConfig"], "test": "tests/test_x.py::test_x"}
    return named | values


EMPTY: Json = {
    "base": "4.4.0",
    "release": "4.5.0",
    "stored": {},
    "features": {},
    "settings": {},
    "answers": {},
    "classes": {},
    "facts": [],
}
LOG_CONFIG = f"{LOG}.LogConfig"


@each_of(
    ("part", "content", "line"),
    [
        ("stored", {"new": {"NewRecord": {"": {"type": "metadata"}}}}, "metadata_log.py RULES for: NewRecord"),
        ("stored", {"changed": {"TopicRecord": {"new": {"owner": {}}}}}, "- changed: TopicRecord (owner)"),
        ("stored", {"gone": {"OldValue": {}}}, "add 4.5.0 to RELEASES in tools/message_definitions.py"),
        (
            "features",
            {"changed": {"share.version": {"SV_3": [None, "3, in production"]}}},
            "- share.version 3: a row in spec/B-version-history.md",
        ),
        (
            "features",
            {"changed": {"share.version": {"SV_3": [None, "3, in production"]}}},
            "a Release('4.5', ...) in seglog_format/cluster/image.py; changed here: share.version 3",
        ),
        ("settings", {"new": {"segment.colour": {LOG_CONFIG: {}}}}, "LogConfig, appendix B: segment.colour"),
        ("settings", {"gone": {"segment.ms": {LOG_CONFIG: {}}}}, "- gone, and in LogConfig: segment.ms"),
        ("settings", {"gone": {"x.y": {LOG_CONFIG: {}}}}, "DROPPED_SETTINGS: x.y"),
        (
            "settings",
            {"changed": {"segment.ms": {"changed": {LOG_CONFIG: {"default": ["1", "2"]}}}}},
            "- segment.ms: default 1, now 2: state/config.py",
        ),
        (
            "facts",
            [fact(differs={"Some.MASK": ["7", "15"]})],
            "- state.config:LogConfig (tests/test_x.py): MASK 7, now 15",
        ),
        ("facts", [fact(differs={"Some.MASK": ["7", None]})], "fixtures/make/constants.py: Some.MASK"),
        ("facts", [fact(notAsked="run fixtures/make/x.py for 4.5.0")], "- run: fixtures/make/x.py"),
        ("facts", [fact(notAsked="add a profile of 4.5.0")], "- add a profile of 4.5.0 (state.config:LogConfig)"),
        ("classes", {"moved": {f"{LOG}.UnifiedLog": "a.b.UnifiedLog"}}, "- now in a.b: UnifiedLog ("),
        ("classes", {"gone": [f"{LOG}.UnifiedLog"]}, "- gone, with the number of files: " + LOG + ".UnifiedLog ("),
        (
            "answers",
            {"kafka-storage": {"asked": 1, "differ": {"crc/wrong": {"verdicts": ["PASS", "DIFFER"], "at": []}}}},
            "(PASS to DIFFER by kafka-storage): crc/wrong",
        ),
        ("answers", {"kafka-storage": {"notAsked": "no Maven"}}, "- kafka-storage was not asked: no Maven"),
    ],
)
def test_a_change_names_what_has_to_change_here(part: str, content: Any, line: str) -> None:  # noqa: ANN401 - JSON
    found = required.page(EMPTY | {part: content})
    assert any(line in each for each in found), found


def test_a_release_without_changes_still_has_to_be_recorded() -> None:
    found = required.page(EMPTY | {"release": "4.4.1"})
    assert [line for line in found if line.startswith("- ")] == [
        "- add 4.4.1 to RELEASES in fixtures/make/constants.py and feature_levels.py, and to the adapters' versions"
    ]


def test_what_has_to_change_fits_on_a_screen() -> None:
    differing = {f"Some{number}.MASK": ["1", "2"] for number in range(200)}
    facts = [fact(differs=differing, owner=[f"seglog_format.m{number}"]) for number in range(200)]
    found = required.page(REPORT | {"facts": facts})
    assert len(found) <= required.MOST_LINES
    assert any("more in the report" in line for line in found)
    assert max(map(len, found)) <= required.WIDTH


def test_the_report_on_4_4_says_what_had_to_change() -> None:
    """Each of these was changed by hand when 4.4.0 came."""
    found = "\n".join(required.page(REPORT))
    for known in ("AbortedTxn", "UnregisterControllerRecord", "StreamsGroupMetadataValue", "remote.copy.lag.ms"):
        assert known in found
    assert "SEG-TXN" in found  # its classes refuse a transaction index of version 1
    assert "files/txnindex-version-1" in found


def test_every_way_to_ask_again_is_known() -> None:
    ways = {each.again for each in witnesses.read().facts if each.again}
    assert ways <= asked_again.WAYS.keys() | asked_again.COMPARED
    assert asked_again.WAYS.keys() <= ways


def test_a_difference_belongs_to_the_facts_whose_questions_it_answers() -> None:
    [checksum] = [each for each in witnesses.read().facts if "Crc32C." in each.keys]
    difference: dict[str, list[str | None]] = {"Crc32C.compute(hex:,0,0)": ["0", "1"], "Topic.LEGAL_CHARS": ["a", "b"]}
    assert asked_again.about(checksum, difference) == {"Crc32C.compute(hex:,0,0)": ["0", "1"]}


def test_a_release_without_a_profile_says_where_to_add_it() -> None:
    with pytest.raises(asked_again.NotAskedError, match=r"add a profile of 9\.9\.9 to tests/java-cluster/pom\.xml"):
        asked_again.profile_of("9.9.9")
