"""The arithmetic that a vendor declares: the suite evaluates references in it, and derives error budgets from that.

A *rule* computes an operation with the errors of the arithmetic. An evaluation of a reference in the arithmetic is
called a *round*. There are eight rounds for each algorithm of convolutions, with different directions of the errors. If
factors of products are rounded, there is a ninth round, in which the sums of products move as a whole.

- `array` defines arrays that apply the rules of an arithmetic while an unchanged reference computes with them.
- `signs` draws the directions in which rounding errors move numbers.
- `products`, `convolution`, `elementary`, `accumulation` and `emulation` have the rules of one kind of deviation each.
- `change` measures how much a declared arithmetic changes the results of a reference.
- `declared_case` adds this change to the budgets of a case.
"""
