"""Decoders that parse with the declarations of `seglog_format.schema` themselves, to be read beside `spec/`.

They take their time. The fast decoders are tested against them: the same model objects, and the same errors.
"""
