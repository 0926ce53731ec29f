"""Files and bytes: opening, reading, writing, renaming and deleting.

A few modules elsewhere open or change files of their own, such as locks; `tests/test_file_access.py` lists them.
"""
