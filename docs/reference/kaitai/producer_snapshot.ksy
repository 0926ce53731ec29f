meta:
  id: producer_snapshot
  title: Apache Kafka, producer snapshot
  file-extension: snapshot
  license: Apache-2.0
  endian: be
doc: |
  What a broker knows about producers at an offset, which is the name of the file.
seq:
  - id: header
    type: producer_snapshot_header
  - id: producers
    type: producer_state_entry
    repeat: expr
    repeat-expr: header.count
types:
  producer_snapshot_header:
    seq:
      - id: version
        -orig-id: version
        type: s2
        doc: "Version of the file: 1."
        doc-ref: "SEG-PSN-001"
      - id: crc
        -orig-id: crc
        type: u4
        doc: "CRC-32C of everything after this field."
        doc-ref: "SEG-PSN-002"
      - id: count
        -orig-id: count
        type: s4
        doc: "Number of entries."
        doc-ref: "SEG-PSN-003"
  producer_state_entry:
    seq:
      - id: producer_id
        -orig-id: producerId
        type: s8
        doc: "Producer; each occurs once, in no particular order."
        doc-ref: "SEG-PSN-004"
      - id: producer_epoch
        -orig-id: producerEpoch
        type: s2
        doc: "Its latest epoch."
        doc-ref: "SEG-PSN-004"
      - id: last_sequence
        -orig-id: lastSequence
        type: s4
        doc: "Sequence number of its last data record; -1 none."
        doc-ref: "SEG-PSN-004"
      - id: last_offset
        -orig-id: lastOffset
        type: s8
        doc: "Offset of its last data record; -1 none."
        doc-ref: "SEG-PSN-006, SEG-PSN-004"
      - id: offset_delta
        -orig-id: offsetDelta
        type: s4
        doc: "Last offset less first offset of its newest data batch."
        doc-ref: "SEG-PSN-004"
      - id: timestamp_ms
        -orig-id: timestamp
        type: s8
        doc: "Timestamp of what it appended last, markers included."
        doc-ref: "SEG-PSN-004"
      - id: coordinator_epoch
        -orig-id: coordinatorEpoch
        type: s4
        doc: "Coordinator epoch of its last transaction marker; -1 none."
        doc-ref: "SEG-PSN-004"
      - id: current_txn_first_offset
        -orig-id: currentTxnFirstOffset
        type: s8
        doc: "First offset of its open transaction; -1 none."
        doc-ref: "SEG-PSN-006, SEG-PSN-004"
