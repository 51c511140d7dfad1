"""Coming from the interface's original test suite: its configurations and its command line's words.

The configurations are Python files. They are read as data, never executed: `source` reads expressions, `entries` what
an entry of a case configuration or of a vendor's `device_configs.py` says, `names` which function it means. `translate`
makes cases of it, `skips` waivers, and `folder` writes both, with a list of what could not be translated and why.
"""
