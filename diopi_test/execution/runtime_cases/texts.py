"""Cases of names, versions and error messages.

Each case is a function that receives the vendor and opens a device; it raises `RuntimeCaseError` if the vendor
violates the contract that the name of the case states.
"""

from __future__ import annotations

from diopi_impl import BaseVendor
from diopi_proto.types import Error
from diopi_test.execution.runtime_cases.tools import open_device, require, require_text, runtime_case
from lib_rt import Context


@runtime_case
def name_and_version_are_text(vendor: BaseVendor) -> None:
    """Check that the vendor's name and version are readable text that is not empty."""
    require_text("the vendor's name", vendor.name)
    require_text("the vendor's version", vendor.version)


@runtime_case
def a_failing_call_sets_the_last_error(vendor: BaseVendor) -> None:
    """Check that a call of an unknown operator fails, and that the vendor's last error then gives a reason."""
    with open_device(vendor) as device, Context(device) as context:
        code = vendor.call("diopiNoSuchFunction", context)
    require(code is not Error.Success, "a call of diopiNoSuchFunction succeeded, expected an error")
    require_text("the vendor's last error after a failing call", vendor.last_error())


@runtime_case
def the_last_error_is_readable_before_any_failure(vendor: BaseVendor) -> None:
    """Check that the runtime's last error is a readable text before any call has failed; it may be empty."""
    with open_device(vendor) as device:
        require_text("the runtime's last error", device.last_error, may_be_empty=True)
