//! An adapter in Rust: change `hello`, `decode` and `lookup`; leave the rest.

use serde_json::{json, Value};
use std::io::{stdin, stdout, BufRead, Write};
use std::panic::catch_unwind;
use std::path::Path;

fn hello() -> Value {
    json!({"ok": true, "protocol": 1,
        "implementation": {"name": "your-library", "version": std::env::args().nth(1), "language": "Rust"},
        "ops": ["decode", "lookup"], // leave out what it cannot do
        "features": {"magic": [2], "codec": ["none", "gzip"], "crc": true, "control": "hidden",
            "headers": "ordered", "batchMeta": false, "bytesKeys": true, "partialTail": false, "indexEntry": false}})
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

/// The records delivered, and the error that ended the delivery.
fn decode(data: &[u8]) -> (Vec<Value>, Option<String>) {
    // for each record of your library: records.push(record(...))
    (vec![], Some(format!("call your library here, with {} bytes", data.len())))
}

/// The batch that a reader begins at, or null; a directory holds the files of the partition.
fn lookup(directory: &Path, offset: i64) -> Result<Value, String> {
    // Ok(json!({"position": position, "baseOffset": base_offset.to_string()})), or Ok(Value::Null)
    Err(format!("call your library here, with {} and {offset}", directory.display()))
}

fn looked_up(request: &Value) -> Value {
    let Some(offset) = request["offset"].as_str() else {
        return json!({"skip": {"reason": "it finds offsets only"}});
    };
    let directory = std::env::temp_dir().join(format!("lookup-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (name, content) in request["files"].as_object().unwrap() {
        std::fs::write(directory.join(name), unhex(content.as_str().unwrap())).unwrap();
    }
    let found = catch_unwind(|| lookup(&directory, offset.parse().unwrap()));
    std::fs::remove_dir_all(&directory).unwrap();
    match found.unwrap_or(Err("panic".into())) {
        Ok(found) => json!({"ok": true, "found": found}),
        Err(message) => json!({"ok": false, "reject": {"class": "other", "message": message}}),
    }
}

fn answer(request: &Value) -> Value {
    match request["op"].as_str() {
        Some("hello") => return hello(),
        Some("lookup") => return looked_up(request),
        _ => {}
    }
    let data = unhex(request["data"].as_str().unwrap());
    // A panic counts as a refusal, like an exception in other languages; an abort does not.
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
