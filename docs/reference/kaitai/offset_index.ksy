meta:
  id: offset_index
  title: Apache Kafka, offset index
  file-extension: index
  license: Apache-2.0
  endian: be
doc: |
  An array of entries of 8 bytes, with neither header nor checksum.
seq:
  - id: entries
    type: offset_index_entry
    repeat: expr
    repeat-expr: _io.size / 8
    doc: "Zeros may follow the last entry of a file that is in use."
  - id: rest
    size-eos: true
    doc: Bytes that are no whole entry; there should be none.
types:
  offset_index_entry:
    seq:
      - id: relative_offset
        -orig-id: relativeOffset
        type: s4
        doc: "Indexed offset less the base offset of the segment; 0 or more."
        doc-ref: "SEG-IDX-002, SEG-IDX-004"
      - id: position
        -orig-id: position
        type: s4
        doc: "Byte of the `.log` file at which an entry starts."
        doc-ref: "SEG-IDX-003, SEG-IDX-005, SEG-IDX-006"
