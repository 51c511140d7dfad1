"""What a vendor's library says about itself.

The text is NUL-terminated UTF-8, never NULL, and belongs to the library: the caller does not free it. These functions
may be called before the library is initialised and from any thread.
"""

from diopi_proto.prototype import prototype


@prototype(returns="const char*")
def diopiGetVendorName():
    """Name of the vendor or device the library is for; always the same text."""


@prototype(returns="const char*")
def diopiGetImplVersion():
    """Version of the library, in the vendor's own numbering; always the same text."""


@prototype(returns="const char*")
def diopiGetLastErrorString():
    """Why the latest failing call of the library failed; empty if none has. A later failure may overwrite the text."""
