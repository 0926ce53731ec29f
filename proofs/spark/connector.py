"""Spark with its Kafka connector, and a broker to read from, for comparison with our data source.

Maven downloads the connector once into ``build/spark-connector``. The required artifacts are listed here, since some
releases of Spark have not published all of them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from proofs.kafka.broker import Broker
from proofs.spark.maven import REPOSITORY, fetched
from proofs.spark.session import quiet_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

JARS: Final = REPOSITORY / "build" / "spark-connector"
ARTIFACTS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
RELEASE: Final = "4.1"
"""Release of the broker."""


def jars() -> list[Path]:
    """Return the jars of the connector and its dependencies.

    Raises:
        OracleError: Maven cannot download them.
    """
    return fetched(ARTIFACTS, JARS)


def connector_session(name: str, scratch: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session on two cores that has the connector and our source.

    Args:
        name: name that Spark displays.
        scratch: directory for other output of Spark.
        settings: additional settings.
    """
    path = os.pathsep.join(map(str, jars()))
    ours = {
        "spark.driver.extraClassPath": path,
        "spark.driver.memory": "2g",
        "spark.sql.python.filterPushdown.enabled": "true",  # each query here has a load of its own
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
    }
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    return quiet_session(name, directory=scratch / "spark", settings={**ours, **(settings or {})})


def new_broker(home: Path, settings: Mapping[str, str]) -> Broker:
    """Return a broker with additional settings, not started yet."""
    home.mkdir(parents=True)
    broker = Broker(RELEASE, home)
    with broker.settings.open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())
    return broker


class Clients:
    """Kafka's own clients in the Java process of a Spark session.

    Args:
        spark: a session from `connector_session`.
        address: address of a broker.
    """

    def __init__(self, spark: SparkSession, address: str) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - how Java is reached
        self._jvm = jvm
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - as above
        self._kafka: Any = self._jvm.org.apache.kafka
        self._address = address

    def _map(self, values: Mapping[str, str]) -> Any:
        made = self._jvm.java.util.HashMap()
        for name, value in {"bootstrap.servers": self._address, **values}.items():
            made.put(name, value)
        return made

    def create(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create topics, each with so many partitions and its configuration."""
        with self._admin() as admin:
            made = self._jvm.java.util.ArrayList()
            for name, (partitions, config) in topics.items():
                topic = self._kafka.clients.admin.NewTopic(name, partitions, 1)
                made.add(topic.configs(self._without_servers(config)))
            admin.createTopics(made).all().get()

    def _without_servers(self, config: Mapping[str, str]) -> Any:
        made = self._map(config)
        made.remove("bootstrap.servers")
        return made

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        admin = self._kafka.clients.admin.AdminClient.create(self._map({}))
        try:
            yield admin
        finally:
            admin.close()

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Advance the log start offset of a partition."""
        with self._admin() as admin:
            asked = self._jvm.java.util.HashMap()
            topic_partition = self._kafka.common.TopicPartition(topic, partition)
            asked.put(topic_partition, self._before(before))
            admin.deleteRecords(asked).all().get()

    def _before(self, offset: int) -> Any:
        """Call ``RecordsToDelete.beforeOffset``, which py4j does not find because a getter has the same name."""
        named = self._jvm.java.lang.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
        (method,) = (
            each for each in named.getMethods() if each.getName() == "beforeOffset" and each.getParameterCount() == 1
        )
        arguments = self._gateway.new_array(self._jvm.java.lang.Object, 1)
        arguments[0] = offset
        return method.invoke(None, arguments)

    def producer(self, **settings: str) -> Any:
        """Return a producer of bytes; names of settings have ``_`` instead of dots."""
        name = "org.apache.kafka.common.serialization.ByteArraySerializer"
        given = {key.replace("_", "."): value for key, value in settings.items()}
        config = self._map({"key.serializer": name, "value.serializer": name, **given})
        return self._kafka.clients.producer.KafkaProducer(config)

    def record(self, topic: str, key: bytes | None, value: bytes | None) -> Any:
        """Return a record for a producer."""
        return self._kafka.clients.producer.ProducerRecord(topic, key, value)

    def seconds(self, count: int) -> Any:
        """Return a duration."""
        return self._jvm.java.time.Duration.ofSeconds(count)


def connector(spark: SparkSession, address: str, topics: Sequence[str], **options: str) -> DataFrame:
    """Return the records that the connector reads from some topics, from start to end."""
    given = {
        "kafka.bootstrap.servers": address,
        "subscribe": ",".join(topics),
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return spark.read.format("kafka").options(**given).load()


def sink(frame: DataFrame, address: str, **options: str) -> None:
    """Have the connector produce the rows of a frame."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    frame.write.format("kafka").option("kafka.bootstrap.servers", address).options(**given).save()
