"""Functions that return information about a vendor's library.

The text is NUL-terminated UTF-8 and never NULL. It belongs to the library: the caller does not free it. The caller may
call these functions before it initializes the library, and from any thread.
"""

from diopi_proto.declaration import prototype


@prototype(returns="const char*")
def diopiGetVendorName():
    """Return the name of the vendor or device that the library supports; it is always the same text."""


@prototype(returns="const char*")
def diopiGetImplVersion():
    """Return the version of the library in the vendor's own numbering; it is always the same text."""


@prototype(returns="const char*")
def diopiGetLastErrorString():
    """Return the reason why the latest failing call of the library failed, or an empty text if no call has failed.

    A later failure may overwrite the text.
    """
