"""Causes: failed cases of a run, grouped by what they have in common.

A run of many cases can fail in hundreds of them because of a few defects of the vendor. This package finds the groups
in these steps, each in a module of its name:

- `finding` selects the main finding of each failed case: the problem that most likely leads to the defect.
- `traits` lists unusual properties of a case, such as a NaN among its inputs.
- `signature` describes what the cases of a group have in common, and `grouping` forms the groups.
- `diagnosis` looks for the probable defect in a catalog, and `severity` states how bad a failure is.
- `report` combines everything into the causes (`cause`) of a report, and `text` prints them.

The groups depend only on the records in a log. Therefore the logs of older runs can be grouped again.
"""
