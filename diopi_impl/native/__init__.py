"""Compiled vendors: a `libdiopi_impl.so` built against the public headers is a vendor like any other."""

from diopi_impl.native.vendor import NativeVendor

__all__ = ["NativeVendor"]
