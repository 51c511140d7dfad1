"""Compare operator calls with the suite's reference while a program runs, and store them as cases.

`contents` reads tensors, `calls` makes a case of a function's call, and `comparison` says how it ended; `on_cpu` does
what an operator does on the CPU, and `outputs` compares. `session` does both as a program runs, `capture` keeps calls;
what they have in common is in `observation`.
"""
