"""Hand-written decoders in plain Python: the default for small reads, and the fallback of compiled code.

They do not import the declarations. Values and errors are those of `seglog_format.codec.reference`.
"""
