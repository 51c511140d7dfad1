"""Cases of MMCV's resampling of feature maps: CARAFE, correlation, FIR filters, PSA masks, masked im2col, TIN shift.

Importing the package registers the cases of all its modules. `diopi_proto/functions/mmcv_sampling.py` defines the
functions.
"""

from diopi_test.cases.mmcv_sampling import carafe, correlation, masked_conv, psa_mask, tin_shift, upfirdn2d

__all__ = ["carafe", "correlation", "masked_conv", "psa_mask", "tin_shift", "upfirdn2d"]
