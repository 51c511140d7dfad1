"""Targets without Python: bundles of calls for the runner in C, and the evaluation of the results that it returns.

A bundle is recorded on a vendor that notes each call and computes nothing. Results are evaluated like any run, on a
vendor that answers each call with the results of the target.
"""
