//! rskafka: protocol::record::RecordBatch, read one after another as protocol::primitives::Records does.

mod serving;

use rskafka::protocol::record::{ControlBatchOrRecords, Record, RecordBatch, RecordBatchCompression, RecordBatchTimestampType, RecordHeader};
use rskafka::protocol::traits::{ReadError, ReadType, WriteType};
use serde_json::{json, Value};
use serving::*;
use std::io::{Cursor, ErrorKind};

const COMPRESSIONS: [RecordBatchCompression; 5] = [
    RecordBatchCompression::NoCompression, RecordBatchCompression::Gzip, RecordBatchCompression::Snappy,
    RecordBatchCompression::Lz4, RecordBatchCompression::Zstd,
];

fn main() {
    serve(
        json!({"name": "rskafka", "version": env!("ADAPTER_VERSION"), "language": "Rust",
            "homepage": "https://github.com/influxdata/rskafka", "issues": "https://github.com/influxdata/rskafka/issues"}),
        json!({"magic": [2], "codec": CODECS, "crc": true, "control": "hidden", "headers": "ordered",
            "batchMeta": ["baseOffset", "lastOffset", "codec", "timestampType", "baseTimestamp", "maxTimestamp", "producerId",
                "producerEpoch", "baseSequence", "isTransactional", "isControl", "partitionLeaderEpoch"],
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
    let data = unhexed(&request["data"]).expect("hex");
    let end = data.len() as u64;
    let (mut data, mut batches) = (Cursor::new(data), vec![]);
    while data.position() < end {
        match RecordBatch::read(&mut data) {
            Ok(found) => batches.push(batch(&found)),
            Err(ReadError::IO(error)) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(Other::Refused(error.to_string(), batches)),
        }
    }
    Ok(json!({"batches": batches}))
}

fn batch(batch: &RecordBatch) -> Value {
    let codec = COMPRESSIONS.iter().position(|known| *known == batch.compression).unwrap_or(0);
    let by_append = batch.timestamp_type == RecordBatchTimestampType::LogAppendTime;
    let (is_control, records) = match &batch.records {
        ControlBatchOrRecords::ControlBatch(_) => (true, vec![]),
        ControlBatchOrRecords::Records(records) => (false, records.iter().map(|one| record(batch, one)).collect()),
    };
    json!({"baseOffset": batch.base_offset.to_string(), "lastOffset": (batch.base_offset.wrapping_add(batch.last_offset_delta.into())).to_string(),
        "codec": CODECS[codec], "timestampType": if by_append { "LogAppendTime" } else { "CreateTime" },
        "baseTimestamp": batch.first_timestamp.to_string(), "maxTimestamp": batch.max_timestamp.to_string(),
        "producerId": batch.producer_id.to_string(), "producerEpoch": batch.producer_epoch, "baseSequence": batch.base_sequence,
        "isTransactional": batch.is_transactional, "isControl": is_control, "partitionLeaderEpoch": batch.partition_leader_epoch,
        "records": records})
}

/// Offset and time as the library's partition client works them out.
fn record(batch: &RecordBatch, record: &Record) -> Value {
    let headers: Vec<_> = record.headers.iter().map(|header| json!([hexed(Some(header.key.as_bytes())), hexed(Some(&header.value))])).collect();
    let time = batch.first_timestamp.wrapping_add(record.timestamp_delta);
    json!({"offset": batch.base_offset.wrapping_add(record.offset_delta.into()).to_string(), "timestamp": time.to_string(),
        "key": hexed(record.key.as_deref()), "value": hexed(record.value.as_deref()), "headers": headers})
}

fn encode(request: &Value) -> Answer {
    let mut data = vec![];
    for batch in request["batches"].as_array().expect("batches") {
        why_unencodable(batch)?;
        let built = built(batch)?;
        built.write(&mut data).map_err(|error| Other::Refused(error.to_string(), vec![]))?;
    }
    Ok(json!({"data": hexed(Some(&data))}))
}

fn built(batch: &Value) -> Result<RecordBatch, Other> {
    let base = number(&batch["baseOffset"], 0);
    let first = number(&batch["baseTimestamp"], number(&records(batch)[0]["timestamp"], -1));
    let codec = CODECS.iter().position(|name| batch["codec"] == *name).unwrap_or(0);
    let mut kept = vec![];
    for record in records(batch) {
        let mut pairs = vec![];
        for (key, value) in headers(record) {
            pairs.push(RecordHeader { key, value: value.ok_or(Other::Skip("its headers have no null value"))? });
        }
        kept.push(Record {
            timestamp_delta: number(&record["timestamp"], -1).wrapping_sub(first),
            offset_delta: (number(&record["offset"], 0) - base) as i32,
            key: unhexed(&record["key"]),
            value: unhexed(&record["value"]),
            headers: pairs,
        });
    }
    let largest = kept.iter().map(|record| first.wrapping_add(record.timestamp_delta)).max().unwrap_or(-1);
    Ok(RecordBatch {
        base_offset: base,
        partition_leader_epoch: number(&batch["partitionLeaderEpoch"], -1) as i32,
        last_offset_delta: kept.last().map_or(0, |record| record.offset_delta),
        first_timestamp: first,
        max_timestamp: number(&batch["maxTimestamp"], largest),
        producer_id: number(&batch["producerId"], -1),
        producer_epoch: number(&batch["producerEpoch"], -1) as i16,
        base_sequence: number(&batch["baseSequence"], -1) as i32,
        records: ControlBatchOrRecords::Records(kept),
        compression: COMPRESSIONS[codec],
        is_transactional: batch["isTransactional"] == true,
        timestamp_type: if batch["timestampType"] == "LogAppendTime" { RecordBatchTimestampType::LogAppendTime } else { RecordBatchTimestampType::CreateTime },
    })
}
