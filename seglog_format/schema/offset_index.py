"""Offset index entry (chapter 40). The file is an array of these, with neither header nor checksum."""

from construct import Int32sb, Struct

from seglog_format.schema.fields import Doc

OffsetIndexEntry = Struct(
    "relative_offset"
    / Int32sb
    * Doc("Indexed offset less the base offset of the segment; 0 or more.", "SEG-IDX-002", "SEG-IDX-004"),
    "position"
    / Int32sb
    * Doc("Byte of the `.log` file at which an entry starts.", "SEG-IDX-003", "SEG-IDX-005", "SEG-IDX-006"),
)

assert OffsetIndexEntry.sizeof() == 8
