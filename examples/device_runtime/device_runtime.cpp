// A device runtime for two devices that are parts of the host. Work is done at once, so that streams are always empty.
//
// It shows which functions a vendor implements. It needs neither PyTorch nor the framework.
#include <dipu/device_runtime.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace example {

struct Stream {};

struct Event {
    bool is_recorded = false;
    std::chrono::steady_clock::time_point time;
};

constexpr int devices = 2;
constexpr size_t device_bytes = size_t{1} << 30;
constexpr size_t alignment = 64;

// Allocations by address: their sizes and devices; the device of pinned memory is -1.
struct Allocation {
    size_t bytes;
    int device;
};
std::mutex lock;
std::map<const char*, Allocation> allocations;
size_t used[devices];
thread_local int current = 0;

void require_device(int device) {
    if (device < 0 || device >= devices) {
        throw std::invalid_argument("there is no device " + std::to_string(device) + " of " + std::to_string(devices));
    }
}

void* allocate(size_t bytes, int device) {
    std::lock_guard<std::mutex> guard(lock);
    if (bytes > device_bytes || (device >= 0 && used[device] + bytes > device_bytes)) return nullptr;
    void* memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    if (memory == nullptr) return nullptr;
    allocations[static_cast<char*>(memory)] = {bytes, device};
    if (device >= 0) used[device] += bytes;
    return memory;
}

void release(void* memory, bool is_pinned) {
    if (memory == nullptr) return;
    std::lock_guard<std::mutex> guard(lock);
    auto found = allocations.find(static_cast<char*>(memory));
    if (found == allocations.end() || (found->second.device < 0) != is_pinned) {
        throw std::invalid_argument("the address is not the beginning of an allocation of this kind");
    }
    if (!is_pinned) used[found->second.device] -= found->second.bytes;
    allocations.erase(found);
    std::free(memory);
}

void copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
}

} // namespace example

namespace dipu {
namespace devapis {

using namespace example;

void initializeVendor() {}
void finalizeVendor() {}

deviceId_t current_device() { return static_cast<deviceId_t>(current); }
int getDeviceCount() { return devices; }
void getDriverVersion(int* version) { *version = 1; }
void getRuntimeVersion(int* version) { *version = 1; }

DIPUDeviceProperties getDeviceProperties(int32_t device) {
    require_device(device);
    DIPUDeviceProperties properties;
    properties.name = "example";
    properties.totalGlobalMem = device_bytes;
    properties.major = 1;
    properties.multiProcessorCount = 1;
    return properties;
}

DIPUDeviceStatus getDeviceStatus(int32_t device) {
    require_device(device);
    std::lock_guard<std::mutex> guard(lock);
    DIPUDeviceStatus status;
    status.freeGlobalMem = device_bytes - used[device];
    status.totalGlobalMem = device_bytes;
    return status;
}

void setDevice(deviceId_t device) {
    require_device(device);
    current = device;
}

void resetDevice(deviceId_t device) {
    require_device(device);
    std::lock_guard<std::mutex> guard(lock);
    for (auto entry = allocations.begin(); entry != allocations.end();) {
        if (entry->second.device == device) {
            std::free(const_cast<char*>(entry->first));
            entry = allocations.erase(entry);
        } else {
            ++entry;
        }
    }
    used[device] = 0;
}

void syncDevice() {}
void checkLastError() {}
void releaseStream() {}

void createStream(deviceStream_t* stream, bool) { *stream = new Stream; }
void destroyStream(deviceStream_t stream) { delete stream; }
void destroyStream(deviceStream_t stream, deviceId_t device) {
    require_device(device);
    delete stream;
}
void syncStream(deviceStream_t) {}
bool streamNotNull(deviceStream_t stream) { return stream != nullptr; }
bool isStreamEmpty(deviceStream_t) { return true; }
void streamWaitEvent(deviceStream_t, deviceEvent_t) {}

void createEvent(deviceEvent_t* event) { *event = new Event; }
void destroyEvent(deviceEvent_t event) { delete event; }
void waitEvent(deviceEvent_t) {}
EventStatus getEventStatus(deviceEvent_t) { return EventStatus::READY; }

void recordEvent(deviceEvent_t event, deviceStream_t) {
    event->is_recorded = true;
    event->time = std::chrono::steady_clock::now();
}

void eventElapsedTime(float* milliseconds, deviceEvent_t start, deviceEvent_t end) {
    if (!start->is_recorded || !end->is_recorded) throw std::logic_error("an event was never recorded");
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
}

void mallocHost(void** address, size_t bytes) {
    void* memory = allocate(bytes, -1);
    if (memory == nullptr) throw std::bad_alloc();
    *address = memory;
}

void freeHost(void* address) { release(address, true); }

bool isPinnedPtr(const void* address) {
    std::lock_guard<std::mutex> guard(lock);
    auto byte = static_cast<const char*>(address);
    auto found = allocations.upper_bound(byte);
    if (found == allocations.begin()) return false;
    --found;
    return found->second.device < 0 && byte < found->first + found->second.bytes;
}

OpStatus mallocDevice(void** address, size_t bytes, bool throws) {
    void* memory = allocate(bytes, current);
    if (memory != nullptr) {
        *address = memory;
        return OpStatus::SUCCESS;
    }
    if (throws) throw std::bad_alloc();
    return OpStatus::ERR_NOMEM;
}

void freeDevice(void* address) { release(address, false); }

void memSetAsync(deviceStream_t, void* address, int value, size_t bytes) {
    if (bytes > 0) std::memset(address, value, bytes);
}

void memCopyD2D(size_t bytes, deviceId_t to_device, void* to, deviceId_t from_device, const void* from) {
    require_device(to_device);
    require_device(from_device);
    copy(to, from, bytes);
}
void memCopyH2D(size_t bytes, void* to, const void* from) { copy(to, from, bytes); }
void memCopyD2H(size_t bytes, void* to, const void* from) { copy(to, from, bytes); }

void memCopyD2DAsync(deviceStream_t, size_t bytes, deviceId_t to_device, void* to, deviceId_t from_device,
                     const void* from) {
    memCopyD2D(bytes, to_device, to, from_device, from);
}
void memCopyH2DAsync(deviceStream_t, size_t bytes, void* to, const void* from) { copy(to, from, bytes); }
void memCopyD2HAsync(deviceStream_t, size_t bytes, void* to, const void* from) { copy(to, from, bytes); }

} // namespace devapis
} // namespace dipu
