"""The history of runs: a SQLite database of what they found, and the trends in it.

`docs/history.md` describes the tables.
"""
