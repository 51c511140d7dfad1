"""The function that `import torch` calls, so that an environment variable can start a watch in any program."""

import importlib
import os
from contextlib import suppress
from importlib.metadata import entry_points

GROUP = "torch.backends"
"""The group of entry points that PyTorch loads at the end of its own import."""

VARIABLE = "DIPU_WATCH"


def start_requested_watch() -> None:
    """Import the package of the watch if the environment requests a watch; it starts when it is imported.

    The extensions of PyTorch are imported first, because the package does not register its device next to another one.
    """
    if not os.environ.get(VARIABLE, "").strip():
        return
    for extension in entry_points(group=GROUP):
        if extension.module != __name__:
            with suppress(ImportError):  # PyTorch imports the extension itself and reports the error
                importlib.import_module(extension.module)
    importlib.import_module("diopi_torch")
