"""How good the cases are: the audit, weak cases, which cases the smoke level takes, what is complete.

Imports every chapter but `fingerprint` and `cli`.
"""
