"""Compare operator calls with the suite's reference while a program runs, and store them as cases.

- `contents`: the contents of tensors at one moment.
- `calls`: a case and a record of a function's call.
- `comparison`: the outcome of a function's call.
- `on_cpu`: the same operator call on the CPU.
- `outputs`: comparison of the outputs on the device and on the CPU.
- `session`: comparison while a program runs.
- `watch`: judgment of the ATen calls of a program on any device.
- `capture`: storage of calls while a program runs.
- `observation`: the common part of `session` and `capture`.
"""
