"""Conformance by networks: each run operator by operator by a vendor, and as one engine by a library.

`zoo` has the networks, `rounding` evaluates them in float64 as float32 may round, and `truth` derives what must come of
them and how near. `making` writes all of that into files; `by_operators` has the cases of a vendor, `as_engines` those
of a library. `names` says which cases there are, and needs no PyTorch. This is the one part of the engines that sees
PyTorch, the device of it and the suite.
"""
