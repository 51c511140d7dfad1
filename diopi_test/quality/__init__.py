"""The quality of the cases: mutation testing, non-discriminating cases, the smoke selection, and an inventory.

This package may import all packages that define, store, execute, check and report cases.
"""
