"""The conformance suite: cases, truth, budgets, checks, runs and their results."""
