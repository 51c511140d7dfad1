"""The conformance suite: cases, truth, budgets, checks, and the harness that runs them."""
