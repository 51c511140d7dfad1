"""Correct results and their accuracy: NumPy references, error budgets, and validators for ambiguous results.

`data` draws the values of a case's arguments. `evaluation` evaluates the reference for them and derives the budgets.
`records` defines the records of the outcome.

The package imports `cases` for the properties of results that the caller decides. References and validators never
import a vendor. A validator imports nothing from the reference, so that it proves independently that a result is valid.
"""
