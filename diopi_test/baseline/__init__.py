"""The baseline: files of cases with their data, expected results and error budgets.

The package only stores what `oracle` computes. The modules that only read stored cases (`level`, `manifest`, `store`
and `index_view`) import no reference.
"""
