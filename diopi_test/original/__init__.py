"""Migration from the original test suite of the interface: its configurations and command-line options.

The configurations are Python files. They are read as data and never executed.

- `source` evaluates expressions, with the functions and operators of `safe_calls`.
- `entries` reads the entries of case configurations, and `device` those of a vendor's `device_configs.py`.
- `names` finds the function that an original name means.
- `translate` converts entries to cases, with `tensors`, `values`, `attributes`, `adapters` and `gradients`.
- `skips` converts skips to waivers, and `networks` names replacements for configurations of networks.
- `folder` writes both, with a list of entries that could not be translated and the reasons.
"""
