// Collectives of a vendor that already has a library for them, in C and with other types.
//
// Each function converts its arguments, calls the library and turns errors into exceptions. The library here is that of
// the built-in device, with which this library is linked; a vendor calls the library for its own device instead.
#include <dipu/collectives.h>
#include <dipu/collectives_c.h>

#include <dlfcn.h>

#include <map>
#include <stdexcept>
#include <string>

namespace example {

struct Communicator {
    void* handle;
};

// The table of the library, whose function has the same name as that of this library.
const dipuCollectives& library() {
    using Get = const dipuCollectives* (*)();
    static const auto get = reinterpret_cast<Get>(dlsym(RTLD_NEXT, "dipuGetCollectives"));
    if (get == nullptr) throw std::runtime_error("the library of the built-in device is missing");
    return *get();
}

// The library's numbers of element types.
int type_of(at::ScalarType type) {
    static const std::map<at::ScalarType, int> types = {
        {at::kByte, 0},          {at::kChar, 1},          {at::kShort, 2},   {at::kInt, 3},     {at::kLong, 4},
        {at::kHalf, 5},          {at::kFloat, 6},         {at::kDouble, 7},  {at::kBool, 11},   {at::kBFloat16, 15},
        {at::kComplexFloat, 9},  {at::kComplexDouble, 10}, {at::kUInt16, 27}, {at::kUInt32, 28}, {at::kUInt64, 29},
    };
    auto found = types.find(type);
    if (found == types.end()) throw std::invalid_argument("the library does not have this element type");
    return found->second;
}

// The library's numbers of operations.
int operation_of(const c10d::ReduceOp& operation) {
    using c10d::ReduceOp;
    static const std::map<ReduceOp::RedOpType, int> operations = {
        {ReduceOp::SUM, 0}, {ReduceOp::AVG, 1},  {ReduceOp::PRODUCT, 2}, {ReduceOp::MIN, 3},
        {ReduceOp::MAX, 4}, {ReduceOp::BAND, 5}, {ReduceOp::BOR, 6},     {ReduceOp::BXOR, 7},
    };
    auto found = operations.find(operation);
    if (found == operations.end()) throw std::invalid_argument("the library does not have this operation");
    return found->second;
}

void require_success(int status) {
    if (status != ::DICL_SUCCESS) throw std::runtime_error(library().lastErrorText());
}

} // namespace example

namespace dipu {
namespace devapis {

using namespace example;

diclResult_t diclGetUniqueId(commUniqueId* unique_id) {
    require_success(library().diclGetUniqueId(unique_id->bytes));
    return DICL_SUCCESS;
}

diclResult_t diclCommInitRank(diclComm_t* comm, int ranks, commUniqueId unique_id, int rank, int local_device) {
    void* handle = nullptr;
    require_success(library().diclCommInitRank(&handle, ranks, unique_id.bytes, rank, local_device));
    *comm = new Communicator{handle};
    return DICL_SUCCESS;
}

diclResult_t diclCommDestroy(diclComm_t comm) {
    require_success(library().diclCommDestroy(comm->handle));
    delete comm;
    return DICL_SUCCESS;
}

diclResult_t diclGetCommAsyncError(diclComm_t comm) {
    return library().diclGetCommAsyncError(comm->handle) == ::DICL_SUCCESS ? DICL_SUCCESS : DICL_ERR_UNDEF;
}

diclResult_t diclGetCommName(std::string& name, diclComm_t comm) {
    char text[256];
    require_success(library().diclGetCommName(text, sizeof text, comm->handle));
    name = text;
    return DICL_SUCCESS;
}

diclResult_t diclAllReduce(const void* send, void* receive, size_t count, at::ScalarType type,
                           const ReduceOp& operation, diclComm_t comm, deviceStream_t stream) {
    require_success(library().diclAllReduce(send, receive, count, type_of(type), operation_of(operation),
                                            comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclReduce(const void* send, void* receive, size_t count, at::ScalarType type, const ReduceOp& operation,
                        int root, diclComm_t comm, deviceStream_t stream) {
    require_success(library().diclReduce(send, receive, count, type_of(type), operation_of(operation), root,
                                         comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclBroadcast(const void* send, void* receive, size_t count, at::ScalarType type, int root,
                           diclComm_t comm, deviceStream_t stream) {
    require_success(library().diclBroadcast(send, receive, count, type_of(type), root, comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclAllGather(const void* send, void* receive, size_t send_count, at::ScalarType type, diclComm_t comm,
                           deviceStream_t stream) {
    require_success(library().diclAllGather(send, receive, send_count, type_of(type), comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclReduceScatter(void* send, void* receive, size_t receive_count, at::ScalarType type,
                               const ReduceOp& operation, diclComm_t comm, deviceStream_t stream) {
    require_success(library().diclReduceScatter(send, receive, receive_count, type_of(type), operation_of(operation),
                                                comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclAllToAllEqualSplit(const void* send, void* receive, size_t count, at::ScalarType type,
                                    diclComm_t comm, deviceStream_t stream) {
    require_success(library().diclAllToAllEqualSplit(send, receive, count, type_of(type), comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclAllToAllUnequalSplit(const void* send, const size_t* send_counts, const size_t* send_displacements,
                                      void* receive, const size_t* receive_counts, const size_t* receive_displacements,
                                      at::ScalarType type, diclComm_t comm, deviceStream_t stream) {
    require_success(library().diclAllToAllUnequalSplit(send, send_counts, send_displacements, receive, receive_counts,
                                                       receive_displacements, type_of(type), comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclSend(const void* send, size_t count, at::ScalarType type, int peer, diclComm_t comm,
                      deviceStream_t stream) {
    require_success(library().diclSend(send, count, type_of(type), peer, comm->handle, stream));
    return DICL_SUCCESS;
}

diclResult_t diclRecv(void* receive, size_t count, at::ScalarType type, int peer, diclComm_t comm,
                      deviceStream_t stream) {
    require_success(library().diclRecv(receive, count, type_of(type), peer, comm->handle, stream));
    return DICL_SUCCESS;
}

} // namespace devapis
} // namespace dipu
