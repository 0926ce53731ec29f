meta:
  id: message
  title: Apache Kafka, message (magic 0 and 1)
  license: Apache-2.0
  endian: be
doc: |
  One message of magic 0 or 1, plain or a compressed wrapper.
seq:
  - id: v0
    type: message_v0
    if: magic == 0
  - id: v1
    type: message_v1
    if: magic == 1
instances:
  magic:
    pos: _io.pos + 16
    type: s1
types:
  message_v0:
    seq:
      - id: header
        type: message_v0_header
      - id: content
        type: key_and_value
        size: header.message_size - 6
        doc: Key and value; they are not read before they are asked for.
  message_v1:
    seq:
      - id: header
        type: message_v1_header
      - id: content
        type: key_and_value
        size: header.message_size - 14
        doc: Key and value; they are not read before they are asked for.
  key_and_value:
    instances:
      fields:
        pos: 0
        type: pair
  pair:
    seq:
      - id: key
        type: bytes_after_int32
      - id: value
        type: bytes_after_int32
        doc: In a compressed wrapper, the messages inside.
  bytes_after_int32:
    doc: A length and that many bytes; a negative length is null.
    seq:
      - id: length
        type: s4
      - id: content
        size: length
        if: length >= 0
  message_v0_header:
    seq:
      - id: offset
        -orig-id: offset
        type: s8
        doc: "Of this message; in a wrapper, of the last message inside."
        doc-ref: "SEG-MSG-025, SEG-MSG-012, SEG-MSG-024"
      - id: message_size
        -orig-id: messageSize
        type: s4
        doc: "Bytes after this field; at least 14 in magic 0 and 22 in magic 1."
        doc-ref: "SEG-MSG-003"
      - id: crc
        -orig-id: crc
        type: u4
        doc: "CRC-32 of everything from the magic to the end of the message."
        doc-ref: "SEG-MSG-004"
      - id: magic
        -orig-id: magic
        type: s1
        doc: "Version of this message: 0 or 1."
        doc-ref: "SEG-BAT-004, SEG-MSG-017"
      - id: attributes
        -orig-id: attributes
        type: s1
        doc: "Bits 0-2 codec; the others mean nothing."
        doc-ref: "SEG-MSG-020, SEG-COD-001"
  message_v1_header:
    seq:
      - id: offset
        -orig-id: offset
        type: s8
        doc: "Of this message; in a wrapper, of the last message inside."
        doc-ref: "SEG-MSG-025, SEG-MSG-012, SEG-MSG-024"
      - id: message_size
        -orig-id: messageSize
        type: s4
        doc: "Bytes after this field; at least 14 in magic 0 and 22 in magic 1."
        doc-ref: "SEG-MSG-003"
      - id: crc
        -orig-id: crc
        type: u4
        doc: "CRC-32 of everything from the magic to the end of the message."
        doc-ref: "SEG-MSG-004"
      - id: magic
        -orig-id: magic
        type: s1
        doc: "Version of this message: 0 or 1."
        doc-ref: "SEG-BAT-004, SEG-MSG-017"
      - id: attributes
        -orig-id: attributes
        type: s1
        doc: "Bits 0-2 codec, 3 timestamp type (1: LogAppendTime)."
        doc-ref: "SEG-MSG-020, SEG-COD-001, SEG-MSG-015"
      - id: timestamp_ms
        -orig-id: timestamp
        type: s8
        doc: "Milliseconds since 1970; -1 none."
        doc-ref: "SEG-MSG-002, SEG-MSG-021"
