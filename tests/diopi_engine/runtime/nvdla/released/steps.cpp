// `steps FILE` makes each call of the released interface with valid and invalid arguments, and checks the results. FILE
// is an engine with the input x of 4 floats and the outputs y and z for batches of up to 16.
#include <nvdla_released.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#define EXPECT(condition)                                                       \
    if (!(condition)) {                                                         \
        std::fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition); \
        std::exit(1);                                                           \
    }

using Tensor = nvdla::IRuntime::NvDlaTensor;

static void check_states(nvdla::IRuntime& runtime, NvU8* loadable) {
    int count = -1;
    NvU8 type = 99;
    void *handle, *address;
    EXPECT(runtime.getNumInputTensors(&count) == NvDlaError_NotInitialized);
    EXPECT(runtime.getNetworkDataType(&type) == NvDlaError_NotInitialized);
    EXPECT(runtime.allocateSystemMemory(&handle, 16, &address) == NvDlaError_NotInitialized);
    EXPECT(!runtime.submit());
    EXPECT(!runtime.load(nullptr, 0));
    EXPECT(!runtime.load(loadable, 99));
    // a FlatBuffer: the offset 12 of its table, an identifier, the sizes 4 and 4, and the distance 4 to the sizes
    NvU8 upstream[64] = {12, 0, 0, 0, 'N', 'V', 'D', 'A', 4, 0, 4, 0, 4, 0, 0, 0};
    EXPECT(!runtime.load(upstream, 0));
    EXPECT(runtime.load(loadable, 0));
    EXPECT(!runtime.load(loadable, 0)); // a network is loaded
    EXPECT(runtime.getNumInputTensors(nullptr) == NvDlaError_BadParameter);
    EXPECT(runtime.getNumInputTensors(&count) == NvDlaSuccess && count == 1);
    EXPECT(runtime.getNumOutputTensors(&count) == NvDlaSuccess && count == 2);
    EXPECT(runtime.getNetworkDataType(&type) == NvDlaSuccess && type == 1);
}

static void check_descriptions(nvdla::IRuntime& runtime) {
    Tensor x, y;
    EXPECT(runtime.getInputTensorDesc(1, &x) == NvDlaError_BadParameter);
    EXPECT(runtime.getInputTensorDesc(0, &x) == NvDlaSuccess);
    EXPECT(std::strcmp(x.name, "x") == 0 && x.dims.n == 1 && x.dims.c == 4 && x.bufferSize == 16);
    EXPECT(x.dataFormat == 1 && x.dataType == 1 && x.dataCategory == 0 && x.pixelFormat == 36 && x.pixelMapping == 0);
    EXPECT(x.stride[0] == 4 && x.stride[1] == 4 && x.stride[2] == 4 && x.stride[3] == 16 && x.stride[4] == 0);
    x.dims.n = 17;
    EXPECT(runtime.setInputTensorDesc(0, &x) == NvDlaError_BadParameter);
    x.dims.n = 2;
    x.dims.c = 5;
    EXPECT(runtime.setInputTensorDesc(0, &x) == NvDlaError_NotSupported);
    x.dims.c = 4;
    EXPECT(runtime.setInputTensorDesc(0, &x) == NvDlaSuccess);
    EXPECT(runtime.getOutputTensorDesc(0, &y) == NvDlaSuccess && y.dims.n == 2 && y.bufferSize == 24);
    y.dims.n = 1;
    EXPECT(runtime.setOutputTensorDesc(0, &y) == NvDlaSuccess);
}

static void check_memory(nvdla::IRuntime& runtime) {
    void *handles[3], *addresses[3], *spare, *address;
    const NvU64 sizes[3] = {16, 12, 4};
    for (int n = 0; n < 3; n++)
        EXPECT(runtime.allocateSystemMemory(&handles[n], sizes[n], &addresses[n]) == NvDlaSuccess);
    EXPECT(runtime.allocateSystemMemory(&spare, 64, &address) == NvDlaSuccess);
    runtime.freeSystemMemory(spare, 64);
    EXPECT(!runtime.bindInputTensor(0, spare)); // freed
    EXPECT(!runtime.bindInputTensor(0, handles[2])); // too small
    EXPECT(runtime.bindInputTensor(0, handles[0]));
    EXPECT(!runtime.submit()); // the outputs are not bound
    EXPECT(runtime.bindOutputTensor(0, handles[1]) && runtime.bindOutputTensor(1, handles[2]));
    for (int n = 0; n < 4; n++) static_cast<float*>(addresses[0])[n] = n == 3 ? 2.0f : 0.0f;
    EXPECT(runtime.submit());
    int32_t largest;
    std::memcpy(&largest, addresses[2], sizeof largest);
    EXPECT(largest == 3);
    runtime.unload();
    EXPECT(!runtime.bindInputTensor(0, handles[0])); // nothing is loaded
}

// Unloading frees what was bound: a handle of it is unknown to the next network.
static void check_next_network(nvdla::IRuntime& runtime, NvU8* loadable) {
    void *handle, *address;
    EXPECT(runtime.load(loadable, 1));
    EXPECT(runtime.allocateSystemMemory(&handle, 16, &address) == NvDlaSuccess);
    EXPECT(runtime.bindInputTensor(0, handle));
    runtime.unload();
    EXPECT(runtime.load(loadable, 1));
    EXPECT(!runtime.bindInputTensor(0, handle));
    runtime.unload();
}

// An output may be in the same memory as an input if the parts do not overlap.
static void check_overlap(void* session, void* device, NvDlaTask task, void* input) {
    task.address_list[4].handle = task.address_list[2].handle;
    task.address_list[4].offset = 8;
    EXPECT(NvDlaSubmit(session, device, &task, 1) == NvDlaError_BadParameter);
    task.address_list[4].offset = 4;
    EXPECT(NvDlaSubmit(session, device, &task, 1) == NvDlaSuccess);
    EXPECT(static_cast<int32_t*>(input)[1] == 1);
}

static void check_layer(const std::vector<NvU8>& loadable) {
    void *session, *device;
    EXPECT(NvDlaInitialize(&session) == NvDlaSuccess);
    EXPECT(NvDlaOpen(session, 99, &device) == NvDlaError_DeviceNotFound);
    EXPECT(NvDlaOpen(session, 0, &device) == NvDlaSuccess);
    const NvU32 batch = 1, sizes[5] = {static_cast<NvU32>(loadable.size()), 4 + 4, 16 + 8, 12, 4};
    void* addresses[5];
    const auto task = std::make_unique<NvDlaTask>();
    task->task_id = 7;
    task->num_addresses = 1;
    for (int n = 0; n < 5; n++)
        EXPECT(NvDlaAllocMem(session, device, &task->address_list[n].handle, &addresses[n], sizes[n], NvDlaHeap_System) ==
               NvDlaSuccess);
    EXPECT(NvDlaSubmit(session, device, task.get(), 1) == NvDlaError_BadParameter);
    task->num_addresses = 5;
    std::memcpy(addresses[0], loadable.data(), loadable.size());
    task->address_list[1].offset = 4;
    std::memcpy(static_cast<char*>(addresses[1]) + 4, &batch, sizeof batch);
    task->address_list[2].offset = 8;
    static_cast<float*>(addresses[2])[2 + 1] = 5;
    EXPECT(NvDlaSubmit(session, device, task.get(), 1) == NvDlaSuccess);
    EXPECT(*static_cast<int32_t*>(addresses[4]) == 1);
    check_overlap(session, device, *task, addresses[2]);
    task->address_list[2].offset = 25;
    EXPECT(NvDlaSubmit(session, device, task.get(), 1) == NvDlaError_BadParameter);
    EXPECT(NvDlaFreeMem(session, device, task->address_list[4].handle, addresses[4], 4) == NvDlaSuccess);
    NvDlaClose(device);
    NvDlaDestroy(session);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    std::ifstream file(argv[1], std::ios::binary);
    std::vector<NvU8> loadable{std::istreambuf_iterator<char>(file), {}};
    nvdla::IRuntime* runtime = nvdla::createRuntime();
    EXPECT(runtime != nullptr);
    EXPECT(runtime->getMaxDevices() == 64 && runtime->getNumDevices() == 2);
    EXPECT(runtime->initEMU());
    runtime->stopEMU();
    check_states(*runtime, loadable.data());
    check_descriptions(*runtime);
    check_memory(*runtime);
    check_next_network(*runtime, loadable.data());
    nvdla::destroyRuntime(runtime);
    check_layer(loadable);
    std::printf("every step succeeded\n");
    return 0;
}
