"""Compiled networks: made of functions of JAX and modules of PyTorch, and run through the interfaces of chips.

`compile` makes an engine, `link` a group of several; `Engine` is one, as bytes and as a function. `proto` declares the
interfaces by which programs in C and C++ load engines and run them.
"""

from diopi_engine.compiling import BATCH, Input, compile
from diopi_engine.engine import Engine
from diopi_engine.errors import CompileError, EngineFileError, EngineVersionError, LinkError
from diopi_engine.grouping import link

__all__ = [
    "BATCH",
    "CompileError",
    "Engine",
    "EngineFileError",
    "EngineVersionError",
    "Input",
    "LinkError",
    "compile",
    "link",
]
