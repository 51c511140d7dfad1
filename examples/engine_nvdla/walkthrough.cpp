// Runs a loadable with NVDLA's driver: `walkthrough FILE BATCH`. Inputs are ones; the sum of each output is printed.
#include <nvdla.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <vector>

namespace {

void check(NvError error, const char* call) {
    if (error == NvSuccess) return;
    std::fprintf(stderr, "%s: NvError %d\n", call, error);
    std::exit(1);
}
#define CHECK(call) check(call, #call)

std::vector<NvU8> read_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<NvU8> bytes{std::istreambuf_iterator<char>(file), {}};
    if (file.bad() || bytes.empty()) {
        std::fprintf(stderr, "%s can't be read\n", path);
        std::exit(1);
    }
    return bytes;
}

void print(const char* kind, const NvDlaTensor& tensor) {
    std::printf("%s %s: %llu bytes, [", kind, tensor.name, static_cast<unsigned long long>(tensor.bufferSize));
    for (NvU32 axis = 0; axis < tensor.numDims; axis++)
        std::printf("%s%lld", axis ? ", " : "", static_cast<long long>(tensor.dims[axis]));
    std::printf("]\n");
}

struct Memory {
    void *handle, *address;
};

Memory allocated(nvdla::IRuntime& runtime, const NvDlaTensor& tensor) {
    Memory memory{};
    CHECK(runtime.allocateSystemMemory(&memory.handle, std::max<NvU64>(tensor.bufferSize, 1), &memory.address));
    return memory;
}

// All tensors of a network have one batch: it is enough to set that of one.
void set_batch(nvdla::IRuntime& runtime, int batch) {
    NvDlaTensor tensor;
    CHECK(runtime.getInputTensorDesc(0, &tensor));
    if (tensor.maxBatch == 0) return; // the sizes are fixed
    std::printf("batches of up to %lld\n", static_cast<long long>(tensor.maxBatch));
    tensor.dims[0] = batch;
    CHECK(runtime.setInputTensorDesc(0, &tensor));
}

void bind_inputs(nvdla::IRuntime& runtime) {
    int count;
    CHECK(runtime.getNumInputTensors(&count));
    for (int id = 0; id < count; id++) {
        NvDlaTensor tensor;
        CHECK(runtime.getInputTensorDesc(id, &tensor));
        print("input", tensor);
        Memory memory = allocated(runtime, tensor);
        if (tensor.dataType == NvDlaDataType_FLOAT)
            std::fill_n(static_cast<float*>(memory.address), tensor.bufferSize / sizeof(float), 1.0f);
        CHECK(runtime.bindInputTensor(id, memory.handle));
    }
}

std::vector<Memory> bind_outputs(nvdla::IRuntime& runtime) {
    int count;
    CHECK(runtime.getNumOutputTensors(&count));
    std::vector<Memory> memories;
    for (int id = 0; id < count; id++) {
        NvDlaTensor tensor;
        CHECK(runtime.getOutputTensorDesc(id, &tensor));
        print("output", tensor);
        memories.push_back(allocated(runtime, tensor));
        CHECK(runtime.bindOutputTensor(id, memories.back().handle));
    }
    return memories;
}

void print_sums(nvdla::IRuntime& runtime, const std::vector<Memory>& outputs) {
    for (std::size_t id = 0; id < outputs.size(); id++) {
        NvDlaTensor tensor;
        CHECK(runtime.getOutputTensorDesc(static_cast<int>(id), &tensor));
        if (tensor.dataType != NvDlaDataType_FLOAT) continue;
        const float* elements = static_cast<const float*>(outputs[id].address);
        std::printf("%s: %g\n", tensor.name,
                    std::accumulate(elements, elements + tensor.bufferSize / sizeof(float), 0.0));
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: walkthrough FILE BATCH\n");
        return 2;
    }
    const std::vector<NvU8> loadable = read_file(argv[1]);
    const std::unique_ptr<nvdla::IRuntime, void (*)(nvdla::IRuntime*)> owner(nvdla::createRuntime(), nvdla::destroyRuntime);
    if (!owner) {
        std::fprintf(stderr, "there is no runtime; with DIOPI_ENGINE_DEBUG=1 the reference says why\n");
        return 1;
    }
    nvdla::IRuntime& runtime = *owner;
    std::printf("%d devices of at most %d\n", runtime.getNumDevices(), runtime.getMaxDevices());
    CHECK(runtime.load(loadable.data(), 0));
    set_batch(runtime, std::atoi(argv[2]));
    bind_inputs(runtime);
    const std::vector<Memory> outputs = bind_outputs(runtime);
    CHECK(runtime.submit());
    print_sums(runtime, outputs);
    CHECK(runtime.unload(0));
    return 0;
}
