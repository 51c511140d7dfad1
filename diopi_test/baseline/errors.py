"""`BaselineError`, the error for unusable stored files."""


class BaselineError(Exception):
    """A file or folder of the baseline can't be used; the message names it and the problem."""
