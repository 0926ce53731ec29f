//! One number for the contents of a log, as benchmarks/contents.py defines it.

use kafka_protocol::records::Record;

#[derive(Clone, Copy, Default)]
pub struct Contents {
    pub number: u64,
    pub count: u64,
}

impl Contents {
    pub fn add(&mut self, record: &Record) {
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let edges = edges(key) | edges(value) << 16;
        self.fields(record.offset, record.timestamp, size(key), size(value), edges, record.headers.len());
    }

    /// What a pass adds up that is timed and not checked; as it counts nothing, nobody takes it for the number.
    pub fn sum(&mut self, record: &Record) {
        let sizes = size(record.key.as_deref()) + size(record.value.as_deref());
        self.number = self.number.wrapping_add((record.offset + record.timestamp + sizes) as u64);
    }

    pub fn fields(&mut self, offset: i64, timestamp: i64, key: i64, value: i64, edges: u64, headers: usize) {
        let sizes = ((key + 1) << 40).wrapping_add((value + 1) << 29) as u64;
        let word = (offset as u64).wrapping_add((timestamp as u64) << 17).wrapping_add(sizes);
        self.word(word.wrapping_add(edges << 31).wrapping_add((headers as u64) << 57));
    }

    pub fn word(&mut self, word: u64) {
        self.number = self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(word);
        self.count += 1;
    }
}

pub fn size(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| bytes.len() as i64)
}

pub fn edges(bytes: Option<&[u8]>) -> u64 {
    match bytes {
        Some([only]) => u64::from(*only) * 257,
        Some([first, .., last]) => u64::from(*first) | u64::from(*last) << 8,
        _ => 0,
    }
}
