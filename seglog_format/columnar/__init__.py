"""The columnar engine: large logs as Arrow batches.

Kernels compiled by numba walk, check and decode entries without holding the interpreter's lock. Their results are
Arrow arrays that point into the file or into decompressed blocks. They cover only entries of the common encodings.
The fallback decoder reads all other entries, and only it reports errors, so each rule is implemented once.

Modules are imported at first use: numba, numpy and pyarrow come with the extra ``fast``.
"""
