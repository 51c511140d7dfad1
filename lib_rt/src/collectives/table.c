/* The table through which programs call the collectives. */
#include "../device_runtime/runtime.h"
#include "collectives.h"

static const dipuCollectives table = {
    .size = sizeof table,
    .version = DIPU_COLLECTIVES_VERSION,
    .lastErrorText = last_error_text,
    .uniqueIdBytes = UNIQUE_ID_BYTES,
    .diclGetUniqueId = get_unique_id,
    .diclCommInitRank = init_rank,
    .diclCommDestroy = destroy_communicator,
    .diclGetCommAsyncError = get_async_error,
    .diclGetCommName = get_name,
    .diclAllReduce = all_reduce,
    .diclReduce = reduce,
    .diclBroadcast = broadcast,
    .diclAllGather = all_gather,
    .diclReduceScatter = reduce_scatter,
    .diclAllToAllEqualSplit = all_to_all_equal,
    .diclAllToAllUnequalSplit = all_to_all_unequal,
    .diclSend = send_to,
    .diclRecv = receive_from,
};

const dipuCollectives* dipuGetCollectives(void) { return &table; }
