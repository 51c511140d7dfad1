"""Any vendor of the standard as a PyTorch device: importing `diopi_torch` registers `torch.device("diopi")`.

`use_vendor` or the environment variable DIOPI_TORCH_VENDOR selects the vendor; the default is the reference vendor. The
vendor is opened when the device is first used. The package needs the extra `torch` and raises ImportError for
unsupported versions of PyTorch.
"""

from __future__ import annotations

import time

IMPORT_TIME = time.time()
"""The time at which this package was imported, in seconds since 1970.

The vendor stores compiled programs only if no source file has changed since then.
"""

try:
    import torch
except ModuleNotFoundError as error:
    raise ImportError("diopi_torch needs PyTorch: pip install 'diopi[torch]'") from error

from diopi_torch.versions import SUPPORTED, check_version  # noqa: E402 - after IMPORT_TIME and the import of torch

check_version(torch.__version__)

from diopi_torch.backend import BackendError, use_vendor  # noqa: E402  # after the check of the version
from diopi_torch.comparing import (  # noqa: E402 - after the check
    autocompare,
    capture,
    compare_from_environment,
    watch,
    watch_from_environment,
)
from diopi_torch.cuda_programs import as_cuda, as_cuda_from_environment  # noqa: E402 - after the check
from diopi_torch.fallback import fallbacks, reset_fallbacks  # noqa: E402 - after the check
from diopi_torch.registration import is_name_free, register  # noqa: E402 - after the check
from diopi_torch.settings import SettingError  # noqa: E402 - after the check

__all__ = [
    "SUPPORTED",
    "BackendError",
    "SettingError",
    "as_cuda",
    "autocompare",
    "capture",
    "fallbacks",
    "reset_fallbacks",
    "use_vendor",
    "watch",
]

if is_name_free():  # a program on a device of another package can still be watched
    register()
    as_cuda_from_environment()
compare_from_environment()
watch_from_environment()
