// The vendor's own types, which the header of the interface includes under this name.
#pragma once

#include <chrono>

namespace example {
struct Stream;
struct Event;
} // namespace example

namespace dipu {
using deviceStream_t = example::Stream*;
using deviceEvent_t = example::Event*;
} // namespace dipu
