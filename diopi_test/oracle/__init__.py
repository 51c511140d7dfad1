"""Correct results and their accuracy: NumPy references, error budgets, and validators for ambiguous results.

- `data` computes the values of a case's arguments.
- `evaluation` evaluates the reference for these values and derives the error budgets.
- `records` defines a case with its arguments and expected results, as a baseline stores it.
- `validators` decide whether an actual result is valid, for functions that have several valid results.

The package imports `cases` for the properties of results that the caller decides. References and validators never
import a vendor.
A validator calls no reference and checks the properties that make a result valid. Some validators also use the
reference's result, as one of the valid results.
"""
