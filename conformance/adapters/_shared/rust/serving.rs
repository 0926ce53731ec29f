//! The line protocol. A panic of a library ends the process, as it would end a program that uses it.

use serde_json::{json, Value};
use std::io::{BufRead, Write};

pub const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

/// Every error: a function returns its errors on purpose, and an accident is a panic, which ends the process.
pub const RETURNED_ERRORS: [&str; 1] = ["*"];

/// What an operation comes to instead of an answer.
pub enum Other {
    /// The library has no way to be asked this.
    Skip(&'static str),
    /// The library refuses; what it delivered before stands beside it.
    Refused(String, Vec<Value>),
}

pub type Answer = Result<Value, Other>;

pub fn hexed(bytes: Option<&[u8]>) -> Value {
    match bytes {
        None => Value::Null,
        Some(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}

pub fn unhexed(text: &Value) -> Option<Vec<u8>> {
    let text = text.as_str()?;
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// A number, as text on the wire or not.
pub fn number(value: &Value, missing: i64) -> i64 {
    match value {
        Value::String(text) => text.parse().unwrap_or(missing),
        other => other.as_i64().unwrap_or(missing),
    }
}

/// Records of a batch in a request.
pub fn records(batch: &Value) -> &Vec<Value> {
    batch["records"].as_array().expect("records are an array")
}

/// Header pairs of a record in a request.
pub fn headers(record: &Value) -> Vec<(String, Option<Vec<u8>>)> {
    let pairs = record["headers"].as_array().cloned().unwrap_or_default();
    pairs.iter().map(|pair| (String::from_utf8(unhexed(&pair[0]).unwrap_or_default()).unwrap_or_default(), unhexed(&pair[1]))).collect()
}

/// What producers never write, and their encoders cannot be asked for.
pub fn why_unencodable(batch: &Value) -> Result<(), Other> {
    let last = records(batch).last().map(|record| number(&record["offset"], 0));
    match () {
        _ if batch["isControl"] == true => Err(Other::Skip("its encoder takes no control batches")),
        _ if batch["deleteHorizonMs"].is_string() => Err(Other::Skip("its encoder knows no delete horizon")),
        _ if number(&batch["magic"], 2) != 2 => Err(Other::Skip("its encoder knows magic 2 alone")),
        _ if last.is_none() => Err(Other::Skip("its encoder knows no empty batches")),
        _ if last != Some(number(&batch["lastOffset"], last.unwrap_or(0))) => Err(Other::Skip("a last offset without a record")),
        _ => Ok(()),
    }
}

fn rejected(text: &str) -> Value {
    let lower = text.to_lowercase();
    let kinds = [("crc", "crc"), ("compress", "compression"), ("lz4", "compression"), ("snappy", "compression"), ("zstd", "compression"),
        ("version", "magic"), ("magic", "magic"), ("varint", "varint"), ("len", "length"), ("bytes", "length")];
    let kind = kinds.iter().find(|(word, _)| lower.contains(word)).map_or("other", |(_, kind)| kind);
    json!({"class": kind, "message": text})
}

/// Answer requests until there are no more.
pub fn serve(implementation: Value, features: Value, operation: impl Fn(&str, &Value) -> Option<Answer>) {
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let mut answer = match request["op"].as_str().unwrap_or_default() {
            "stop" => return,
            "hello" => json!({"ok": true, "protocol": 1, "ops": ["decode", "encode"], "implementation": implementation, "features": features}),
            op => match operation(op, &request) {
                None => json!({"skip": {"feature": format!("op:{op}")}}),
                Some(Ok(mut found)) => {
                    found["ok"] = true.into();
                    found
                }
                Some(Err(Other::Skip(reason))) => json!({"skip": {"reason": reason}}),
                Some(Err(Other::Refused(text, batches))) => json!({"ok": false, "reject": rejected(&text), "batches": batches}),
            },
        };
        answer["seq"] = request["seq"].clone();
        writeln!(std::io::stdout(), "{answer}").expect("standard output");
    }
}
