"""Reports of finished runs, for people and programs.

`reading` reads a report from its JSON or from a log. `html`, `markdown` and `junit` write reports for people, for
discussions of a change and for build servers. `comparison` compares two runs. `evidence` packs a run and everything
from which its result is derived into an archive.
"""
