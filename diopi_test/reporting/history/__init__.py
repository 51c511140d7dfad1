"""The history of runs: a SQLite database of their results, and the trends in it.

`docs/history.md` describes the tables.
"""
