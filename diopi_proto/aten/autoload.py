"""The function that `import torch` calls, so that environment variables act on programs that do not import the device.

`DIPU_WATCH` starts a watch, and `DIPU_MOCK_CUDA` lets programs for CUDA run on the device.
"""

import importlib
import os
from contextlib import suppress
from importlib.metadata import entry_points

GROUP = "torch.backends"
"""The group of entry points that PyTorch loads at the end of its own import."""

VARIABLES = ("DIPU_WATCH", "DIPU_MOCK_CUDA")
"""The environment variables that the package `diopi_torch` reads when it is imported."""


def import_if_requested() -> None:
    """Import the package of the device if an environment variable requests what the package does on its import.

    The extensions of PyTorch are imported first, because the package does not register its device next to another one.
    """
    if not any(os.environ.get(variable, "").strip() for variable in VARIABLES):
        return
    for extension in entry_points(group=GROUP):
        if extension.module != __name__:
            with suppress(ImportError):  # PyTorch imports the extension itself and reports the error
                importlib.import_module(extension.module)
    importlib.import_module("diopi_torch")
