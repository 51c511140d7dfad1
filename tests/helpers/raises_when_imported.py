"""A vendor's module that can't be imported; tests name it as a vendor to see how the error is reported."""

raise RuntimeError("not today")
