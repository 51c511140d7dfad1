"""The command `python -m diopi_torch.watch`. It can't be imported, because `diopi_torch.watch` is a function."""

from __future__ import annotations

from diopi_torch.compare.watch.command import main

if __name__ == "diopi_torch.watch":  # the module would take the place of the function
    raise ImportError("diopi_torch.watch is a function; run the command with python -m diopi_torch.watch")

if __name__ == "__main__":
    main(prog_name="python -m diopi_torch.watch")
