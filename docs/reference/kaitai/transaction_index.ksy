meta:
  id: transaction_index
  title: Apache Kafka, transaction index
  file-extension: txnindex
  license: Apache-2.0
  endian: be
doc: |
  An array of entries of 34 bytes, with neither header nor checksum.
seq:
  - id: entries
    type: transaction_index_entry
    repeat: expr
    repeat-expr: _io.size / 34
    doc: "One for each aborted transaction that ends here."
  - id: rest
    size-eos: true
    doc: Bytes that are no whole entry; there should be none.
types:
  transaction_index_entry:
    seq:
      - id: version
        -orig-id: version
        type: s2
        doc: "Version of this entry: 0."
        doc-ref: "SEG-TXN-002"
      - id: producer_id
        -orig-id: producerId
        type: s8
        doc: "Producer whose transaction was aborted."
        doc-ref: "SEG-TXN-006"
      - id: first_offset
        -orig-id: firstOffset
        type: s8
        doc: "First record of the transaction in this partition, maybe in an earlier segment."
        doc-ref: "SEG-TXN-005"
      - id: last_offset
        -orig-id: lastOffset
        type: s8
        doc: "The ABORT marker."
        doc-ref: "SEG-TXN-006, SEG-TXN-003, SEG-TXN-004"
      - id: last_stable_offset
        -orig-id: lastStableOffset
        type: s8
        doc: "Last stable offset once this transaction has ended: the first offset of the oldest one that another producer still has open, else the marker's offset plus 1."
        doc-ref: "SEG-TXN-008, SEG-TXN-007"
