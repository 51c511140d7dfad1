"""Conformance of collectives: cases that every implementation of the prototypes in `diopi_proto` must pass.

- `bench` has the fixture of the cases, which calls a library with `lib_rt.collectives_client`, and `combination`
  the expected results of operations with their error budgets.
- `communicator_cases`, `movement_cases`, `combination_cases`, `order_cases` and `failure_cases`: the cases, which
  `all_cases` lists.
- `worker`: runs cases as one rank. `run`: starts a worker per rank, connects them and returns the verdict of each case.
"""
