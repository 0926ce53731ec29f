"""Ask Kafka's own classes the cases of the conformance suite, and keep what they said beside the cases.

``python -m authoring.ask_kafka`` writes ``conformance/authoring/asked.json``; `make_cases` puts it into the ``source`` of each case
that has not changed since. Needs Java 17 and Maven.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "conformance"))

from seglog_conformance.cases import Case, load_cases  # noqa: E402
from seglog_conformance.compare import compare  # noqa: E402
from seglog_conformance.features import EVERYTHING, missing_feature  # noqa: E402
from seglog_conformance.toolchains import complaints  # noqa: E402
from seglog_conformance.verdicts import Verdict  # noqa: E402

from authoring.asked import ASKED, Asked, digest, document  # noqa: E402
from proofs.kafka.oracle import TOOL_CHAIN, Oracle  # noqa: E402 - the path is set first

RELEASE: Final = "4.1"
FEATURES: Final = {
    **EVERYTHING,
    "recordFields": [name for name in EVERYTHING["recordFields"] if name not in {"innerMagic", "crc"}],
}
"""The classes do not hand out the magic and the checksum of a message inside a wrapper."""


def asked(oracle: Oracle, case: Case) -> str:
    """Return what Kafka made of a case, in a word or two."""
    answer = {"seq": 0, **ask(oracle, case)}
    if case.result == "undefined":
        return "survives" if "ok" in answer else "fails"
    judgement = compare(case, answer, FEATURES)
    if judgement.verdict is Verdict.PASS:
        return f"agrees ({judgement.branch})" if judgement.branch else "agrees"
    print(f"{case.id}: {judgement.verdict.value}: {judgement.detail}")
    return f"departs: {judgement.verdict.value}"


def ask(oracle: Oracle, case: Case) -> dict[str, Any]:
    """Return the answer of the classes, as an adapter would give it."""
    return oracle.ask("decode", data=case.request["data"])


def storage_classes() -> tuple[str, dict[str, str]]:
    """Return what the storage classes of a broker made of the cases that are not about batches alone."""
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.jsonl"
        command = [
            sys.executable,
            "-m",
            "seglog_format.cli",
            "conform",
            "run",
            "--testee",
            "kafka-storage",
            "--no-smoke",
        ]
        subprocess.run([*command, "--known", scratch, "--jsonl", str(results)], stdout=subprocess.DEVNULL, check=False)
        lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    found = [line for line in lines if line["type"] == "result" and line["verdict"] != "SKIP"]
    texts = {line["case"]: "agrees" if line["verdict"] == "PASS" else f"departs: {line['verdict']}" for line in found}
    return f"kafka-storage {found[0]['version']}", texts


def main() -> int:
    """Ask everything, and write down the answers."""
    if unusable := complaints(TOOL_CHAIN):
        print(f"Kafka needs {'; '.join(unusable)}")
        return 1
    stored = {case["id"]: case for path in sorted((REPOSITORY / "conformance" / "cases").glob("*.json"))
              for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}  # fmt: skip
    answers: Asked = {}
    with Oracle(RELEASE) as oracle:
        for case in load_cases(REPOSITORY / "conformance" / "cases"):
            if case.op == "decode" and missing_feature(case.needs, FEATURES) is None:
                answers[case.id] = [digest(stored[case.id]), asked(oracle, case)]
        name = f"kafka-clients {oracle.version}"
    storage, texts = storage_classes()
    others = {case: [digest(stored[case]), text] for case, text in texts.items() if stored[case]["op"] != "decode"}
    ASKED.write_text(document({name: answers, storage: others}), encoding="utf-8")
    for asked_class, said in ((name, answers), (storage, others)):
        print(
            f"{asked_class}: {len(said)} cases asked, {sum('departs' in text for _, text in said.values())} departures"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
