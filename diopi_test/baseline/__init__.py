"""The baseline: files of cases with their data, expected results and error budgets, computed by the references.

The package imports `cases` and `oracle`. The modules that only read stored cases (`level`, `manifest`, `store`,
`index_view` and `records`) import no reference.
"""
