"""The prototypes of streams and events."""

from __future__ import annotations

from diopi_proto.vendor_interface import VendorFunction, parse_parameters

STREAM_FUNCTIONS = (
    VendorFunction(
        name="createStream",
        parameters=parse_parameters("deviceStream_t* stream, bool prior = false"),
        doc="Create a stream on the current device. The device prefers the work of streams with priority.",
        errors="The device has no resources for another stream.",
        project_defined="The priority is a preference without a guarantee.",
    ),
    VendorFunction(
        name="destroyStream",
        parameters=parse_parameters("deviceStream_t stream"),
        doc="Destroy a stream. The default stream can't be destroyed.",
        stream_order="Work that is enqueued is still completed. The call may wait for it.",
        project_defined="The current device may be another one than the stream's. Events on the stream stay valid.",
    ),
    VendorFunction(
        name="destroyStream",
        entry="destroyStreamOfDevice",
        parameters=parse_parameters("deviceStream_t stream, deviceId_t device"),
        doc="Destroy a stream of a device, whichever device is current.",
        errors="There is no device with this index.",
        stream_order="The same as for destroyStream with one parameter.",
        project_defined="The current device stays the same.",
    ),
    VendorFunction(
        name="syncStream",
        parameters=parse_parameters("deviceStream_t stream"),
        doc="Wait until all work on the stream is complete.",
        errors="Asynchronous work on the stream failed.",
        stream_order="Waits for all work that any thread enqueued on the stream before the call.",
    ),
    VendorFunction(
        name="streamNotNull",
        parameters=parse_parameters("deviceStream_t stream"),
        returns="bool",
        doc="Return whether the stream is another stream than the default stream.",
    ),
    VendorFunction(
        name="isStreamEmpty",
        parameters=parse_parameters("deviceStream_t stream"),
        returns="bool",
        doc="Return whether all work on the stream is complete.",
        stream_order="Does not wait.",
        project_defined=(
            "If the result is true, the results of the work can be read. After syncStream, the result is true."
        ),
    ),
    VendorFunction(
        name="streamWaitEvent",
        parameters=parse_parameters("deviceStream_t stream, deviceEvent_t event"),
        doc="Let later work on the stream start only after the event.",
        stream_order="Does not wait. Work that was enqueued on the stream earlier is not delayed.",
        project_defined=(
            "The stream waits for the latest record of the event before the call; a later record changes nothing. An "
            "event that was never recorded delays nothing. Stream and event may belong to different devices."
        ),
    ),
    VendorFunction(
        name="createEvent",
        parameters=parse_parameters("deviceEvent_t* event"),
        doc="Create an event on the current device. The event can measure time.",
        errors="The device has no resources for another event.",
    ),
    VendorFunction(
        name="destroyEvent",
        parameters=parse_parameters("deviceEvent_t event"),
        doc="Destroy an event.",
        stream_order="Does not wait. Streams that wait for the event still wait for its latest record.",
    ),
    VendorFunction(
        name="waitEvent",
        parameters=parse_parameters("deviceEvent_t event"),
        doc="Wait on the host until the work before the latest record of the event is complete.",
        errors="The work before the event failed.",
        project_defined="The call returns at once if the event was never recorded.",
    ),
    VendorFunction(
        name="recordEvent",
        parameters=parse_parameters("deviceEvent_t event, deviceStream_t stream"),
        doc="Record the event on the stream. The event is ready when all earlier work on the stream is complete.",
        stream_order="Does not wait.",
        project_defined=(
            "The record replaces an earlier one. Event and stream belong to the same device, and a call with an event "
            "of another device may be rejected."
        ),
    ),
    VendorFunction(
        name="eventElapsedTime",
        parameters=parse_parameters("float* milliseconds, deviceEvent_t start, deviceEvent_t end"),
        doc="Get the time on the device between two events in milliseconds.",
        errors="An event was never recorded, or is not ready.",
        project_defined=(
            "The time is measured when the device reaches the events. It is negative if `end` was reached first, and 0 "
            "for an event and itself. Its resolution is at most one millisecond."
        ),
    ),
    VendorFunction(
        name="getEventStatus",
        parameters=parse_parameters("deviceEvent_t event"),
        returns="EventStatus",
        doc="Return the state of the event.",
        stream_order="Does not wait.",
        project_defined=(
            "The state is READY if and only if the work before the latest record is complete, or the event was never "
            "recorded. The vendor chooses the state of an unfinished event."
        ),
    ),
)
"""The prototypes of streams and events."""
