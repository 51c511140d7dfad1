"""The standard operators, one module a family."""
