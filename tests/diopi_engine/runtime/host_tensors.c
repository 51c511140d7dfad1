/* Runs an engine with one input and two outputs in system memory, then in host tensors: `host_tensors FILE`.
 *
 * The description of the bindings ends at a page that can't be read. The sums of the outputs are printed. */
#define _DEFAULT_SOURCE
#include <hgrt_c_api_pub.h>
#include <common.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BATCH = 3, BINDINGS = 3 };

/* Return memory for a description whose end is the beginning of an unreadable page. */
static hgHostTensorDesc* description_before_unreadable_page(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char* memory = (char*)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE) != 0) exit(1);
    return (hgHostTensorDesc*)(void*)(memory + page - sizeof(hgHostTensorDesc));
}

/* Return the description of a binding for a batch. */
static hgTensorDesc describe(hgEngine engine, int binding) {
    hgTensorDesc desc;
    CHECK(hgEngineGetBindingDimensions(engine, binding, &desc.dims));
    CHECK(hgEngineGetBindingType(engine, binding, &desc.type));
    CHECK(hgEngineGetBindingLayout(engine, binding, &desc.layout));
    desc.dims.d[0] = BATCH;
    return desc;
}

static void print_sum(const char* memory, const float* elements, size_t count) {
    double sum = 0;
    for (size_t n = 0; n < count; n++) sum += elements[n];
    printf("%s: %g\n", memory, sum);
}

static void run_in_system_memory(hgEngine engine, hgExecutionContext context, hgHostTensorDesc* hdesc) {
    void* bindings[BINDINGS];
    for (int n = 0; n < BINDINGS; n++) {
        size_t count = sample_floats(engine, n) * BATCH;
        float* elements = (float*)(bindings[n] = allocate(count * sizeof(float)));
        for (size_t element = 0; element < count; element++) elements[element] = 1;
    }
    hdesc->location = HG_MEM_SYSTEM;
    hdesc->size = 0;
    CHECK(hgExecutionContextExecute(context, BATCH, bindings, hdesc));
    print_sum("system", (const float*)bindings[1], sample_floats(engine, 1) * BATCH);
    for (int n = 0; n < BINDINGS; n++) free(bindings[n]);
}

static void run_in_host_tensors(hgEngine engine, hgExecutionContext context, hgHostTensorDesc* hdesc) {
    hgTensor tensors[BINDINGS];
    void* bindings[BINDINGS];
    void* address;
    size_t size;
    for (int n = 0; n < BINDINGS; n++) {
        hgTensorDesc desc = describe(engine, n);
        CHECK(hgTensorCreate(&desc, NULL, HG_MEM_HOST, &tensors[n]));
        bindings[n] = tensors[n];
    }
    CHECK(hgTensorGetSize(tensors[0], &size));
    float* ones = (float*)allocate(size);
    for (size_t n = 0; n < size / sizeof(float); n++) ones[n] = 1;
    CHECK(hgTensorData(tensors[0], ones, size));
    hgMemFlags location = HG_MEM_HOST;
    hdesc->location = location;
    hdesc->size = 0;
    CHECK(hgExecutionContextExecute(context, BATCH, bindings, hdesc));
    CHECK(hgTensorMap(tensors[1], &address));
    print_sum("host", (const float*)address, sample_floats(engine, 1) * BATCH);
    CHECK(hgTensorUnmap(tensors[1]));
    for (int n = 0; n < BINDINGS; n++) CHECK(hgTensorDestroy(tensors[n]));
    free(ones);
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    hgEngine engine = read_engine(argv[1]);
    hgExecutionContext context;
    CHECK(hgEngineCreateExecutionContext(engine, &context, HG_CORE_ALLOC_MINIMUM, 0));
    hgHostTensorDesc* hdesc = description_before_unreadable_page();
    run_in_system_memory(engine, context, hdesc);
    run_in_host_tensors(engine, context, hdesc);
    CHECK(hgExecutionContextDestroy(context));
    CHECK(hgEngineDestroy(engine));
    return 0;
}
