meta:
  id: varint32
  title: Apache Kafka, varint of 32 bits
  license: Apache-2.0
  endian: be
doc: |
  A signed number of 32 bits, zig-zag encoded, in groups of seven bits, low group first.
  Higher bits of the last group are dropped.
seq:
  - id: groups
    type: u1
    repeat: until
    repeat-until: _ < 128
instances:
  size:
    value: groups.size
  unsigned:
    value: >-
      (groups[0] % 128
      + (size > 1 ? (groups[1] % 128) * 128 : 0)
      + (size > 2 ? (groups[2] % 128) * 16384 : 0)
      + (size > 3 ? (groups[3] % 128) * 2097152 : 0)
      + (size > 4 ? (groups[4] % 128) * 268435456 : 0)) % 4294967296
  value:
    value: 'unsigned % 2 == 0 ? unsigned / 2 : -(unsigned / 2) - 1'
