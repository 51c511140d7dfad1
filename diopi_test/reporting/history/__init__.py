"""The history of runs: a SQLite database of their results, and the trends in it.

- `tables` defines the tables, which `docs/history.md` describes.
- `entry` derives the rows that a run adds.
- `database` writes and reads the database.
- `trends` compares the runs: causes of failures, accuracy, flaky cases, devices and speed.
"""
