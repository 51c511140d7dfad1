"""`BaselineError`: what is wrong with stored files."""


class BaselineError(Exception):
    """A file or folder of the baseline that can't be used; the message names it and what is wrong."""
