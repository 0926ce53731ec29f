//! kafka-protocol: RecordBatchDecoder and RecordBatchEncoder.

mod serving;

use bytes::{Bytes, BytesMut};
use indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, RecordSet, TimestampType};
use serde_json::{json, Value};
use serving::*;

const COMPRESSIONS: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn main() {
    serve(
        json!({"name": "kafka-protocol", "version": env!("ADAPTER_VERSION"), "language": "Rust",
            "homepage": "https://github.com/tychedelia/kafka-protocol-rs", "issues": "https://github.com/tychedelia/kafka-protocol-rs/issues"}),
        json!({"magic": [2], "codec": CODECS, "crc": true, "control": "surfaced", "headers": "ordered", "batchMeta": ["magic", "codec"],
            "bytesKeys": false, "partialTail": false, "errors": RETURNED_ERRORS}),
        |op, request| match op {
            "decode" => Some(decode(request)),
            "encode" => Some(encode(request)),
            _ => None,
        },
    );
}

fn decode(request: &Value) -> Answer {
    if request["options"]["crc"] == false {
        return Err(Other::Skip("it always verifies checksums"));
    }
    let mut data = Bytes::from(unhexed(&request["data"]).expect("hex"));
    let mut batches = vec![];
    while !data.is_empty() {
        match RecordBatchDecoder::decode(&mut data) {
            Ok(set) => batches.push(batch(&set)),
            Err(error) => return Err(Other::Refused(format!("{error:#}"), batches)),
        }
    }
    Ok(json!({"batches": batches}))
}

fn batch(set: &RecordSet) -> Value {
    let codec = COMPRESSIONS.iter().position(|known| *known == set.compression).unwrap_or(0);
    let control = set.records.iter().any(|record| record.control);
    json!({"magic": set.version, "codec": CODECS[codec], "isControl": control, "records": set.records.iter().map(record).collect::<Vec<_>>()})
}

fn record(record: &Record) -> Value {
    let headers: Vec<_> = record.headers.iter().map(|(key, value)| json!([hexed(Some(key.as_bytes())), hexed(value.as_deref())])).collect();
    json!({"offset": record.offset.to_string(), "timestamp": record.timestamp.to_string(), "key": hexed(record.key.as_deref()),
        "value": hexed(record.value.as_deref()), "headers": headers})
}

fn encode(request: &Value) -> Answer {
    let mut data = BytesMut::new();
    for batch in request["batches"].as_array().expect("batches") {
        why_unencodable(batch)?;
        let codec = CODECS.iter().position(|name| batch["codec"] == *name).unwrap_or(0);
        let options = RecordEncodeOptions { version: 2, compression: COMPRESSIONS[codec] };
        let built: Vec<Record> = records(batch).iter().map(|one| built(batch, one)).collect();
        RecordBatchEncoder::encode(&mut data, built.iter(), &options).map_err(|error| Other::Refused(format!("{error:#}"), vec![]))?;
    }
    Ok(json!({"data": hexed(Some(&data))}))
}

fn built(batch: &Value, record: &Value) -> Record {
    let (offset, base) = (number(&record["offset"], 0), number(&batch["baseOffset"], 0));
    let sequence = number(&batch["baseSequence"], -1);
    let mut kept = IndexMap::new();
    for (key, value) in headers(record) {
        kept.insert(StrBytes::from_string(key), value.map(Bytes::from));
    }
    Record {
        transactional: batch["isTransactional"] == true,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: number(&batch["partitionLeaderEpoch"], -1) as i32,
        producer_id: number(&batch["producerId"], -1),
        producer_epoch: number(&batch["producerEpoch"], -1) as i16,
        timestamp_type: if batch["timestampType"] == "LogAppendTime" { TimestampType::LogAppend } else { TimestampType::Creation },
        offset,
        sequence: (sequence + offset - base) as i32, // the encoder splits where offsets and sequences part, even where there are none
        timestamp: number(&record["timestamp"], -1),
        key: unhexed(&record["key"]).map(Bytes::from),
        value: unhexed(&record["value"]).map(Bytes::from),
        headers: kept,
    }
}
