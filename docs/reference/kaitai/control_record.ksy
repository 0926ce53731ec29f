meta:
  id: control_record
  title: Apache Kafka, control record
  imports:
    - varint32
    - varint64
  license: Apache-2.0
  endian: be
doc: |
  One record of a batch whose control bit (attributes, bit 5) is set: key and value by the type in the key.
  In metadata logs of Kafka 2.7 and 2.8, type 3 may stand for 2.
seq:
  - id: length
    type: varint32
  - id: attributes
    type: s1
  - id: timestamp_delta
    type: varint64
  - id: offset_delta
    type: varint32
  - id: key_length
    type: varint32
  - id: key
    type: control_record_key
    size: key_length.value
  - id: value_length
    type: varint32
  - id: value
    size: value_length.value
    doc: Of a type that is not known, the bytes.
    type:
      switch-on: key.type
      cases:
        0: end_transaction_marker
        1: end_transaction_marker
        2: leader_change_message
        3: snapshot_header_record
        4: snapshot_footer_record
        5: kraft_version_record
        6: voters_record
  - id: headers_count
    type: varint32
  - id: headers
    type: record_header
    repeat: expr
    repeat-expr: headers_count.value
types:
  bytes_after_varint32:
    doc: A length and that many bytes; a negative length is null.
    seq:
      - id: length
        type: varint32
      - id: content
        size: length.value
        if: length.value >= 0
  compact_string:
    doc: A length plus one, and that many bytes of UTF-8.
    seq:
      - id: length_plus_one
        type: varint32
      - id: text
        type: str
        encoding: UTF-8
        size: length_plus_one.unsigned - 1
  uuid:
    seq:
      - id: content
        size: 16
  tagged_fields:
    doc: Fields that a reader may skip.
    seq:
      - id: count
        type: varint32
      - id: fields
        type: tagged_field
        repeat: expr
        repeat-expr: count.unsigned
  tagged_field:
    seq:
      - id: tag
        type: varint32
        doc: Read it unsigned.
      - id: size
        type: varint32
      - id: content
        size: size.unsigned
  control_record_key:
    seq:
      - id: version
        -orig-id: version
        type: s2
        doc: "Version of the key: 0; higher ones are read as 0."
        doc-ref: "SEG-CTL-001, SEG-CTL-002"
      - id: type
        -orig-id: type
        type: s2
        doc: "0 ABORT, 1 COMMIT, 2 to 6 of KRaft; others are skipped."
        doc-ref: "SEG-CTL-001, SEG-CTL-003"
  end_transaction_marker:
    seq:
      - id: version
        -orig-id: version
        type: s2
        doc: "Version of the value: 0; higher ones are read as 0."
        doc-ref: "SEG-CTL-004"
      - id: coordinator_epoch
        -orig-id: coordinatorEpoch
        type: s4
        doc: "Epoch of the transaction coordinator that ended the transaction."
        doc-ref: "SEG-CTL-004"
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
  leader_change_message:
    doc: "LeaderChangeMessage; versions that are not known are read as the latest that is."
    seq:
      - id: v0
        type: leader_change_message_v0
        if: version <= 0
      - id: v1
        type: leader_change_message_v1
        if: version >= 1
    instances:
      version:
        pos: 0
        type: s2
  leader_change_message_v0:
    seq:
      - id: version
        type: s2
        doc: "Version of this value; what follows depends on it."
        doc-ref: "SEG-CTL-006"
      - id: leader_id
        type: s4
        doc: "Node id of the new leader."
        doc-ref: "SEG-CTL-006"
      - id: voters_count_plus_one
        type: varint32
      - id: voters
        type: leader_change_message_v0_voters
        repeat: expr
        repeat-expr: voters_count_plus_one.unsigned - 1
        doc: "Voters of the quorum in this epoch."
        doc-ref: "SEG-CTL-006"
      - id: granting_voters_count_plus_one
        type: varint32
      - id: granting_voters
        type: leader_change_message_v0_granting_voters
        repeat: expr
        repeat-expr: granting_voters_count_plus_one.unsigned - 1
        doc: "Voters that voted for the leader."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  leader_change_message_v0_voters:
    seq:
      - id: voter_id
        type: s4
        doc: "Node id of the voter."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  leader_change_message_v0_granting_voters:
    seq:
      - id: voter_id
        type: s4
        doc: "Node id of the voter."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  leader_change_message_v1:
    seq:
      - id: version
        type: s2
        doc: "Version of this value; what follows depends on it."
        doc-ref: "SEG-CTL-006"
      - id: leader_id
        type: s4
        doc: "Node id of the new leader."
        doc-ref: "SEG-CTL-006"
      - id: voters_count_plus_one
        type: varint32
      - id: voters
        type: leader_change_message_v1_voters
        repeat: expr
        repeat-expr: voters_count_plus_one.unsigned - 1
        doc: "Voters of the quorum in this epoch."
        doc-ref: "SEG-CTL-006"
      - id: granting_voters_count_plus_one
        type: varint32
      - id: granting_voters
        type: leader_change_message_v1_granting_voters
        repeat: expr
        repeat-expr: granting_voters_count_plus_one.unsigned - 1
        doc: "Voters that voted for the leader."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  leader_change_message_v1_voters:
    seq:
      - id: voter_id
        type: s4
        doc: "Node id of the voter."
        doc-ref: "SEG-CTL-006"
      - id: voter_directory_id
        type: uuid
        doc: "Id of the voter's metadata log directory."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  leader_change_message_v1_granting_voters:
    seq:
      - id: voter_id
        type: s4
        doc: "Node id of the voter."
        doc-ref: "SEG-CTL-006"
      - id: voter_directory_id
        type: uuid
        doc: "Id of the voter's metadata log directory."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  snapshot_header_record:
    seq:
      - id: version
        type: s2
        doc: "Version of this value; what follows depends on it."
        doc-ref: "SEG-CTL-006"
      - id: last_contained_log_timestamp
        type: s8
        doc: "Append time (ms) of the last record that the snapshot covers."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  snapshot_footer_record:
    seq:
      - id: version
        type: s2
        doc: "Version of this value; what follows depends on it."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  kraft_version_record:
    seq:
      - id: version
        type: s2
        doc: "Version of this value; what follows depends on it."
        doc-ref: "SEG-CTL-006"
      - id: k_raft_version
        type: s2
        doc: "Quorum version in force from here on."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  voters_record:
    seq:
      - id: version
        type: s2
        doc: "Version of this value; what follows depends on it."
        doc-ref: "SEG-CTL-006"
      - id: voters_count_plus_one
        type: varint32
      - id: voters
        type: voters_record_voters
        repeat: expr
        repeat-expr: voters_count_plus_one.unsigned - 1
        doc: "Voters of the quorum from here on."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  voters_record_voters:
    seq:
      - id: voter_id
        type: s4
        doc: "Node id of the voter."
        doc-ref: "SEG-CTL-006"
      - id: voter_directory_id
        type: uuid
        doc: "Id of the voter's metadata log directory."
        doc-ref: "SEG-CTL-006"
      - id: endpoints_count_plus_one
        type: varint32
      - id: endpoints
        type: voters_record_voters_endpoints
        repeat: expr
        repeat-expr: endpoints_count_plus_one.unsigned - 1
        doc: "Where the voter can be reached."
        doc-ref: "SEG-CTL-006"
      - id: k_raft_version_feature
        type: voters_record_voters_k_raft_version_feature
        doc: "Quorum versions that the voter supports."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  voters_record_voters_endpoints:
    seq:
      - id: name
        type: compact_string
        doc: "Name of the listener."
        doc-ref: "SEG-CTL-006"
      - id: host
        type: compact_string
        doc: "Host name."
        doc-ref: "SEG-CTL-006"
      - id: port
        type: u2
        doc: "Port."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
  voters_record_voters_k_raft_version_feature:
    seq:
      - id: min_supported_version
        type: s2
        doc: "Lowest quorum version that the voter supports."
        doc-ref: "SEG-CTL-006"
      - id: max_supported_version
        type: s2
        doc: "Highest quorum version that the voter supports."
        doc-ref: "SEG-CTL-006"
      - id: tagged_fields
        type: tagged_fields
        doc: "Fields that a reader may skip."
        doc-ref: "SEG-CTL-006"
