"""Reports of runs, for people and programs.

- `reading` reads a report from its JSON file or derives it from the log of a run.
- `html` writes pages for people, `markdown` comments for the discussion of a change, `junit` files for build servers.
- `comparison` compares two runs case by case.
- `evidence` packs a run into an archive, with everything from which its result is derived; `signature` signs it.
- `history` stores the results of many runs in a database and finds trends in them.
"""
