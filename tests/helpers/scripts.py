"""Import scripts that belong to no package: benchmarks, and the modules that write pages of the site."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType


@cache
def load_script(path: Path) -> ModuleType:
    """Return a script as a module. Each process executes the script once; dataclasses need it in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert spec is not None and spec.loader is not None, path
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
