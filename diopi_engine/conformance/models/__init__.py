"""Conformance with whole networks: a vendor runs each operator by operator, and a library runs it as an engine.

- `zoo`: the networks.
- `rounding`: evaluation of a network in float64 with simulated float32 rounding.
- `truth`: the expected outputs and their error budgets.
- `making`: writes all of this to files.
- `by_operators`: the cases of a vendor; `as_engines`: those of a library.
- `names`: the names of the cases, without importing PyTorch.

This is the only part of the engines that imports PyTorch, its device and the suite.
"""
