/* Devices: the nine functions a vendor registers, and which device's table is being filled. */
#include "runtime.h"

static _Atomic(diopirt_device_t) current;
static pthread_once_t first_use = PTHREAD_ONCE_INIT;

static const struct {
    const char* name;
    diopiError_t missing;
} services[diopirt_service_count] = {
    [diopirt_stream_create_service] = {"stream create", diopiNoRegisteredStreamCreateFunction},
    [diopirt_stream_destroy_service] = {"stream destroy", diopiNoRegisteredStreamDestoryFunction},
    [diopirt_stream_sync_service] = {"stream synchronize", diopiNoRegisteredStreamSyncFunction},
    [diopirt_malloc_service] = {"memory malloc", diopiNoRegisteredDeviceMemoryMallocFunction},
    [diopirt_free_service] = {"memory free", diopiNoRegisteredDeviceMemoryFreeFunction},
    [diopirt_h2d_service] = {"host-to-device copy", diopiNoRegisteredHost2DeviceMemoryCopyFunction},
    [diopirt_d2h_service] = {"device-to-host copy", diopiNoRegisteredDevice2HostMemoryCopyFunction},
    [diopirt_d2d_service] = {"device-to-device copy", diopiNoRegisteredDevice2DdeviceMemoryCopyFunction},
    [diopirt_last_error_service] = {"last error", diopiNoRegisteredGetLastErrorFunction},
};

diopiError_t device_require(diopirt_device_t device, enum diopirt_service service) {
    if (device->functions[service] != NULL) return diopiSuccess;
    return fail(services[service].missing, "the vendor registered no %s function", services[service].name);
}

static const char* vendor_error(diopirt_device_t device) {
    diopiGetLastErrorFunc_t get = (diopiGetLastErrorFunc_t)device->functions[diopirt_last_error_service];
    const char* text = get != NULL ? get() : NULL;
    return text != NULL ? text : "";
}

diopiError_t device_failed(diopirt_device_t device, enum diopirt_service service, int32_t code) {
    return fail(diopiErrorOccurred, "the vendor's %s function returned %d: %s", services[service].name, (int)code,
                vendor_error(device));
}

diopiError_t diopirt_device_create(diopirt_device_t* device) {
    EXPECT_RESULT(device);
    diopirt_device_t made = handle_new(DEVICE);
    EXPECT(made != NULL, "out of host memory for a device");
    *device = made;
    return diopiSuccess;
}

diopiError_t diopirt_device_destroy(diopirt_device_t device) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT(device->users == 0, "%s: %d streams are alive on the device", __func__, (int)device->users);
    diopirt_device_t expected = device;
    atomic_compare_exchange_strong(&current, &expected, NULL);
    handle_retire(device);
    return diopiSuccess;
}

static void make_first(void) { current = handle_new(DEVICE); }

diopirt_device_t diopirt_device_current(void) {
    pthread_once(&first_use, make_first);
    return current;
}

diopiError_t diopirt_device_use(diopirt_device_t device) {
    TRY(handle_check(device, DEVICE, __func__));
    diopirt_device_current();
    current = device;
    return diopiSuccess;
}

diopiError_t diopirt_device_exchange(diopirt_device_t device, int32_t service, diopirt_function_t function,
                                     diopirt_function_t* previous) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT(service >= 0 && service < diopirt_service_count, "%s: there is no service %d", __func__, (int)service);
    if (previous != NULL) *previous = device->functions[service];
    device->functions[service] = function;
    return diopiSuccess;
}

diopiError_t diopirt_device_live(diopirt_device_t device, int64_t* blocks, int64_t* bytes) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT_RESULT(blocks);
    EXPECT_RESULT(bytes);
    *blocks = device->live_blocks;
    *bytes = device->live_bytes;
    return diopiSuccess;
}

diopiError_t diopirt_device_allocations(diopirt_device_t device, int64_t* count) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT_RESULT(count);
    *count = device->allocations;
    return diopiSuccess;
}

diopiError_t diopirt_device_malloc(diopirt_device_t device, uint64_t bytes, void** ptr) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT_RESULT(ptr);
    TRY(device_require(device, diopirt_malloc_service));
    void* allocated = ((diopiDeviceMallocFunc_t)device->functions[diopirt_malloc_service])(bytes);
    EXPECT(allocated != NULL, "the vendor could not allocate %llu bytes of device memory: %s",
           (unsigned long long)bytes, vendor_error(device));
    device->allocations++;
    *ptr = allocated;
    return diopiSuccess;
}

diopiError_t diopirt_device_free(diopirt_device_t device, void* ptr) {
    TRY(handle_check(device, DEVICE, __func__));
    TRY(device_require(device, diopirt_free_service));
    ((diopiDevMemFreeFunc_t)device->functions[diopirt_free_service])(ptr);
    if (ptr != NULL) device->allocations--;
    return diopiSuccess;
}

diopiError_t diopirt_device_last_error(diopirt_device_t device, const char** text) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT_RESULT(text);
    TRY(device_require(device, diopirt_last_error_service));
    *text = vendor_error(device);
    return diopiSuccess;
}

diopiError_t diopiGetCurrentDeviceIndex(diopiDeviceIndex_t* pDevIndex) {
    EXPECT_RESULT(pDevIndex);
    *pDevIndex = 0;
    return diopiSuccess;
}

#define REGISTRATION(Name, service)                                                                            \
    diopiError_t diopiRegister##Name##Func(diopi##Name##Func_t function) {                                     \
        return diopirt_device_exchange(diopirt_device_current(), service, (diopirt_function_t)function, NULL); \
    }

REGISTRATION(StreamCreate, diopirt_stream_create_service)
REGISTRATION(StreamDestroy, diopirt_stream_destroy_service)
REGISTRATION(SynchronizeStream, diopirt_stream_sync_service)
REGISTRATION(DeviceMalloc, diopirt_malloc_service)
REGISTRATION(DevMemFree, diopirt_free_service)
REGISTRATION(MemcpyH2DAsync, diopirt_h2d_service)
REGISTRATION(MemcpyD2HAsync, diopirt_d2h_service)
REGISTRATION(MemcpyD2DAsync, diopirt_d2d_service)
REGISTRATION(GetLastError, diopirt_last_error_service)
