"""Run cases of NVDLA's driver: `python -m diopi_engine.conformance.nvdla.worker LIBRARY FOLDER DESCRIPTOR`."""

from __future__ import annotations

import sys
from pathlib import Path

from diopi_engine.conformance.nvdla.all_cases import CASES
from diopi_engine.conformance.nvdla.bench import NvdlaBench
from diopi_engine.conformance.nvdla.client import NvdlaClient
from diopi_engine.conformance.worker import run_named_cases

if __name__ == "__main__":
    run_named_cases(CASES, NvdlaBench(NvdlaClient(Path(sys.argv[1])), Path(sys.argv[2])), int(sys.argv[3]))
