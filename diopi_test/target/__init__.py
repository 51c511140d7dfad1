"""Targets, which are devices without Python: bundles of calls for the runner in C, and the evaluation of its results.

A bundle is a file with the calls of cases. To write it, the cases are run on a vendor that records each call and
computes nothing. To evaluate the results of the target, the cases are run on a vendor that replays these results.
"""
