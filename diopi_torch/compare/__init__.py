"""Calls of operators judged as they are made, and kept as cases: the one part of the device that sees the suite.

`contents` reads tensors, `calls` makes a case of a function's call, and `judged` says how it ended; `on_cpu` does what
an operator does on the CPU, and `outputs` compares. `session` does both as a program runs, `capture` keeps calls; what
they have in common is in `observation`.
"""
