"""Compiled vendors: libraries `libdiopi_impl.so` that were built against the public headers."""

from diopi_impl.native.vendor import NativeVendor

__all__ = ["NativeVendor"]
