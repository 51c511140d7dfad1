"""Compiled networks: compiled from JAX functions and PyTorch modules, and run through the interfaces of chips.

`compile` creates an engine, and `link` creates a group of engines. An `Engine` can be stored as bytes and called as a
function. `proto` declares the interfaces through which programs in C and C++ load and run engines.
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
