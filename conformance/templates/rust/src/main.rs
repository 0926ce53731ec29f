//! An adapter in Rust: change `hello`, and fill in the functions that your library has; leave the rest.
#![allow(dead_code)]

use serde_json::{json, Value};
use std::io::{stdin, stdout, BufRead, Write};
use std::panic::catch_unwind;
use std::path::Path;

// What the library does: `Some` of a function that you write. What stays `None` is not listed, and not asked. An error
// is `refusal("...")`, or `skip("...")` where the library cannot be asked for something.

/// The records delivered, each made by `record`, and the error that ended the delivery.
const DECODE: Option<fn(&[u8]) -> (Vec<Value>, Option<String>)> = None;
/// The bytes of batches, which have the fields of the protocol: `number(&batch["baseOffset"])`, `bytes(&record["key"])`.
const ENCODE: Option<fn(&[Value]) -> Result<Vec<u8>, Value>> = None;
/// From the log, its base offset and the interval in bytes: `json!({".index": hex(...), ".timeindex": hex(...)})`, and
/// `.txnindex` if transactions were aborted.
const INDEX: Option<fn(&[u8], i64, i64) -> Result<Value, Value>> = None;
/// The batch that a reader begins at, or null; a directory holds the files of the partition:
/// `json!({"position": position, "baseOffset": base_offset.to_string()})`
const LOOKUP: Option<fn(&Path, i64) -> Result<Value, Value>> = None;

fn hello() -> Value {
    let ops = [("decode", DECODE.is_some()), ("encode", ENCODE.is_some()), ("index", INDEX.is_some()), ("lookup", LOOKUP.is_some())];
    json!({"ok": true, "protocol": 1,
        "implementation": {"name": "your-library", "version": std::env::args().nth(1), "language": "Rust"},
        "ops": ops.iter().filter(|op| op.1).map(|op| op.0).collect::<Vec<_>>(),
        "features": {"magic": [2], "codec": ["none", "gzip"], "crc": true, "control": "hidden",
            "headers": "ordered", "batchMeta": false, "bytesKeys": true, "partialTail": false, "indexEntry": false}})
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// `None` is null.
fn bytes(field: &Value) -> Option<Vec<u8>> {
    field.as_str().map(unhex)
}

/// Of a number, or of its text.
fn number(field: &Value) -> i64 {
    field.as_i64().or_else(|| field.as_str().and_then(|text| text.parse().ok())).unwrap_or(0)
}

/// Absolute offset, milliseconds; `None` is null.
fn record(offset: i64, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&[u8], Option<&[u8]>)]) -> Value {
    let headers: Vec<Value> = headers.iter().map(|(key, value)| json!([hex(key), value.map(hex)])).collect();
    json!({"offset": offset.to_string(), "timestamp": timestamp.to_string(),
        "key": key.map(hex), "value": value.map(hex), "headers": headers})
}

fn refusal(message: &str) -> Value {
    json!({"ok": false, "reject": {"class": "other", "message": message}})
}

fn skip(reason: &str) -> Value {
    json!({"skip": {"reason": reason}})
}

fn looked_up(request: &Value) -> Result<Value, Value> {
    let Some(offset) = request["offset"].as_str() else {
        return Err(skip("it finds offsets only"));
    };
    let directory = std::env::temp_dir().join(format!("lookup-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (name, content) in request["files"].as_object().unwrap() {
        std::fs::write(directory.join(name), unhex(content.as_str().unwrap())).unwrap();
    }
    let found = catch_unwind(|| LOOKUP.unwrap()(&directory, offset.parse().unwrap()));
    std::fs::remove_dir_all(&directory).unwrap();
    found.unwrap_or(Err(refusal("panic")))
}

fn decoded(request: &Value) -> Value {
    let (records, message) = DECODE.unwrap()(&bytes(&request["data"]).unwrap());
    let mut reply = message.map_or(json!({"ok": true}), |message| refusal(&message));
    reply["batches"] = json!([{"records": records}]);
    reply
}

fn answered(request: &Value) -> Result<Value, Value> {
    match request["op"].as_str().unwrap() {
        "hello" => Ok(hello()),
        "decode" => Ok(decoded(request)),
        "encode" => {
            let data = ENCODE.unwrap()(request["batches"].as_array().unwrap())?;
            Ok(json!({"ok": true, "data": hex(&data)}))
        }
        "index" => {
            let data = bytes(&request["data"]).unwrap();
            let files = INDEX.unwrap()(&data, number(&request["baseOffset"]), number(&request["indexIntervalBytes"]))?;
            Ok(json!({"ok": true, "files": files}))
        }
        _ => Ok(json!({"ok": true, "found": looked_up(request)?})),
    }
}

fn main() {
    for line in stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if request["op"] == "stop" {
            return;
        }
        // A panic counts as a refusal, like an exception in other languages; an abort does not.
        let mut reply = match catch_unwind(|| answered(&request)) {
            Ok(Ok(reply)) | Ok(Err(reply)) => reply,
            Err(_) => refusal("panic"),
        };
        if request["op"] == "decode" && reply["ok"] == false && reply["batches"].is_null() {
            reply["batches"] = json!([]);
        }
        reply["seq"] = request["seq"].clone();
        let mut out = stdout().lock();
        writeln!(out, "{reply}").unwrap();
        out.flush().unwrap();
    }
}
