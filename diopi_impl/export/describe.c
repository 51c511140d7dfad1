/* Collects what the vendor needs to know about a call from the framework before Python is entered: a single query from
 * Python costs more than all of these queries from C. */
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

void describe_context(struct diopi_call_description* description, diopiContextHandle_t context) {
    diopiStreamHandle_t stream = NULL;
    description->tensors = framework_lacks_any() || diopiGetStream(context, &stream) ? -1 : 0;
    description->addresses[0] = (uintptr_t)stream;
    description->length = 0;
}

static void append(struct diopi_call_description* description, const int64_t* numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) description->layouts[description->length++] = numbers[i];
}

static bool append_tensor(struct diopi_call_description* description, diopiConstTensorHandle_t tensor) {
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
        shape.len != strides.len || description->length + HEAD + 2 * shape.len > DIOPI_LAYOUTS_ROOM ||
        description->tensors == DIOPI_TENSORS_ROOM) {
        return false;
    }
    const int64_t head[HEAD] = {shape.len, dtype, device, offset};
    append(description, head, HEAD);
    append(description, shape.data, shape.len);
    append(description, strides.data, strides.len);
    description->addresses[++description->tensors] = (uintptr_t)data;
    return true;
}

void describe_tensor(struct diopi_call_description* description, diopiConstTensorHandle_t tensor) {
    if (tensor != NULL && description->tensors >= 0 && !append_tensor(description, tensor)) description->tensors = -1;
}

void describe_tensors(struct diopi_call_description* description, const diopiConstTensorHandle_t* tensors,
                      int64_t count) {
    for (int64_t i = 0; tensors != NULL && i < count; i++) describe_tensor(description, tensors[i]);
}
