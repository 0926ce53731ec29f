meta:
  id: time_index
  title: Apache Kafka, time index
  file-extension: timeindex
  license: Apache-2.0
  endian: be
doc: |
  An array of entries of 12 bytes, with neither header nor checksum.
seq:
  - id: entries
    type: time_index_entry
    repeat: expr
    repeat-expr: _io.size / 12
    doc: "Zeros may follow the last entry of a file that is in use."
  - id: rest
    size-eos: true
    doc: Bytes that are no whole entry; there should be none.
types:
  time_index_entry:
    seq:
      - id: timestamp_ms
        -orig-id: timestamp
        type: s8
        doc: "Largest timestamp of the segment so far."
        doc-ref: "SEG-TIX-002, SEG-TIX-004, SEG-TIX-006"
      - id: relative_offset
        -orig-id: relativeOffset
        type: s4
        doc: "Offset that stands for that timestamp, less the base offset of the segment."
        doc-ref: "SEG-TIX-003, SEG-TIX-005"
