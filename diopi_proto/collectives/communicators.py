"""The prototypes that create, describe and destroy communicators."""

from __future__ import annotations

from diopi_proto.vendor_interface import VendorFunction, parse_parameters

COMMUNICATOR_FUNCTIONS = (
    VendorFunction(
        name="diclGetUniqueId",
        returns="diclResult_t",
        parameters=parse_parameters("commUniqueId* unique_id"),
        doc="Create an id for a new communicator. The program sends its bytes to the processes of all ranks.",
        project_defined=(
            "An id can be used for one communicator. The id is valid for the time limit, and only while the process "
            "that created it runs. This process need not be a rank of the communicator."
        ),
    ),
    VendorFunction(
        name="diclCommInitRank",
        returns="diclResult_t",
        parameters=parse_parameters(
            "diclComm_t* comm, int ranks, commUniqueId unique_id, int rank, int local_device = -1"
        ),
        doc="Create this rank's communicator. All ranks call the function with the same id and number of ranks.",
        errors=(
            "The rank is not between 0 and ranks - 1. There is no such device. Two ranks are equal, the numbers of "
            "ranks differ, or a rank does not call the function within the time limit."
        ),
        stream_order="Waits until all ranks have called the function.",
        threads="Any thread may call it at any time, also for several communicators at the same time.",
        project_defined=(
            "The communicator belongs to the device `local_device`, and for -1 to the current device of the calling "
            "thread. The current device stays the same. One rank is enough for a communicator."
        ),
    ),
    VendorFunction(
        name="diclCommDestroy",
        returns="diclResult_t",
        parameters=parse_parameters("diclComm_t comm"),
        doc="Destroy this rank's communicator.",
        stream_order="The communicator's enqueued work is still completed. The call may wait for it.",
        threads="One thread calls it, while no other call uses the communicator.",
        project_defined="Other ranks need not call the function. A communicator that has failed can be destroyed.",
    ),
    VendorFunction(
        name="diclGetCommAsyncError",
        returns="diclResult_t",
        parameters=parse_parameters("diclComm_t comm"),
        doc="Return whether the communicator has failed, for instance because a rank has ended.",
        errors="The communicator has failed. The error stays until the communicator is destroyed.",
        stream_order="Does not wait.",
        project_defined="The result is DICL_SUCCESS while work is in progress.",
    ),
    VendorFunction(
        name="diclGetCommName",
        returns="diclResult_t",
        parameters=parse_parameters("std::string& name, diclComm_t comm"),
        doc="Get a name of the communicator for messages.",
        project_defined="The name is not empty. It is the same on all ranks, and no other communicator has it.",
        is_optional=True,
    ),
)
"""The prototypes of communicators."""
