"""The columnar engine: logs at volume, into Arrow.

Kernels compiled by numba walk, check and decode entries without holding the interpreter's lock; what they make are
Arrow arrays that point into the file or into decompressed blocks. They take what is beyond doubt and nothing else:
whatever is irregular in an entry is left to the reference decoder, which alone knows errors. So there is one truth,
and the engine need not repeat it.

Nothing here is imported before someone asks for it: numba, numpy and pyarrow come with the extra ``fast``.
"""
