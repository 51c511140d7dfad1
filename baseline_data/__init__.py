"""The stored NumPy baseline: `smoke` ships, `full` is generated next to it."""
