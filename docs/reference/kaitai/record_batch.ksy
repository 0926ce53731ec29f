meta:
  id: record_batch
  title: Apache Kafka, record batch (magic 2)
  imports:
    - varint32
    - varint64
    - control_record
  license: Apache-2.0
  endian: be
doc: |
  A record batch of magic 2: a header of 61 bytes, and records that may be compressed together.
seq:
  - id: header
    type: record_batch_header
  - id: content
    type: record_batch_content
    size: header.batch_length - 49
    doc: The records, in place or compressed; nothing of them is read before it is asked for.
instances:
  codec:
    value: header.attributes & 7
    doc: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
  last_offset:
    value: header.base_offset + header.last_offset_delta
  is_control:
    value: (header.attributes & 32) != 0
    doc: The records are of brokers and controllers, and no data.
types:
  record_batch_content:
    instances:
      records:
        pos: 0
        type: record
        repeat: expr
        repeat-expr: _parent.header.records_count
        if: _parent.codec == 0
      compressed:
        pos: 0
        size-eos: true
        if: _parent.codec != 0
      control_records:
        pos: 0
        type: control_record
        repeat: expr
        repeat-expr: _parent.header.records_count
        if: _parent.codec == 0 and _parent.is_control
        doc: The same records, with keys and values decoded.
  bytes_after_varint32:
    doc: A length and that many bytes; a negative length is null.
    seq:
      - id: length
        type: varint32
      - id: content
        size: length.value
        if: length.value >= 0
  record_batch_header:
    seq:
      - id: base_offset
        -orig-id: baseOffset
        type: s8
        doc: "Offset of the first record of the original batch."
        doc-ref: "SEG-BAT-005"
      - id: batch_length
        -orig-id: batchLength
        type: s4
        doc: "Bytes after this field: the whole batch less 12."
        doc-ref: "SEG-BAT-002"
      - id: partition_leader_epoch
        -orig-id: partitionLeaderEpoch
        type: s4
        doc: "Epoch of the leader that appended it; -1 unknown."
        doc-ref: "SEG-BAT-021"
      - id: magic
        -orig-id: magic
        type: s1
        doc: "Version of this entry: 2. At the same position in every format."
        doc-ref: "SEG-BAT-004"
      - id: crc
        -orig-id: crc
        type: u4
        doc: "CRC-32C of everything from the attributes to the end of the batch."
        doc-ref: "SEG-BAT-003"
      - id: attributes
        -orig-id: attributes
        type: s2
        doc: "Bits 0-2 codec, 3 timestamp type (1: LogAppendTime), 4 transactional, 5 control, 6 delete horizon."
        doc-ref: "SEG-BAT-014, SEG-COD-001, SEG-BAT-011, SEG-BAT-013"
      - id: last_offset_delta
        -orig-id: lastOffsetDelta
        type: s4
        doc: "Last offset of the original batch less the base offset."
        doc-ref: "SEG-BAT-006"
      - id: base_timestamp_ms
        -orig-id: baseTimestamp
        type: s8
        doc: "What timestamp deltas count from; the delete horizon where bit 6 is set; -1 none."
        doc-ref: "SEG-BAT-012"
      - id: max_timestamp_ms
        -orig-id: maxTimestamp
        type: s8
        doc: "Largest record timestamp, or the append time; -1 none."
        doc-ref: "SEG-BAT-015"
      - id: producer_id
        -orig-id: producerId
        type: s8
        doc: "Idempotent or transactional producer; -1 none."
        doc-ref: "SEG-BAT-020"
      - id: producer_epoch
        -orig-id: producerEpoch
        type: s2
        doc: "Epoch of that producer; -1 none."
        doc-ref: "SEG-BAT-020"
      - id: base_sequence
        -orig-id: baseSequence
        type: s4
        doc: "Sequence number of the first record of the original batch; -1 none."
        doc-ref: "SEG-BAT-017"
      - id: records_count
        -orig-id: recordsCount
        type: s4
        doc: "Records that are stored; 0 in a batch that compaction emptied."
        doc-ref: "SEG-BAT-007"
  record:
    seq:
      - id: length
        -orig-id: length
        type: varint32
        doc: "Bytes after this field."
        doc-ref: "SEG-REC-002, SEG-REC-001"
      - id: attributes
        -orig-id: attributes
        type: s1
        doc: "0; no bit is defined."
        doc-ref: "SEG-REC-003"
      - id: timestamp_delta
        -orig-id: timestampDelta
        type: varint64
        doc: "Timestamp minus the base timestamp; may be negative."
        doc-ref: "SEG-BAT-012"
      - id: offset_delta
        -orig-id: offsetDelta
        type: varint32
        doc: "Offset minus the base offset."
        doc-ref: "SEG-REC-012"
      - id: key
        -orig-id: key
        type: bytes_after_varint32
        doc: "Length (varint; negative: null) and bytes."
        doc-ref: "SEG-REC-006"
      - id: value
        -orig-id: value
        type: bytes_after_varint32
        doc: "Length (varint; negative: null) and bytes. Null is a tombstone."
        doc-ref: "SEG-REC-006"
      - id: headers_count
        -orig-id: headersCount
        type: varint32
        doc: "Number of headers."
        doc-ref: "SEG-REC-006, SEG-REC-008"
      - id: headers
        -orig-id: headers
        type: record_header
        repeat: expr
        repeat-expr: headers_count.value
        doc: "Keys may repeat and may be empty; order counts."
        doc-ref: "SEG-REC-006, SEG-REC-010"
  record_header:
    seq:
      - id: key
        -orig-id: key
        type: bytes_after_varint32
        doc: "Length (varint, 0 or more) and UTF-8 bytes."
        doc-ref: "SEG-REC-006, SEG-REC-009, SEG-REC-011"
      - id: value
        -orig-id: value
        type: bytes_after_varint32
        doc: "Length (varint; negative: null) and bytes."
        doc-ref: "SEG-REC-006"
