/* Runs an engine file with HanGuangRT: `walkthrough FILE BATCH`. Inputs are ones; the sum of each output is printed. */
#include "common.h"

static void print_devices(void) {
    int version, devices, cores, memory;
    CHECK(hgRuntimeGetVersion(&version));
    CHECK(hgDeviceGetCount(&devices));
    CHECK(hgDeviceGetAttribute(0, HG_DEVICE_CORE_COUNT, &cores));
    CHECK(hgDeviceGetAttribute(0, HG_DEVICE_LOCAL_MEMORY_SIZE, &memory));
    printf("version %d, %d devices of %d cores with %d bytes\n", version, devices, cores, memory);
}

static void print_scheme(hgEngine engine) {
    hgExecutionScheme scheme;
    int id, count;
    CHECK(hgEngineGetEngineID(engine, &id));
    CHECK(hgEngineGetExecutionScheme(engine, &scheme));
    CHECK(hgSchemeGetEngineCount(scheme, &count));
    for (int n = 0; n < count; n++) {
        hgEngineControl* control;
        CHECK(hgSchemeGetEngineControl(scheme, n, &control));
        printf("%s %d %s: device %d, cores %#x, %d a batch\n", n == id ? "this is" : "beside", control->engineId,
               control->engineName, control->virtualDeviceId, (unsigned)control->coreMask, control->coresPerBatch);
    }
}

/* The sum of a binding's elements, as far as they are floats. */
static double sum(const float* elements, size_t count) {
    double total = 0;
    for (size_t n = 0; n < count; n++) total += elements[n];
    return total;
}

static void run(hgEngine engine, hgExecutionContext context, int batch) {
    int32_t count;
    CHECK(hgEngineGetNbBindings(engine, &count));
    void** bindings = (void**)allocate((size_t)count * sizeof *bindings);
    size_t* floats = (size_t*)allocate((size_t)count * sizeof *floats);
    for (int n = 0; n < count; n++) {
        int size;
        CHECK(hgEngineGetBindingAttribute(engine, n, HG_BINDING_ATTR_SAMPLE_SIZE, &size));
        floats[n] = (size_t)size * (size_t)batch / sizeof(float);
        bindings[n] = allocate((size_t)size * (size_t)batch);
        float* elements = (float*)bindings[n];
        for (size_t element = 0; element < floats[n]; element++) elements[element] = 1;
    }
    CHECK(hgExecutionContextExecute(context, batch, bindings, NULL));
    for (int n = 0; n < count; n++) {
        const char* name;
        hgDataType type;
        CHECK(hgEngineGetBindingName(engine, n, &name));
        CHECK(hgEngineGetBindingType(engine, n, &type));
        if (type == HG_TYPE_FLOAT32) printf("%s: %g\n", name, sum((const float*)bindings[n], floats[n]));
        free(bindings[n]);
    }
    free(floats);
    free(bindings);
}

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: walkthrough FILE BATCH\n");
        return 2;
    }
    print_devices();
    hgEngine engine = read_engine(argv[1]);
    print_scheme(engine);
    int most;
    CHECK(hgEngineGetMaxBatchSize(engine, HG_BATCH_SIZE_MAX_CORES, &most));
    printf("batches of up to %d\n", most);
    hgExecutionContext context;
    CHECK(hgEngineCreateExecutionContext(engine, &context, HG_CORE_ALLOC_MAXIMUM, 0));
    run(engine, context, atoi(argv[2]));
    CHECK(hgExecutionContextDestroy(context));
    CHECK(hgEngineDestroy(engine));
    return 0;
}
