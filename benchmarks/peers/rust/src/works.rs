//! The works, each from one end of a part of the log to the other.

use crate::contents::{edges, size, Contents};
use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions};
use std::fs::File;

const ROWS: usize = 1 << 16;
const CRC_AT: usize = 17;

type Done = Result<Contents, String>;

pub fn map(path: &str) -> Result<Bytes, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    // Sound as long as nobody changes the file, which is the benchmark's own.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|error| error.to_string())?;
    Ok(Bytes::from_owner(map))
}

/// One part for each thread, cut between batches.
pub fn split(data: &Bytes, threads: usize) -> Result<Vec<Bytes>, String> {
    let (mut parts, mut start, mut position) = (vec![], 0, 0);
    for batch in Batches(data) {
        position += batch?.len();
        if position * threads >= data.len() * (parts.len() + 1) {
            parts.push(data.slice(start..position));
            start = position;
        }
    }
    Ok(parts)
}

pub fn each(parts: &[Bytes], work: impl Fn(&Bytes) -> Done + Sync) -> Result<Vec<Contents>, String> {
    if let [only] = parts {
        return Ok(vec![work(only)?]);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = parts.iter().map(|part| scope.spawn(|| work(part))).collect();
        running.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
}

struct Batches<'a>(&'a [u8]);

impl<'a> Iterator for Batches<'a> {
    type Item = Result<&'a [u8], String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let size = 12 + i32::from_be_bytes(self.0.get(8..12)?.try_into().ok()?) as usize;
        if self.0.len() < size || self.0[16] != 2 {
            self.0 = &[];
            return Some(Err("not a batch of magic 2".into()));
        }
        let (batch, rest) = self.0.split_at(size);
        self.0 = rest;
        Some(Ok(batch))
    }
}

pub fn scan(part: &Bytes) -> Done {
    let mut contents = Contents::default();
    for batch in Batches(part) {
        let batch = batch?;
        let base = u64::from_be_bytes(batch[..8].try_into().expect("8 bytes"));
        let delta = u32::from_be_bytes(batch[23..27].try_into().expect("4 bytes"));
        contents.word(base + u64::from(delta) + ((batch.len() as u64) << 40));
    }
    Ok(contents)
}

/// The crate that kafka-protocol uses, over every batch.
pub fn crc(part: &Bytes) -> Done {
    let mut contents = Contents::default();
    for batch in Batches(part) {
        let batch = batch?;
        let stored = u32::from_be_bytes(batch[CRC_AT..CRC_AT + 4].try_into().expect("4 bytes"));
        if crc32c::crc32c(&batch[CRC_AT + 4..]) != stored {
            return Err("a CRC is wrong".into());
        }
        contents.word(u64::from(stored));
    }
    Ok(contents)
}

fn decoded(rest: &mut Bytes) -> Result<Vec<Record>, String> {
    RecordBatchDecoder::decode(rest).map(|set| set.records).map_err(|error| format!("{error:#}"))
}

pub fn visit(part: &Bytes, check: bool) -> Done {
    let (mut contents, mut rest) = (Contents::default(), part.clone());
    while !rest.is_empty() {
        let records = decoded(&mut rest)?;
        if check {
            records.iter().for_each(|record| contents.add(record));
        } else {
            records.iter().for_each(|record| contents.sum(record));
        }
    }
    Ok(contents)
}

#[derive(Default)]
struct Column {
    data: Vec<u8>,
    ends: Vec<i64>,
    sizes: Vec<i64>,
}

impl Column {
    fn add(&mut self, bytes: Option<&[u8]>) {
        self.data.extend_from_slice(bytes.unwrap_or_default());
        self.ends.push(self.data.len() as i64);
        self.sizes.push(size(bytes));
    }

    fn row(&self, row: usize) -> Option<&[u8]> {
        let end = self.ends[row] as usize;
        (self.sizes[row] >= 0).then(|| &self.data[end - self.sizes[row] as usize..end])
    }

    fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
        self.sizes.clear();
    }
}

/// Columns that are used again every so many rows.
#[derive(Default)]
struct Columns {
    offsets: Vec<i64>,
    timestamps: Vec<i64>,
    header_ends: Vec<usize>,
    keys: Column,
    values: Column,
    header_keys: Column,
    header_values: Column,
}

impl Columns {
    fn add(&mut self, record: &Record) {
        self.offsets.push(record.offset);
        self.timestamps.push(record.timestamp);
        self.keys.add(record.key.as_deref());
        self.values.add(record.value.as_deref());
        for (key, value) in &record.headers {
            self.header_keys.add(Some(key.as_bytes()));
            self.header_values.add(value.as_deref());
        }
        self.header_ends.push(self.header_keys.ends.len());
    }

    fn flush(&mut self, contents: Option<&mut Contents>) {
        if let Some(contents) = contents {
            let mut before = 0;
            for row in 0..self.offsets.len() {
                let (key, value) = (self.keys.row(row), self.values.row(row));
                let (ends, headers) = (edges(key) | edges(value) << 16, self.header_ends[row] - before);
                contents.fields(self.offsets[row], self.timestamps[row], size(key), size(value), ends, headers);
                before = self.header_ends[row];
            }
        }
        self.offsets.clear();
        self.timestamps.clear();
        self.header_ends.clear();
        for column in [&mut self.keys, &mut self.values, &mut self.header_keys, &mut self.header_values] {
            column.clear();
        }
    }
}

pub fn columns(part: &Bytes, check: bool) -> Done {
    let (mut contents, mut columns, mut rest) = (Contents::default(), Columns::default(), part.clone());
    while !rest.is_empty() {
        for record in decoded(&mut rest)? {
            columns.add(&record);
            if columns.offsets.len() == ROWS {
                columns.flush(check.then_some(&mut contents));
            }
        }
    }
    columns.flush(check.then_some(&mut contents));
    Ok(contents)
}

/// The records of each batch, as its encoder takes them.
pub fn read(part: &Bytes) -> Result<Vec<Vec<Record>>, String> {
    let (mut found, mut rest) = (vec![], part.clone());
    while !rest.is_empty() {
        let mut records = decoded(&mut rest)?;
        let base = records[0].offset;
        for record in &mut records {
            record.sequence = (record.offset - base) as i32 - 1; // it splits where offsets and sequences part
        }
        found.push(records);
    }
    Ok(found)
}

pub fn encode(batches: &[Vec<Record>]) -> Done {
    let (mut contents, mut data) = (Contents::default(), BytesMut::new());
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    for records in batches {
        data.clear();
        RecordBatchEncoder::encode(&mut data, records.iter(), &options).map_err(|error| format!("{error:#}"))?;
        contents.word(u64::from(u32::from_be_bytes(data[CRC_AT..CRC_AT + 4].try_into().expect("4 bytes"))));
    }
    Ok(contents)
}
