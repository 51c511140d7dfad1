/* `batches ENGINE INPUT OUTPUT BATCH ...` executes an engine with one input and one output of floats in batches of
   these sizes. The file INPUT has the samples of the largest batch, of which each batch uses the first ones. The results are
   written to the files OUTPUT.BATCH, and the shortest time of three executions is printed. */
#include "common.h"
#include <time.h>

enum { REPEATS = 3 };

static double milliseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void write_file(const char* name, int batch, const float* elements, size_t count) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", name, batch);
    FILE* file = fopen(path, "wb");
    if (file == NULL || fwrite(elements, sizeof *elements, count, file) != count || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static void run(hgEngine engine, hgExecutionContext context, float* input, int batch, const char* output) {
    size_t count = sample_floats(engine, 1) * (size_t)batch;
    float* results = (float*)allocate(count * sizeof *results);
    void* bindings[] = {input, results};
    CHECK(hgExecutionContextExecute(context, batch, bindings, NULL)); /* the first execution may compile */
    double best = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double start = milliseconds();
        CHECK(hgExecutionContextExecute(context, batch, bindings, NULL));
        double taken = milliseconds() - start;
        if (repeat == 0 || taken < best) best = taken;
    }
    printf("batch %d: %.3f ms\n", batch, best);
    write_file(output, batch, results, count);
    free(results);
}

int main(int argc, char** argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: batches ENGINE INPUT OUTPUT BATCH ...\n");
        return 2;
    }
    hgEngine engine = read_engine(argv[1]);
    size_t size;
    float* input = (float*)(void*)read_file(argv[2], &size);
    hgExecutionContext context;
    CHECK(hgEngineCreateExecutionContext(engine, &context, HG_CORE_ALLOC_MINIMUM, 0));
    for (int n = 4; n < argc; n++) {
        int batch = atoi(argv[n]);
        if (batch < 1 || size / sizeof(float) / sample_floats(engine, 0) < (size_t)batch) {
            fprintf(stderr, "%s has no %s samples\n", argv[2], argv[n]);
            return 1;
        }
        run(engine, context, input, batch, argv[3]);
    }
    free(input);
    CHECK(hgExecutionContextDestroy(context));
    CHECK(hgEngineDestroy(engine));
    return 0;
}
