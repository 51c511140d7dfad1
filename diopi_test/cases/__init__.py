"""Test cases: the case model, domains, layouts, and the cases of every function by family.

This package imports the standard (`diopi_proto`) and number formats, never a reference. If a case needs the result of
another function, the case names that result (`ResultOf`), and the reference computes it.
"""
