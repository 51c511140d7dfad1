"""Cases of the fused kernels of LMDeploy's inference engine: layers, attention, sampling, stop criteria, helpers.

Importing the package registers the cases of all its modules. `diopi_proto/functions/lmdeploy.py` defines the functions.
"""

from diopi_test.cases.lmdeploy import attention, criteria, helpers, layers, penalties, sampling, setup

__all__ = ["attention", "criteria", "helpers", "layers", "penalties", "sampling", "setup"]
