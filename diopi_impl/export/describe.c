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

bool describe(diopiConstTensorHandle_t tensor, struct diopi_tensor_facts* facts) {
    bool sparse = false;
    return !framework_lacks_any() && (!diopiIsTensorSparse || !diopiIsTensorSparse(tensor, &sparse)) && !sparse &&
           !diopiGetTensorDtype(tensor, &facts->dtype) && !diopiGetTensorDevice(tensor, &facts->device) &&
           !diopiGetTensorShape(tensor, &facts->shape) && !diopiGetTensorStride(tensor, &facts->strides) &&
           !diopiGetTensorStorageOffset(tensor, &facts->storage_offset) &&
           !diopiGetTensorDataConst(tensor, &facts->data);
}
