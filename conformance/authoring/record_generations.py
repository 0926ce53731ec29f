"""Ask brokers of older releases the cases that are younger than they are, or about what brokers did otherwise.

``python -m authoring.record_generations`` writes ``conformance/authoring/recorded_generations.json``, which `make_cases`
puts into the cases: what Kafka's storage classes of a release left, where that is not what newer ones leave, and which
cases they pass although a requirement is younger. Needs Java 17 and Maven.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "conformance"))

from seglog_conformance.cases import Case, load_cases  # noqa: E402 - the path is set first
from seglog_conformance.judging import Examiner  # noqa: E402
from seglog_conformance.registry import Builder, listed  # noqa: E402
from seglog_conformance.releases import release_key  # noqa: E402
from seglog_conformance.verdicts import Verdict  # noqa: E402

from authoring.asked import digest  # noqa: E402
from authoring.every import all_families  # noqa: E402
from authoring.generations import KEPT, RELEASES  # noqa: E402
from authoring.record_scenarios import EXPECTED  # noqa: E402

if TYPE_CHECKING:
    from seglog_conformance.verdicts import Result

Json = dict[str, Any]

NEWEST: Final = "99"
"""Above all releases: the cases are judged as by today's brokers."""


def expected(case: Case, answer: Json) -> Json:
    """Return what a case expects of the generation that gave an answer."""
    if not answer["ok"]:
        return {"reject": {"class": answer["reject"]["class"]}}
    if case.op == "parse":
        return {"object": answer["object"]}
    return EXPECTED[case.op](case.request, answer)


def recorded(release: str, cases: dict[str, Case], stored: dict[str, Json]) -> Json:
    """Return which of the younger cases a release passes, and what it does otherwise in the others."""
    passes, differs = {}, {}
    testee = Builder().testee(listed(f"kafka-storage@{release}"))
    with closing(Examiner(testee, extra_growth=512 << 20, implements=NEWEST)) as examiner:
        examiner.start()
        for name, case in cases.items():
            is_younger = release_key(stored[name]["since"]) > release_key(release)
            if not is_younger and (case.op not in {*EXPECTED, "parse"} or case.level != "must"):
                continue
            result: Result = examiner.examine(case)
            if is_younger and result.raw is Verdict.PASS:
                passes[name] = digest(stored[name])
            elif not is_younger and result.raw in {Verdict.DIFFER, Verdict.REJECTS_VALID} and result.answer:
                differs[name] = {"digest": digest(stored[name]), "expect": expected(case, result.answer)}
    print(f"kafka-storage {release}: {len(passes)} younger cases pass, {len(differs)} cases differ")
    return {"passes": passes, "differs": differs}


def main() -> int:
    """Ask, and write down."""
    stored = {case["id"]: case for family in all_families() for case in family.document()["cases"]}
    cases = {case.id: case for case in load_cases() if case.id in stored}
    found = {release: recorded(release, cases, stored) for release in RELEASES}
    KEPT.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{KEPT.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
