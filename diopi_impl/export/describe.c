/* What the vendor wants to know of every tensor, asked of the framework at once: a question asked from Python costs more
 * than all of them from here. */
#pragma weak diopiGetTensorDtype
#pragma weak diopiGetTensorDevice
#pragma weak diopiGetTensorShape
#pragma weak diopiGetTensorStride
#pragma weak diopiGetTensorStorageOffset
#pragma weak diopiGetTensorDataConst
#pragma weak diopiIsTensorSparse
#include "exported.h"

static bool framework_lacks_any(void) {
    return !diopiGetTensorDtype || !diopiGetTensorDevice || !diopiGetTensorShape || !diopiGetTensorStride ||
           !diopiGetTensorStorageOffset || !diopiGetTensorDataConst;
}

static void append(struct diopi_tensor_facts* facts, diopiSize_t sizes) {
    for (int64_t i = 0; i < sizes.len; i++) facts->form[facts->length++] = sizes.data[i];
}

bool describe(diopiConstTensorHandle_t tensor, struct diopi_tensor_facts* facts) {
    bool sparse = false;
    diopiDtype_t dtype;
    diopiDevice_t device;
    diopiSize_t shape, strides;
    const void* data;
    if (framework_lacks_any() || (diopiIsTensorSparse && diopiIsTensorSparse(tensor, &sparse)) || sparse ||
        diopiGetTensorDtype(tensor, &dtype) || diopiGetTensorDevice(tensor, &device) ||
        diopiGetTensorShape(tensor, &shape) || diopiGetTensorStride(tensor, &strides) ||
        diopiGetTensorStorageOffset(tensor, &facts->form[2]) || diopiGetTensorDataConst(tensor, &data) ||
        shape.len != strides.len || 3 + 2 * shape.len > DIOPI_FORM_ROOM) {
        return false;
    }
    facts->data = (uintptr_t)data;
    facts->form[0] = dtype;
    facts->form[1] = device;
    facts->length = 3;
    append(facts, shape);
    append(facts, strides);
    return true;
}
