"""At the root of the project, pytest collects baseline files too: `pytest baseline_data/smoke --vendor jax_cpu`."""

import os
import sys

# The tests start some hundred Python processes. Without bytecode, each compiles all modules, which takes 4 seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

pytest_plugins = ["diopi_test.run.plugin"]
