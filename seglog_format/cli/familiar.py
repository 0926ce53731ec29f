"""Words that users of other tools type, and the command or option here that does the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

WORDS: Final[Mapping[str, str]] = {
    "cat less more head print show view read consume dump-log kafka-dump-log kafka-dump-log.sh kcat": "dump PATH",
    "tail": "dump PATH --from OFFSET",
    "grep search rg": "find PATTERN PATH",
    "list ll dir stat info du kafka-get-offsets kafka-log-dirs": "ls --long PATH",
    "fsck check validate test lint scan": "verify PATH",
    "repair fix rescue heal copy cp": "salvage PATH -o NEW",
    "xxd hexdump od hd": "inspect FILE",
    "seek offset offsets offsetsForTimes": "lookup PATH",
    "cmp compare": "diff FIRST SECOND",
    "reindex rebuild": "index PATH",
    "groups lag topics describe kafka-consumer-groups kafka-topics kafka-metadata-shell": "cluster PATH",
    "hanging txns kafka-transactions": "transactions PATH",
    "parquet csv arrow": "export PATH --to TABLE",
    "why rule rules": "explain ID",
    "man usage": "help COMMAND",
}
"""The arguments of a command here by the words for it; none of them deletes or changes anything that is there."""

DUMP_LOG_OPTIONS: Final[Mapping[str, str]] = {
    "--files": "leave it out: the path is the argument, and a directory stands for all its files",
    "--print-data-log": "leave it out: records are printed unless --no-records is there",
    "--deep-iteration": "leave it out: compressed batches are always read",
    "--skip-record-metadata": "take --json and select fields, such as jq '{offset, key, value}'",
    "--offsets-decoder": "--decode, or --decode-as __consumer_offsets",
    "--transaction-log-decoder": "--decode, or --decode-as __transaction_state",
    "--cluster-metadata-decoder": "--decode, or --decode-as __cluster_metadata",
    "--remote-log-metadata-decoder": "--decode, or --decode-as __remote_log_metadata",
    "--share-group-state-decoder": "--decode, or --decode-as __share_group_state",
    "--key-decoder-class": "seglog export --record-key, which knows Avro, JSON and Protobuf",
    "--value-decoder-class": "seglog export --value, which knows Avro, JSON and Protobuf",
    "--index-sanity-check": "seglog verify, which also compares each entry with the log",
    "--verify-index-only": "seglog verify, which also compares each entry with the log",
    "--max-message-size": "--limit, which is about a batch once it is decompressed",
    "--max-bytes": "--to OFFSET",
    "--version": "seglog --version",
    "--help": "seglog help dump",
}
"""What does here what each option of `kafka-dump-log` does; a test compares the names with Kafka's own tool."""


def suggestion_for(word: str) -> str | None:
    """Return the arguments of the command that does what a word means in other tools; None if none is known."""
    return next((line for words, line in WORDS.items() if word in words.split()), None)
