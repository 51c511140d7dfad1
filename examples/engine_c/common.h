/* Functions of the example programs: checked calls, allocation, files and engines. They exit if they fail. */
#ifndef ENGINE_C_COMMON_H
#define ENGINE_C_COMMON_H

#include <hgrt.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(hgResult result, const char* call) {
    if (result == HG_SUCCESS) return;
    const char *name = "", *text = "";
    hgGetResultName(result, &name);
    hgGetLastErrorString(&text);
    fprintf(stderr, "%s: %s: %s\n", call, name, text);
    exit(1);
}
#define CHECK(call) check(call, #call)

static inline void* allocate(size_t size) {
    void* memory = malloc(size > 0 ? size : 1);
    if (memory == NULL) exit(1);
    return memory;
}

static inline char* read_file(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    char* bytes = (char*)allocate(*size);
    if (fread(bytes, 1, *size, file) != *size) exit(1);
    fclose(file);
    return bytes;
}

static inline hgEngine read_engine(const char* path) {
    size_t size;
    char* bytes = read_file(path, &size);
    hgEngine engine;
    CHECK(hgEngineCreate(bytes, size, &engine));
    free(bytes);
    return engine;
}

/* Return the number of floats in a sample of a binding. */
static inline size_t sample_floats(hgEngine engine, int binding) {
    int size;
    CHECK(hgEngineGetBindingAttribute(engine, binding, HG_BINDING_ATTR_SAMPLE_SIZE, &size));
    return (size_t)size / sizeof(float);
}

#endif
