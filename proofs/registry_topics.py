"""Make a log directory with topics of stock serializers and `_schemas`, by a stock broker and a real registry.

Karapace, a registry that stores its schemas in the same form as Schema Registry, cannot be installed by pip. So this
program takes a directory with its sources, and a Python with their dependencies::

    python -m proofs.registry_topics --karapace DIR --python PYTHON --version 3.15.2 --to fixtures/registry

It writes ``files.tar.gz``, and ``registry.json`` with the registry's answers about its schemas.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Producer
from confluent_kafka.schema_registry import RegisteredSchema, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import ParseDict
from seglog_conformance.toolchains import child_processes

from proofs.kafka.broker import Broker
from proofs.kafka.node import HOST, free_ports
from proofs.serialized import PROTO_VALUES, PROTOS, TIMES, message_class, serializers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka.schema_registry import Schema

RELEASE: Final = "4.4"
"""Of the broker."""
START_SECONDS: Final = 120
MONEY: Final = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
PRICED: Final = 'syntax = "proto3"; package shop; import "money.proto"; message Priced { Money price = 1; }'
KEPT: Final = ("_schemas-0", "orders-avro-0", "orders-json-schema-0", "orders-protobuf-0", "priced-0")

Serialize = "Callable[[SerializationContext], bytes]"


class Registry:
    """The registry's HTTP interface."""

    def __init__(self, port: int) -> None:
        self.address = f"http://{HOST}:{port}"

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Return an answer; None for status 404."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self.address}{path}", method=method, data=data, headers=headers)  # noqa: S310 - our own
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 404:  # noqa: PLR2004 - of HTTP
                return None
            raise

    def register(self, subject: str, schema: object) -> None:
        """Register a version of an Avro schema."""
        self.ask("POST", f"/subjects/{subject}/versions", {"schema": json.dumps(schema)})


class ByText(SchemaRegistryClient):
    """A client that registers the text of a Protobuf schema, as this registry cannot convert every descriptor to text.

    Args:
        registry: the registry.
        text: text of the schema.
    """

    def __init__(self, registry: Registry, text: str) -> None:
        super().__init__({"url": registry.address})
        self._registry, self._text = registry, text

    def register_schema_full_response(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,  # noqa: FBT001, FBT002 - as the base class has it
    ) -> RegisteredSchema:
        """Register the text."""
        del normalize_schemas
        body = {"schemaType": "PROTOBUF", "schema": self._text}
        found = self._registry.ask("POST", f"/subjects/{subject_name}/versions", body)
        return RegisteredSchema(schema_id=found["id"], guid=None, subject=subject_name, version=None, schema=schema)


def main() -> None:
    """Run broker and registry, and store their files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--karapace", type=Path, required=True, help="directory with its package")
    parser.add_argument("--python", required=True, help="that runs it")
    parser.add_argument("--version", required=True, help="of Karapace, for the report")
    parser.add_argument("--to", type=Path, required=True, help="directory of the fixture")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="registry-topics-") as name:
        broker = Broker(RELEASE, Path(name))
        with broker.running(), _registry(options, broker, Path(name)) as registry:
            _fill(broker, registry)
            facts = {"karapace": options.version, "kafka": RELEASE, **_facts(registry)}
        (options.to / "registry.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        with tarfile.open(options.to / "files.tar.gz", "w:gz") as archive:
            for each in KEPT:
                archive.add(broker.logs / each, each)


@contextmanager
def _registry(options: argparse.Namespace, broker: Broker, home: Path) -> Iterator[Registry]:
    """Run the registry."""
    (port,) = free_ports(1)
    settings = {
        "bootstrap_uri": broker.address,
        "host": HOST,
        "port": port,
        "advertised_hostname": HOST,
        "karapace_registry": True,
        "karapace_rest": False,
        "topic_name": "_schemas",
        "replication_factor": 1,
        "compatibility": "NONE",
        "log_level": "WARNING",
        "protobuf_runtime_directory": str(options.karapace.absolute() / "runtime"),
    }
    (home / "karapace.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [options.python, "-m", "karapace.karapace_all", str(home / "karapace.json")]
    with (
        (home / "karapace.log").open("w") as log,
        child_processes.start(command, directory=options.karapace, stdout=log, stderr=log) as process,
    ):
        try:
            registry = Registry(port)
            _wait_for(registry)
            yield registry
        finally:
            process.terminate()


def _wait_for(registry: Registry) -> None:
    """Wait until the registry is elected, and so may write."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            registry.ask("PUT", "/config", {"compatibility": "NONE"})
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(1)
        else:
            return


def _fill(broker: Broker, registry: Registry) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5})
    client = SchemaRegistryClient({"url": registry.address})

    def send(topic: str, made: list[Callable[[SerializationContext], bytes]]) -> None:
        context = SerializationContext(topic, MessageField.VALUE)
        for number, value in enumerate(serialize(context) for _ in range(TIMES) for serialize in made):
            producer.produce(topic, value, f"key {number}".encode(), partition=0)

    for kind in ("avro", "json-schema"):
        send(f"orders-{kind}", list(serializers(kind, client)))
    clients = (client, client, ByText(registry, PROTOS[2]))
    send("orders-protobuf", [_protobuf(*each) for each in zip(PROTOS, PROTO_VALUES, clients, strict=True)])
    send("priced", [_protobuf(PRICED, {"price": {"cents": 250}}, client, {"money.proto": MONEY})])
    left = producer.flush(30)
    if left:
        msg = f"{left} records were not sent"
        raise RuntimeError(msg)
    _delete_some(registry)


def _protobuf(
    text: str, value: dict[str, Any], client: SchemaRegistryClient, imports: dict[str, str] | None = None
) -> Callable[[SerializationContext], bytes]:
    made = message_class(text, imports)
    serializer = ProtobufSerializer(made, client, {"use.deprecated.format": False})
    message = ParseDict(value, made())
    return lambda context: serializer(message, context)


def _delete_some(registry: Registry) -> None:
    """Write records of every kind of deletion, and of a subject's own configuration."""
    for subject, versions in {"gone": 3, "all-gone": 2, "no-more": 1}.items():
        for number in range(versions):
            fields = [{"name": f"f{each}", "type": "int"} for each in range(number + 1)]
            registry.register(subject, {"type": "record", "name": "Gone", "fields": fields})
    for path in ("gone/versions/3", "gone/versions/1", "gone/versions/1?permanent=true", "all-gone"):
        registry.ask("DELETE", f"/subjects/{path}")
    for path in ("no-more", "no-more?permanent=true"):
        registry.ask("DELETE", f"/subjects/{path}")
    registry.ask("PUT", "/config/gone", {"compatibility": "BACKWARD"})


def _facts(registry: Registry) -> dict[str, Any]:
    """Return the registry's answers: the newest schema of each subject, and the schema of each id."""
    subjects = sorted(registry.ask("GET", "/subjects"))
    ids: dict[str, Any] = {}
    for number in count(1):
        found = registry.ask("GET", f"/schemas/ids/{number}")
        if found is None:
            break
        ids[str(number)] = found
    newest = {subject: registry.ask("GET", f"/subjects/{subject}/versions/latest") for subject in subjects}
    return {"latest": newest, "ids": ids}


if __name__ == "__main__":
    main()
