"""Compare the operator calls of a PyTorch program with the suite's reference while the program runs.

An *operator* is an ATen operator of PyTorch. A *function* is a function of the standard, such as `diopiAdd`. When the
program calls an operator on the DIOPI device, this package's device calls one or more functions of the vendor. A *case*
is a call in the form in which the suite stores it: arguments with data, and expected results.

- `contents` copies the contents of tensors to the host.
- `calls` converts the call of a function to a case, and its effects to a call record of the suite.
- `comparison` compares the call of a function with the reference.
- `on_cpu` repeats the call of an operator on the CPU, also in float64.
- `outputs` compares the outputs of an operator on the device with those on the CPU.
- `session` compares the calls of a running program and writes a report.
- `capture` stores the calls of a running program as cases.
- `observation` is the base class of the observers in `session` and `capture`.
- `watch` checks the ATen calls of a program on any device.
"""
