"""Files and bytes: the only package that opens, reads, writes, renames or deletes files."""
