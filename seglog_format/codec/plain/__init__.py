"""Decoders by small steps over bytes: the default for small reads, and the fallback of compiled code.

They load no declarations. Values and errors are those of `seglog_format.codec.reference`.
"""
