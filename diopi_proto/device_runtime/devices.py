"""The prototypes that start the runtime, choose and describe devices, and profile them."""

from __future__ import annotations

from diopi_proto.vendor_interface import VendorFunction, parse_parameters

_NO_DEVICE = "There is no device with this index."

DEVICE_FUNCTIONS = (
    VendorFunction(
        name="initializeVendor",
        doc="Start the vendor's software. The framework calls it once, before any other function.",
        errors="The software can't be started.",
        threads="One thread calls it, while no other call runs.",
        project_defined="A second call without a call of finalizeVendor in between does nothing.",
        is_optional=True,
    ),
    VendorFunction(
        name="finalizeVendor",
        doc="End the vendor's software. The framework calls it once, after all other functions.",
        stream_order="Waits for the work of all streams.",
        threads="One thread calls it, while no other call runs.",
        project_defined="initializeVendor may be called again afterwards.",
        is_optional=True,
    ),
    VendorFunction(
        name="current_device",
        returns="deviceId_t",
        doc="Return the index of the current device of the calling thread.",
        project_defined="The current device of a new thread is 0.",
    ),
    VendorFunction(
        name="getDeviceProperties",
        parameters=parse_parameters("int32_t device"),
        returns="DIPUDeviceProperties",
        doc="Return the properties of a device, which do not change while the process runs.",
        errors=_NO_DEVICE,
        project_defined="The name is not empty, and the memory and the number of processors are positive.",
    ),
    VendorFunction(
        name="getDeviceStatus",
        parameters=parse_parameters("int32_t device"),
        returns="DIPUDeviceStatus",
        doc="Return the free memory and the total memory of a device.",
        errors=_NO_DEVICE,
        project_defined=(
            "The total is that of getDeviceProperties, and the free memory is at most the total. Allocated memory is "
            "not free. A device that caches freed memory may report it as not free."
        ),
        is_optional=True,
    ),
    VendorFunction(
        name="setDevice",
        parameters=parse_parameters("deviceId_t device"),
        doc="Make a device the current device of the calling thread.",
        errors=f"{_NO_DEVICE} The current device stays the same.",
    ),
    VendorFunction(
        name="resetDevice",
        parameters=parse_parameters("deviceId_t device = 0"),
        doc="Release everything that the process has on a device: streams, events and device memory.",
        errors=_NO_DEVICE,
        stream_order="Waits for the work of all streams of the device.",
        threads="One thread calls it, while no other call uses the device.",
        project_defined=(
            "The device can be used again at once. Its former streams, events and addresses must not be used. Other "
            "devices, pinned memory and the current device stay the same."
        ),
    ),
    VendorFunction(
        name="syncDevice",
        doc="Wait until the work of all streams of the current device is complete.",
        errors="Asynchronous work on the device failed.",
        stream_order="Waits for all work that any thread enqueued before the call, also on the default stream.",
    ),
    VendorFunction(
        name="checkLastError",
        doc="Throw if an earlier call of this thread or asynchronous work failed and nobody reported it.",
        errors="An error has not been reported.",
        project_defined=(
            "The error is reported once: a second call succeeds. An exception reports the error of its call, so "
            "checkLastError may succeed afterwards or report the error once more."
        ),
    ),
    VendorFunction(
        name="releaseStream",
        doc="Release the resources that the runtime retains for streams that the program has destroyed.",
        project_defined="Streams that exist stay valid, and so does the work on them.",
    ),
    VendorFunction(
        name="getDeviceCount",
        returns="int",
        doc="Return the number of devices, which are numbered from 0.",
        project_defined="The number does not change while the process runs. It is 0 if there is no device.",
    ),
    VendorFunction(
        name="getDriverVersion",
        parameters=parse_parameters("int* version"),
        doc="Get the version of the driver.",
        project_defined="The version is positive.",
    ),
    VendorFunction(
        name="getRuntimeVersion",
        parameters=parse_parameters("int* version"),
        doc="Get the version of the vendor's runtime.",
        project_defined="The version is positive.",
    ),
)
"""The prototypes that start the runtime, and that choose and describe devices."""

PROFILER_FUNCTIONS = (
    VendorFunction(
        name="enableProfiler",
        parameters=parse_parameters(
            "const std::string& dump_path, bool call_stack, bool record_shapes, bool profile_memory"
        ),
        doc="Start to record what the device does; the record is written to the path.",
        errors="The path can't be written.",
        threads="One thread calls it, while no other call runs.",
        project_defined="The types of the parameters. The form of the record is the vendor's choice.",
        is_optional=True,
    ),
    VendorFunction(
        name="disableProfiler",
        doc="End the record and write it.",
        threads="One thread calls it, while no other call runs.",
        is_optional=True,
    ),
)
"""The prototypes of the profiler."""
