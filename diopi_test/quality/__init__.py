"""The quality of the cases: mutation testing, non-discriminating cases, the smoke selection, and an inventory.

This package imports all chapters that define, store, execute, check and report cases.
"""
