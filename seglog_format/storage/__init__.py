"""Files and bytes: opening, reading, writing, renaming and deleting.

A few modules of other packages also open or change files, such as locks; `tests/test_file_access.py` lists them.
"""
