"""Execution of one case on one vendor: calls and their records, sequences of calls, negative tests, runtime cases.

This package imports stored cases (`baseline`) and the case model. It does not decide whether a result is correct; the
checks do that.
"""
