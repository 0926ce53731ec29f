"""Decoders that parse with the declarations of `seglog_format.schema` themselves, to be read beside `spec/`.

They take their time. The quick decoders are held to them: the same model objects, and the same errors.
"""
