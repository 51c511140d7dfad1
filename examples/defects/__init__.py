"""Minimal reproductions of defects in software by others, in a module per library."""
