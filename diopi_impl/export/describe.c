/* What the vendor wants to know of a call, asked of the framework at once: a question asked from Python costs more than
 * all of them from here. */
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

static int64_t* append(int64_t* facts, diopiSize_t sizes) {
    for (int64_t i = 0; i < sizes.len; i++) *facts++ = sizes.data[i];
    return facts;
}

/* Where the facts of `tensor` end that begin at `facts` and have to end before `end`, or NULL. */
static int64_t* describe_tensor(diopiConstTensorHandle_t tensor, int64_t* facts, const int64_t* end) {
    enum { HEAD = 5 };
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
        shape.len != strides.len || end - facts < HEAD + 2 * shape.len) {
        return NULL;
    }
    const int64_t head[HEAD] = {(int64_t)(intptr_t)data, HEAD - 2 + 2 * shape.len, dtype, device, offset};
    return append(append(append(facts, (diopiSize_t){head, HEAD}), shape), strides);
}

int64_t describe(diopiContextHandle_t context, const diopiConstTensorHandle_t* tensors, int64_t count, int64_t* facts) {
    int64_t *next = facts, *end = facts + DIOPI_FACTS_ROOM;
    diopiStreamHandle_t stream;
    if (framework_lacks_any() || diopiGetStream(context, &stream)) return 0;
    *next++ = (int64_t)(intptr_t)stream;
    for (int64_t i = 0; i < count && next != NULL; i++) next = describe_tensor(tensors[i], next, end);
    return next == NULL ? 0 : next - facts;
}
