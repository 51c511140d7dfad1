/* Devices: the nine functions that a vendor registers, and the device whose table is being filled. */
#include "runtime.h"

static diopirt_lock_t lock = DIOPIRT_LOCK_INITIALIZER; /* protects the next two variables */
static diopirt_device_t current;
static bool started; /* whether there has been a current device */

#define ROW(name, stem, title, missing) [diopirt_##name##_service] = {title, missing},
static const struct {
    const char* name;
    diopiError_t missing;
} services[diopirt_service_count] = {DIOPIRT_SERVICES(ROW)};

diopiError_t device_function(diopirt_device_t device, enum diopirt_service service, diopirt_function_t* function) {
    *function = device->functions[service];
    if (*function != NULL) return diopiSuccess;
    return fail(services[service].missing, "the vendor registered no %s function", services[service].name);
}

diopiError_t device_require(diopirt_device_t device, enum diopirt_service service) {
    diopirt_function_t function;
    return device_function(device, service, &function);
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
    diopirt_device_t new_device = handle_new(DEVICE);
    EXPECT(new_device != NULL, "out of host memory for a device");
    *device = new_device;
    return diopiSuccess;
}

diopiError_t diopirt_device_destroy(diopirt_device_t device) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT(device->users == 0, "%s: %d streams are alive on the device", __func__, (int)device->users);
    diopirt_lock_acquire(&lock);
    if (current == device) current = NULL;
    diopirt_lock_release(&lock);
    handle_retire(device);
    return diopiSuccess;
}

diopirt_device_t diopirt_device_current(void) {
    diopirt_lock_acquire(&lock);
    if (!started) current = handle_new(DEVICE);
    started = started || current != NULL;
    diopirt_device_t found = current;
    diopirt_lock_release(&lock);
    return found;
}

diopiError_t diopirt_device_use(diopirt_device_t device) {
    TRY(handle_check(device, DEVICE, __func__));
    diopirt_lock_acquire(&lock);
    current = device;
    started = true;
    diopirt_lock_release(&lock);
    return diopiSuccess;
}

diopiError_t diopirt_device_exchange(diopirt_device_t device, int32_t service, diopirt_function_t function,
                                     diopirt_function_t* previous) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT(service >= 0 && service < diopirt_service_count, "%s: there is no service %d", __func__, (int)service);
    diopirt_function_t replaced = atomic_exchange(&device->functions[service], function);
    if (previous != NULL) *previous = replaced;
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
    diopirt_function_t allocate;
    TRY(device_function(device, diopirt_malloc_service, &allocate));
    void* allocated = ((diopiDeviceMallocFunc_t)allocate)(bytes);
    EXPECT(allocated != NULL, "the vendor could not allocate %llu bytes of device memory: %s",
           (unsigned long long)bytes, vendor_error(device));
    device->allocations++;
    *ptr = allocated;
    return diopiSuccess;
}

diopiError_t diopirt_device_free(diopirt_device_t device, void* ptr) {
    TRY(handle_check(device, DEVICE, __func__));
    diopirt_function_t release;
    TRY(device_function(device, diopirt_free_service, &release));
    ((diopiDevMemFreeFunc_t)release)(ptr);
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

#define REGISTRATION(name, stem, title, missing)                                                      \
    diopiError_t diopiRegister##stem##Func(diopi##stem##Func_t function) {                            \
        return diopirt_device_exchange(diopirt_device_current(), diopirt_##name##_service,            \
                                       (diopirt_function_t)function, NULL);                           \
    }
DIOPIRT_SERVICES(REGISTRATION)
