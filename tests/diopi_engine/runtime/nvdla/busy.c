/* A device that is busy. If this is loaded before the library, it replaces the function that the library exports. */
#include <nvdla.h>

NvError NvDlaSubmit(void* session_handle, void* device_handle, NvDlaTask* tasks, NvU32 num_tasks) {
    (void)session_handle;
    (void)device_handle;
    return num_tasks == 1 && tasks->batchSize == 7 ? NvError_Busy : NvError_Internal;
}
