"""Time index entry (chapter 41). The file is an array of these, with neither header nor checksum."""

from construct import Int32sb, Int64sb, Struct

from seglog_format.schema.fields import Doc

TimeIndexEntry = Struct(
    "timestamp_ms"
    / Int64sb
    * Doc("Largest timestamp of the segment so far.", "SEG-TIX-002", "SEG-TIX-004", "SEG-TIX-006", since="0.10.1"),
    "relative_offset"
    / Int32sb
    * Doc(
        "Offset that stands for that timestamp, less the base offset of the segment.",
        "SEG-TIX-003",
        "SEG-TIX-005",
        since="0.10.1",
    ),
)

assert TimeIndexEntry.sizeof() == 12
