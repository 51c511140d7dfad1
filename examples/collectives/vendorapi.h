// The vendor's own types, which the headers of the interface include under this name.
#pragma once

#define DICL_UNIQUE_ID_BYTES_SIZE 128

namespace example {
struct Communicator;
} // namespace example

namespace dipu {
using deviceStream_t = void*;
using deviceEvent_t = void*;
using diclComm_t = example::Communicator*;
struct commUniqueId {
    char bytes[DICL_UNIQUE_ID_BYTES_SIZE];
};
} // namespace dipu
