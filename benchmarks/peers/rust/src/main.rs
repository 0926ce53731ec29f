//! kafka-protocol as a peer of the benchmarks. One JSON object per line: what to do with which log, how often.

mod contents;
mod works;

use bytes::Bytes;
use serde_json::{json, Value};
use std::io::{BufRead, Write};
use std::time::Instant;
use works::*;

/// What is kept for the next pass: the log in parts, and what an encoder starts from.
#[derive(Default)]
struct Known {
    of: String,
    parts: Vec<Bytes>,
    batches: Vec<Vec<kafka_protocol::records::Record>>,
}

fn main() {
    let mut known = Known::default();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let answer = answer(&request, &mut known).unwrap_or_else(|error| json!({"error": error}));
        println!("{answer}");
        std::io::stdout().flush().expect("somebody reads");
    }
}

fn answer(request: &Value, known: &mut Known) -> Result<Value, String> {
    let work = request["work"].as_str().unwrap_or_default();
    if work == "hello" {
        return Ok(json!({"version": "kafka-protocol 0.18.0"}));
    }
    prepare(request, known)?;
    let check = request["check"] == true;
    let (mut seconds, mut found) = (vec![], vec![]);
    for _ in 0..request["passes"].as_u64().unwrap_or(1) {
        let start = Instant::now();
        found = match work {
            "scan" => each(&known.parts, scan)?,
            "crc" => each(&known.parts, crc)?,
            "visit" => each(&known.parts, |part| visit(part, check))?,
            "columns" => each(&known.parts, |part| columns(part, check))?,
            "encode" => vec![encode(&known.batches)?],
            _ => return Err("no such work".into()),
        };
        seconds.push(start.elapsed().as_secs_f64());
    }
    let parts: Vec<Value> = found.iter().map(|part| json!([part.number.to_string(), part.count])).collect();
    Ok(json!({"seconds": seconds, "parts": parts}))
}

fn prepare(request: &Value, known: &mut Known) -> Result<(), String> {
    let path = request["path"].as_str().unwrap_or_default();
    let threads = request["threads"].as_u64().unwrap_or(1) as usize;
    let encodes = request["work"] == "encode";
    let of = format!("{path} {threads} {encodes}");
    if known.of != of {
        *known = Known::default();
        let parts = split(&map(path)?, threads)?;
        let batches = if encodes { read(&parts[0])? } else { vec![] };
        *known = Known { of, parts, batches };
    }
    Ok(())
}
