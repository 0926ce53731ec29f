//! Tasks are told as JSON on standard input, and answered as JSON on standard output.

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread::scope;
use std::time::Duration;

type Found = Result<Value, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(60);
const AT_ONCE: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let told: Value = serde_json::from_reader(std::io::stdin())?;
    let address = format!("127.0.0.1:{}", told["port"]);
    let tasks = told["tasks"].as_array().ok_or("no tasks")?;
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(vec![Value::Null; tasks.len()]));
    scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                while let Some((number, task)) = taken(&next, tasks) {
                    let found = carried_out(&address, task).unwrap_or_else(|error| json!(error.to_string()));
                    answers.lock().unwrap()[number] = found;
                }
            });
        }
    });
    serde_json::to_writer(std::io::stdout(), &*answers.lock().unwrap())?;
    Ok(())
}

fn taken<'a>(next: &AtomicUsize, tasks: &'a [Value]) -> Option<(usize, &'a Value)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    tasks.get(number).map(|task| (number, task))
}

fn carried_out(address: &str, task: &Value) -> Found {
    let topic = text(task, "topic")?;
    match text(task, "kind")? {
        "records" => records(address, topic, text(task, "isolation")?),
        "lookups" => lookups(address, topic, list(task, "timestamps")?),
        "group" => group(address, topic, text(task, "group")?, list(task, "ends")?),
        "produce" => produce(address, topic, task),
        _ => Err("there is no such task".into()),
    }
}

fn text<'a>(task: &'a Value, name: &str) -> Result<&'a str, String> {
    task[name].as_str().ok_or(format!("no {name}"))
}

fn list<'a>(task: &'a Value, name: &str) -> Result<&'a [Value], String> {
    task[name].as_array().map(Vec::as_slice).ok_or(format!("no {name}"))
}

fn consumer(address: &str, group: &str, isolation: &str) -> Result<BaseConsumer, KafkaError> {
    ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("group.id", group)
        .set("isolation.level", isolation)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("fetch.wait.max.ms", "50")
        .create()
}

fn records(address: &str, topic: &str, isolation: &str) -> Found {
    let connected = consumer(address, "g", isolation)?;
    connected.assign(&place(topic, Offset::Beginning)?)?;
    Ok(Value::Array(read(&connected, usize::MAX)?))
}

fn place(topic: &str, offset: Offset) -> Result<TopicPartitionList, KafkaError> {
    let mut found = TopicPartitionList::new();
    found.add_partition_offset(topic, 0, offset)?;
    Ok(found)
}

/// So many records, or as many as there are.
fn read(connected: &BaseConsumer, count: usize) -> Result<Vec<Value>, KafkaError> {
    let mut found = vec![];
    while found.len() < count {
        match connected.poll(Duration::from_secs(1)) {
            None => continue,
            Some(Ok(message)) => found.push(row(&message)),
            Some(Err(KafkaError::PartitionEOF(_))) => break,
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(found)
}

fn row(message: &BorrowedMessage) -> Value {
    let headers: Vec<Value> = message.headers().map_or(vec![], |headers| {
        headers.iter().map(|each| json!([each.key, each.value.map(hexed)])).collect()
    });
    let timestamp_ms = message.timestamp().to_millis().unwrap_or(0);
    json!([message.offset(), timestamp_ms, message.key().map(hexed), message.payload().map(hexed), headers])
}

fn hexed(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lookups(address: &str, topic: &str, timestamps: &[Value]) -> Found {
    let connected = consumer(address, "g", "read_uncommitted")?;
    let mut found = vec![];
    for each in timestamps {
        let asked = place(topic, Offset::Offset(each.as_i64().ok_or("no number")?))?;
        let answer = connected.offsets_for_times(asked, PATIENCE)?;
        found.push(match answer.elements()[0].offset() {
            Offset::Offset(offset) => json!([null, offset]),
            _ => Value::Null,
        });
    }
    Ok(Value::Array(found))
}

/// Reads a few records in a group and commits; what comes after that is the next member's.
fn group(address: &str, topic: &str, group: &str, ends: &[Value]) -> Found {
    let (mut found, mut start) = (vec![], 0);
    for end in ends.iter().filter_map(Value::as_i64) {
        let connected = consumer(address, group, "read_committed")?;
        connected.subscribe(&[topic])?;
        let rows = read(&connected, (end - start) as usize)?;
        found.push(rows.iter().map(|row| row[0].clone()).collect::<Value>());
        connected.commit(&place(topic, Offset::Offset(end))?, CommitMode::Sync)?;
        start = end;
    }
    Ok(Value::Array(found))
}

/// Notes the offsets of what has arrived.
#[derive(Default)]
struct Delivered(Mutex<Vec<Result<i64, RDKafkaErrorCode>>>);

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let offset = match result {
            Ok(message) => Ok(message.offset()),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)),
        };
        self.0.lock().unwrap().push(offset);
    }
}

fn produce(address: &str, topic: &str, task: &Value) -> Found {
    let connected: BaseProducer<Delivered> = ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("acks", "all")
        .set("enable.idempotence", task["idempotent"].to_string())
        .create_with_context(Delivered::default())?;
    for number in 0..task["count"].as_u64().ok_or("no count")? {
        let value = format!("{}-{number}", text(task, "prefix")?);
        connected.send(BaseRecord::<(), String>::to(topic).payload(&value)).map_err(|(error, _)| error)?;
    }
    connected.flush(Timeout::After(PATIENCE))?;
    let delivered = connected.context().0.lock().unwrap().clone();
    Ok(json!(delivered.into_iter().collect::<Result<Vec<_>, _>>()?))
}
