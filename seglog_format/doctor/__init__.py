"""Answers that join what the other packages know: where a record is, and what is wrong with a directory."""
