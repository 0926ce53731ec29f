"""Decoders that parse with the declarations of `seglog_format.schema` themselves, to be read beside `spec/`.

They are slow. Tests compare the fast decoders with them: model objects and errors must be the same.
"""
