"""Waivers and known flakes: the files that list them, their application to the records of a run, and drafts of them.

The package imports `results`, whose records it rewrites. Nothing else turns a failure into another verdict.
"""
