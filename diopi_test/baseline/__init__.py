"""The baseline: files of cases with their data, expected results and error budgets.

Cases are grouped in levels, such as `smoke`. A level is a folder with one HDF5 file per function (`store`) and a
manifest of these files (`level`, `manifest`). The package only stores what `oracle` computes (`generate`). The modules
that only read stored cases (`level`, `manifest`, `store` and `index_view`) import no reference.

Levels of many large cases store no inputs. These are drawn again when a case is read (`regeneration`), and results are
stored compactly (`compaction`). A user can also describe cases in files (`descriptions`, `named_domains`). The results
of described cases are computed when a run needs them (`on_demand`, `stability`).
"""
