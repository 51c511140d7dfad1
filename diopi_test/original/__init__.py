"""Migration from the original DIOPI test suite: its configurations become cases and waivers of this suite.

A configuration is a Python file that contains a dictionary of entries. An entry of a *case configuration* names one or
more functions, and lists a value per case for each tensor and attribute. An entry of a vendor's `device_configs.py`
names an entry of the case configuration, and marks with `Skip(…)` which of its cases a device does not run; a skip
becomes a waiver, which states a reason. The files are parsed as data and never executed.

- `source` evaluates expressions, with the functions and operators of `safe_calls`.
- `entries` reads the entries of case configurations, and `device` those of a vendor's `device_configs.py`.
- `names` finds the function that an original name means.
- `translate` converts entries to cases, with `tensors`, `values`, `attributes`, `adapters` and `gradients`.
- `skips` converts skips to waivers, and `networks` names replacements for configurations of networks.
- `folder` writes both, with a list of entries that could not be translated and the reasons.
"""
