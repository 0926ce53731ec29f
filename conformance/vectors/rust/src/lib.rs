//! Cases of the conformance suite of the segmented log format, each a line of JSON for a parser of your choice.

const VECTORS: &str = include_str!("vectors.jsonl");

/// Each case: an object with `id`, `op`, `level`, `result`, `request` and `expect`.
pub fn cases() -> impl Iterator<Item = &'static str> {
    VECTORS.lines()
}
