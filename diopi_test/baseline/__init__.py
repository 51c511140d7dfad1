"""The stored truth: cases with their data, expected results and budgets, computed by the reference and stored in files.

Imports `cases` and `oracle`; but `level`, `manifest`, `store`, `index_view` and `records`, with which stored
cases are read, import no reference.
"""
