/* What the vendor wants to know of a call, asked of the framework before Python is entered: a question asked from there
 * costs more than all of them from here. */
#pragma weak diopiGetStream
#pragma weak diopiGetTensorDtype
#pragma weak diopiGetTensorDevice
#pragma weak diopiGetTensorShape
#pragma weak diopiGetTensorStride
#pragma weak diopiGetTensorStorageOffset
#pragma weak diopiGetTensorDataConst
#pragma weak diopiIsTensorSparse
#include "exported.h"

static bool framework_lacks_any(void) {
    return !diopiGetStream || !diopiGetTensorDtype || !diopiGetTensorDevice || !diopiGetTensorShape ||
           !diopiGetTensorStride || !diopiGetTensorStorageOffset || !diopiGetTensorDataConst;
}

void tell_context(struct diopi_told* told, diopiContextHandle_t context) {
    diopiStreamHandle_t stream = NULL;
    told->tensors = framework_lacks_any() || diopiGetStream(context, &stream) ? -1 : 0;
    told->addresses[0] = (uintptr_t)stream;
    told->length = 0;
}

static void append(struct diopi_told* told, const int64_t* numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) told->layouts[told->length++] = numbers[i];
}

static bool append_tensor(struct diopi_told* told, diopiConstTensorHandle_t tensor) {
    enum { HEAD = 4 };
    bool sparse = false;
    diopiDtype_t dtype;
    diopiDevice_t device;
    diopiSize_t shape, strides;
    int64_t offset;
    const void* data;
    if ((diopiIsTensorSparse && diopiIsTensorSparse(tensor, &sparse)) || sparse ||
        diopiGetTensorDtype(tensor, &dtype) || diopiGetTensorDevice(tensor, &device) ||
        diopiGetTensorShape(tensor, &shape) || diopiGetTensorStride(tensor, &strides) ||
        diopiGetTensorStorageOffset(tensor, &offset) || diopiGetTensorDataConst(tensor, &data) ||
        shape.len != strides.len || told->length + HEAD + 2 * shape.len > DIOPI_LAYOUTS_ROOM ||
        told->tensors == DIOPI_TENSORS_ROOM) {
        return false;
    }
    const int64_t head[HEAD] = {shape.len, dtype, device, offset};
    append(told, head, HEAD);
    append(told, shape.data, shape.len);
    append(told, strides.data, strides.len);
    told->addresses[++told->tensors] = (uintptr_t)data;
    return true;
}

void tell_tensor(struct diopi_told* told, diopiConstTensorHandle_t tensor) {
    if (tensor != NULL && told->tensors >= 0 && !append_tensor(told, tensor)) told->tensors = -1;
}

void tell_tensors(struct diopi_told* told, const diopiConstTensorHandle_t* tensors, int64_t count) {
    for (int64_t i = 0; tensors != NULL && i < count; i++) tell_tensor(told, tensors[i]);
}
