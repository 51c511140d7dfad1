"""The quality of the cases: mutation testing, non-discriminating cases, the smoke selection, and an inventory.

This package imports every chapter except `fingerprint` and `cli`.
"""
