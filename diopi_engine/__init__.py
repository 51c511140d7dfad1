"""Compiled networks: what they are, made in Python, and run through the interfaces of chips."""
