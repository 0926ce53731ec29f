meta:
  id: log_segment
  title: Apache Kafka, log segment
  file-extension: log
  imports:
    - record_batch
    - message
  license: Apache-2.0
  endian: be
doc: |
  A .log file: entries one after the other, each read by its own magic. A size that cannot be right
  ends the entries, as the end of the file does; what follows is the tail.
seq:
  - id: entries
    type: entry
    repeat: until
    repeat-until: _.is_last
    if: starts_whole
  - id: tail
    size-eos: true
    doc: Zeros, or an entry that is cut short.
instances:
  first_size:
    pos: 8
    type: s4
  starts_whole:
    value: _io.size > 17 and first_size >= 14 and first_size <= _io.size - 12
types:
  entry:
    seq:
      - id: batch
        type: record_batch
        if: magic == 2
      - id: message
        type: message
        if: magic == 0 or magic == 1
      - id: end
        size: 0
        valid:
          expr: magic >= 0 and magic <= 2
    instances:
      magic:
        pos: _io.pos + 16
        type: s1
        doc: At the same position in every format; it decides what the rest means.
      following_size:
        pos: _io.pos + 8
        type: s4
      is_last:
        value: _io.size - _io.pos <= 17 or following_size < 14 or following_size > _io.size - _io.pos - 12
