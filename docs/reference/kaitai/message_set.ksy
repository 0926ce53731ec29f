meta:
  id: message_set
  title: Apache Kafka, message set (magic 0 and 1)
  imports:
    - message
  license: Apache-2.0
  endian: be
doc: |
  Messages of magic 0 and 1, one after the other: what a compressed wrapper holds once it is decompressed.
seq:
  - id: messages
    type: message
    repeat: eos
