//! krabka-protocol as a peer of the benchmarks, by what it calls its borrowed path. One JSON object per line.

use krabka_compression::RecordDecompressionPolicy;
use krabka_protocol::records::validate_one_v2_batch;
use memmap2::Mmap;
use serde_json::{json, Value};
use std::fs::File;
use std::io::{BufRead, Write};
use std::time::Instant;

type Done = Result<(u64, u64), String>;

fn main() {
    let mut known: (String, Option<Mmap>) = Default::default();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let answer = answer(&request, &mut known).unwrap_or_else(|error| json!({"error": error}));
        println!("{answer}");
        std::io::stdout().flush().expect("somebody reads");
    }
}

fn answer(request: &Value, known: &mut (String, Option<Mmap>)) -> Result<Value, String> {
    let work = request["work"].as_str().unwrap_or_default();
    if work == "hello" {
        return Ok(json!({"version": "krabka-protocol 0.8.0"}));
    }
    let path = request["path"].as_str().unwrap_or_default();
    if known.0 != path {
        let file = File::open(path).map_err(|error| error.to_string())?;
        // Sound as long as nobody changes the file, which is the benchmark's own.
        *known = (path.into(), Some(unsafe { Mmap::map(&file) }.map_err(|error| error.to_string())?));
    }
    let log = known.1.as_deref().unwrap_or_default();
    let (mut seconds, mut found) = (vec![], (0, 0));
    for _ in 0..request["passes"].as_u64().unwrap_or(1) {
        let start = Instant::now();
        found = match work {
            "crc" => crc(log)?,
            "visit" if request["check"] == true => checked(log)?,
            "visit" => visit(log)?,
            _ => return Err("no such work".into()),
        };
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(json!({"seconds": seconds, "parts": [[found.0.to_string(), found.1]]}))
}

fn word(number: u64, word: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(word)
}

fn crc(mut rest: &[u8]) -> Done {
    let mut found = (0, 0);
    while !rest.is_empty() {
        let batch = validate_one_v2_batch(rest).map_err(|error| error.to_string())?;
        found = (word(found.0, u64::from(batch.header.crc.get())), found.1 + 1);
        rest = &rest[batch.total_len..];
    }
    Ok(found)
}

/// Every record; what is summed up counts nothing, so that nobody takes it for the number of the contents.
fn visit(mut rest: &[u8]) -> Done {
    let mut sum = 0i64;
    while !rest.is_empty() {
        let batch = validate_one_v2_batch(rest).map_err(|error| error.to_string())?;
        let (offset, time) = (batch.header.base_offset.get(), batch.header.base_timestamp.get());
        batch
            .validate_record_summaries_with(RecordDecompressionPolicy::default(), |record| {
                let sizes = size(record.key) + size(record.value);
                sum = sum.wrapping_add(offset + i64::from(record.offset_delta) + time + record.timestamp_delta + sizes);
            })
            .map_err(|error| error.to_string())?;
        rest = &rest[batch.total_len..];
    }
    Ok((sum as u64, 0))
}

/// The same, and the number of the contents as benchmarks/contents.py defines it.
fn checked(mut rest: &[u8]) -> Done {
    let mut found = (0, 0);
    while !rest.is_empty() {
        let batch = validate_one_v2_batch(rest).map_err(|error| error.to_string())?;
        let (offset, time) = (batch.header.base_offset.get(), batch.header.base_timestamp.get());
        batch
            .validate_record_summaries_with(RecordDecompressionPolicy::default(), |record| {
                let start = (offset + i64::from(record.offset_delta)) as u64;
                let sizes = (((size(record.key) + 1) << 40) + ((size(record.value) + 1) << 29)) as u64;
                let told = start.wrapping_add(((time + record.timestamp_delta) as u64) << 17).wrapping_add(sizes);
                let ends = edges(record.key) | edges(record.value) << 16;
                let told = told.wrapping_add(ends << 31).wrapping_add((record.header_count as u64) << 57);
                found = (word(found.0, told), found.1 + 1);
            })
            .map_err(|error| error.to_string())?;
        rest = &rest[batch.total_len..];
    }
    Ok(found)
}

fn size(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| bytes.len() as i64)
}

fn edges(bytes: Option<&[u8]>) -> u64 {
    match bytes {
        Some([first, .., last]) => u64::from(*first) | u64::from(*last) << 8,
        Some([only]) => u64::from(*only) * 257,
        _ => 0,
    }
}
