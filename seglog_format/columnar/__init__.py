"""The columnar engine: large logs as Arrow batches.

Kernels compiled by numba walk, check and decode entries without holding the interpreter's lock; what they make are
Arrow arrays that point into the file or into decompressed blocks. They cover entries of the common encodings only:
any other entry is left to the fallback decoder, which alone reports errors. So there is one set of rules,
and the engine does not repeat it.

Modules are imported at first use: numba, numpy and pyarrow come with the extra ``fast``.
"""
