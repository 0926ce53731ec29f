//! An encoder, an index builder and a lookup, with which tests fill in the template: batches of magic 2 alone.

use crate::{bytes, hex, number, skip};
use serde_json::{json, Value};
use std::path::Path;

pub fn encode(batches: &[Value]) -> Result<Vec<u8>, Value> {
    let mut out = vec![];
    for batch in batches {
        let records = batch["records"].as_array().unwrap();
        let is_usual = number(&batch["producerId"]) < 0 && batch["deleteHorizonMs"].is_null() && batch["isControl"] != true;
        if batch["magic"] != 2 || batch["codec"] != "none" || records.is_empty() || !is_usual {
            return Err(skip("it writes no such batches"));
        }
        let (base, first) = (number(&batch["baseOffset"]), number(&batch["baseTimestamp"]));
        let mut tail = vec![0, if batch["timestampType"] == "LogAppendTime" { 8 } else { 0 }];
        tail.extend(((number(&batch["lastOffset"]) - base) as i32).to_be_bytes());
        tail.extend(first.to_be_bytes());
        tail.extend(number(&batch["maxTimestamp"]).to_be_bytes());
        tail.extend([255; 14]);
        tail.extend((records.len() as i32).to_be_bytes());
        for record in records {
            let mut body = vec![0];
            varint(&mut body, number(&record["timestamp"]) - first);
            varint(&mut body, number(&record["offset"]) - base);
            field(&mut body, &record["key"]);
            field(&mut body, &record["value"]);
            let headers = record["headers"].as_array().cloned().unwrap_or_default();
            varint(&mut body, headers.len() as i64);
            for pair in &headers {
                field(&mut body, &pair[0]);
                field(&mut body, &pair[1]);
            }
            varint(&mut tail, body.len() as i64);
            tail.extend(body);
        }
        out.extend(base.to_be_bytes());
        out.extend((9 + tail.len() as i32).to_be_bytes());
        out.extend((number(&batch["partitionLeaderEpoch"]) as i32).to_be_bytes());
        out.push(2);
        out.extend(crc32c(&tail).to_be_bytes());
        out.extend(tail);
    }
    Ok(out)
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut left = ((value << 1) ^ (value >> 63)) as u64;
    while left > 127 {
        out.push(left as u8 & 127 | 128);
        left >>= 7;
    }
    out.push(left as u8);
}

fn field(out: &mut Vec<u8>, text: &Value) {
    let data = bytes(text);
    varint(out, data.as_ref().map_or(-1, |data| data.len() as i64));
    out.extend(data.unwrap_or_default());
}

fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ *byte as u32, |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

fn integer(data: &[u8], at: usize, size: usize) -> i64 {
    data[at..at + size].iter().fold(0, |sum, byte| sum << 8 | *byte as i64)
}

pub fn index(data: &[u8], base_offset: i64, interval_bytes: i64) -> Result<Value, Value> {
    let (mut offsets, mut times) = (vec![], vec![]);
    let (mut at, mut since, mut largest, mut newest, mut written) = (0, 0, -1, -1, -1);
    while at < data.len() {
        if data[at + 16] != 2 || data[at + 22] & 0x27 != 0 {
            return Err(skip("it reads no such batches"));
        }
        let size = 12 + integer(data, at + 8, 4);
        let (last, stamp) = (integer(data, at, 8) + integer(data, at + 23, 4), integer(data, at + 35, 8));
        if stamp > largest {
            (largest, newest) = (stamp, last);
        }
        if since > interval_bytes {
            offsets.extend(((last - base_offset) as i32).to_be_bytes());
            offsets.extend((at as i32).to_be_bytes());
            times.extend(largest.to_be_bytes());
            times.extend(((newest - base_offset) as i32).to_be_bytes());
            (since, written) = (0, largest);
        }
        since += size;
        at += size as usize;
    }
    if largest > written {
        times.extend(largest.to_be_bytes());
        times.extend(((newest - base_offset) as i32).to_be_bytes());
    }
    Ok(json!({".index": hex(&offsets), ".timeindex": hex(&times)}))
}

pub fn lookup(directory: &Path, offset: i64) -> Result<Value, Value> {
    let mut names: Vec<_> = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|end| end == "log"));
    names.sort();
    for (i, name) in names.iter().enumerate() {
        let next = names.get(i + 1).map(|path| path.file_stem().unwrap().to_str().unwrap().parse::<i64>().unwrap());
        if next.is_some_and(|base| base <= offset) {
            continue;
        }
        let data = std::fs::read(name).unwrap();
        let mut at = 0;
        while at + 17 <= data.len() {
            let first = integer(&data, at, 8);
            let last = if data[at + 16] == 2 { first + integer(&data, at + 23, 4) } else { first };
            if last >= offset {
                return Ok(json!({"position": at, "baseOffset": first.to_string()}));
            }
            at += 12 + integer(&data, at + 8, 4) as usize;
        }
    }
    Ok(Value::Null)
}
