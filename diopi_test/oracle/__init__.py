"""What is true, and how exactly: NumPy references, error budgets, and judges where several answers are right.

Imports `cases`, for what the caller decides about a call's results. References and judges know no vendor, and a judge
borrows nothing from the reference: it proves an answer right by itself.
"""
