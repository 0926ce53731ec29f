//! An adapter in Rust: change `hello` and `decode`; leave the rest.

use serde_json::{json, Value};
use std::io::{stdin, stdout, BufRead, Write};
use std::panic::catch_unwind;

fn hello() -> Value {
    json!({"ok": true, "protocol": 1,
        "implementation": {"name": "your-library", "version": std::env::args().nth(1), "language": "Rust"},
        "ops": ["decode"],
        "features": {"magic": [2], "codec": ["none", "gzip"], "crc": true, "control": "hidden",
            "headers": "ordered", "batchMeta": false, "bytesKeys": true, "partialTail": false}})
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Absolute offset, milliseconds; `None` is null.
#[allow(dead_code)]
fn record(offset: i64, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&[u8], Option<&[u8]>)]) -> Value {
    let headers: Vec<Value> = headers.iter().map(|(key, value)| json!([hex(key), value.map(hex)])).collect();
    json!({"offset": offset.to_string(), "timestamp": timestamp.to_string(),
        "key": key.map(hex), "value": value.map(hex), "headers": headers})
}

/// What was delivered, and the error that ended it.
fn decode(data: &[u8]) -> (Vec<Value>, Option<String>) {
    // for each record of your library: records.push(record(...))
    (vec![], Some(format!("call your library here, with {} bytes", data.len())))
}

fn answer(request: &Value) -> Value {
    if request["op"] == "hello" {
        return hello();
    }
    let data = unhex(request["data"].as_str().unwrap());
    // A panic is a refusal, as an exception is elsewhere; an abort is not.
    match catch_unwind(|| decode(&data)) {
        Ok((records, None)) => json!({"ok": true, "batches": [{"records": records}]}),
        Ok((records, Some(message))) => {
            json!({"ok": false, "reject": {"class": "other", "message": message}, "batches": [{"records": records}]})
        }
        Err(_) => json!({"ok": false, "reject": {"class": "other", "message": "panic"}, "batches": []}),
    }
}

fn main() {
    for line in stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if request["op"] == "stop" {
            return;
        }
        let mut reply = answer(&request);
        reply["seq"] = request["seq"].clone();
        let mut out = stdout().lock();
        writeln!(out, "{reply}").unwrap();
        out.flush().unwrap();
    }
}
