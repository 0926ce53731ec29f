"""The jars of a release, fetched by Maven: a broker and its dependencies."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY: Final = Path(__file__).resolve().parents[2]
WORK: Final = REPOSITORY / "build" / "kafka-next"
BROKER: Final = "kafka_2.13"
PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
POM: Final = """\
<project><modelVersion>4.0.0</modelVersion><groupId>seglog</groupId><artifactId>kafka-next</artifactId>
<version>1</version><packaging>pom</packaging><dependencies><dependency><groupId>org.apache.kafka</groupId>
<artifactId>{broker}</artifactId><version>{release}</version></dependency></dependencies></project>
"""
FOREIGN: Final = ("META-INF/", "org/apache/kafka/shaded/")
"""Directories of a jar for files that are not Kafka's own."""

ANSI: Final = re.compile(r"\x1b\[\d*m")
"""Colours of Maven's text."""


class JarsError(Exception):
    """The jars of a release cannot be fetched."""


def fetch(release: str, artifact: str = BROKER) -> Path:
    """Copy the jars of a broker or of another artifact with Maven, unless they are there.

    Args:
        release: such as ``4.4.0``.
        artifact: its name.

    Returns:
        The directory with the jars.

    Raises:
        JarsError: there is no such release, or Maven cannot reach it.
    """
    home = WORK / (release if artifact == BROKER else f"{artifact}-{release}")
    done = home / "complete"
    if not done.is_file():
        home.mkdir(parents=True, exist_ok=True)
        (home / "pom.xml").write_text(POM.format(broker=artifact, release=release), encoding="utf-8")
        command = ["mvn", "-q", "-B", PLUGIN, f"-DoutputDirectory={home / 'jars'}", "-DincludeScope=runtime"]
        run = child_processes.run(command, directory=home, check=False, capture_output=True, text=True)
        if run.returncode:
            said = ANSI.sub("", run.stdout).strip().partition("\n")[0]
            msg = f"Maven cannot fetch Kafka {release}: {said}"
            raise JarsError(msg)
        done.touch()
    return home / "jars"


def own(jars: Path, release: str) -> list[Path]:
    """Return Kafka's own jars: those with its version."""
    return sorted(jars.glob(f"kafka*-{release}.jar"))


def entries(jar: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of Kafka's own files in a jar."""
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(suffix) and not name.startswith(FOREIGN):
                yield name, archive.read(name)


def class_names(jars: Path, release: str) -> dict[str, str]:
    """Return every class of Kafka, with dots, and the artifact of its jar."""
    found = {}
    for jar in own(jars, release):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".class") and not name.startswith(FOREIGN) and "-info" not in name:
                    artifact = jar.name.removesuffix(f"-{release}.jar")
                    found[name.removesuffix(".class").replace("/", ".")] = artifact
    return found
