"""The command `python -m diopi_torch.conformance`."""

from __future__ import annotations

import sys

from diopi_torch.conformance.command import main

if __name__ == "__main__":
    sys.exit(main())
