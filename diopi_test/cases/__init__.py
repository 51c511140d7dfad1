"""Test cases: the case model, domains, layouts, and the cases of every function by family.

The other modules of this package contain what the families share. `selection` selects the cases of a
level, and derives further cases from those of the families.

This package imports the standard (`diopi_proto`) and number formats, never a reference. If a case needs the result of
another function, the case names that result (`ResultOf`), and the reference computes it.
"""
