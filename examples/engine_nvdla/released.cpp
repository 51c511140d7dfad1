// Runs a loadable with NVDLA's driver as the released headers declare it: `released FILE BATCH`. Inputs are ones; the
// sum of each output is printed.
#include <nvdla_released.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <vector>

namespace {

using Tensor = nvdla::IRuntime::NvDlaTensor;

void require(bool succeeded, const char* call) {
    if (succeeded) return;
    std::fprintf(stderr, "%s failed\n", call);
    std::exit(1);
}
#define CHECK(call) require((call) == NvDlaSuccess, #call)
#define REQUIRE(call) require(call, #call)

std::vector<NvU8> read_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<NvU8> bytes{std::istreambuf_iterator<char>(file), {}};
    REQUIRE(!file.bad() && !bytes.empty());
    return bytes;
}

void print(const char* kind, const Tensor& tensor) {
    std::printf("%s %s: type %d, format %d, %llu bytes, [%d, %d, %d, %d], lines of %u bytes\n", kind, tensor.name,
                tensor.dataType, tensor.dataFormat, static_cast<unsigned long long>(tensor.bufferSize), tensor.dims.n,
                tensor.dims.c, tensor.dims.h, tensor.dims.w, tensor.stride[1]);
}

struct Memory {
    void *handle, *address;
};

Memory allocated(nvdla::IRuntime& runtime, const Tensor& tensor) {
    Memory memory{};
    CHECK(runtime.allocateSystemMemory(&memory.handle, std::max<NvU64>(tensor.bufferSize, 1), &memory.address));
    return memory;
}

void set_batch(nvdla::IRuntime& runtime, int batch) {
    Tensor tensor;
    CHECK(runtime.getInputTensorDesc(0, &tensor));
    tensor.dims.n = batch;
    CHECK(runtime.setInputTensorDesc(0, &tensor));
}

void bind_inputs(nvdla::IRuntime& runtime) {
    int count;
    CHECK(runtime.getNumInputTensors(&count));
    for (int id = 0; id < count; id++) {
        Tensor tensor;
        CHECK(runtime.getInputTensorDesc(id, &tensor));
        print("input", tensor);
        const Memory memory = allocated(runtime, tensor);
        if (tensor.dataType == 1)
            std::fill_n(static_cast<float*>(memory.address), tensor.bufferSize / sizeof(float), 1.0f);
        REQUIRE(runtime.bindInputTensor(id, memory.handle));
    }
}

std::vector<Memory> bind_outputs(nvdla::IRuntime& runtime) {
    int count;
    CHECK(runtime.getNumOutputTensors(&count));
    std::vector<Memory> memories;
    for (int id = 0; id < count; id++) {
        Tensor tensor;
        CHECK(runtime.getOutputTensorDesc(id, &tensor));
        print("output", tensor);
        memories.push_back(allocated(runtime, tensor));
        REQUIRE(runtime.bindOutputTensor(id, memories.back().handle));
    }
    return memories;
}

void print_sums(nvdla::IRuntime& runtime, const std::vector<Memory>& outputs) {
    for (std::size_t id = 0; id < outputs.size(); id++) {
        Tensor tensor;
        CHECK(runtime.getOutputTensorDesc(static_cast<int>(id), &tensor));
        if (tensor.dataType != 1) continue;
        const float* elements = static_cast<const float*>(outputs[id].address);
        std::printf("%s: %g\n", tensor.name,
                    std::accumulate(elements, elements + tensor.bufferSize / sizeof(float), 0.0));
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: released FILE BATCH\n");
        return 2;
    }
    std::vector<NvU8> loadable = read_file(argv[1]);
    const std::unique_ptr<nvdla::IRuntime, void (*)(nvdla::IRuntime*)> owner(nvdla::createRuntime(),
                                                                              nvdla::destroyRuntime);
    if (!owner) {
        std::fprintf(stderr, "there is no runtime; with DIOPI_ENGINE_DEBUG=1 the reference says why\n");
        return 1;
    }
    nvdla::IRuntime& runtime = *owner;
    std::printf("%d devices of at most %d\n", runtime.getNumDevices(), runtime.getMaxDevices());
    REQUIRE(runtime.initEMU());
    REQUIRE(runtime.load(loadable.data(), 0));
    NvU8 type;
    CHECK(runtime.getNetworkDataType(&type));
    std::printf("type %d\n", type);
    set_batch(runtime, std::atoi(argv[2]));
    bind_inputs(runtime);
    const std::vector<Memory> outputs = bind_outputs(runtime);
    REQUIRE(runtime.submit());
    print_sums(runtime, outputs);
    runtime.unload();
    runtime.stopEMU();
    return 0;
}
