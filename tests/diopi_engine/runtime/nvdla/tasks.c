/* `tasks FILE` executes an engine file with the libraries of both interfaces. Two threads execute a batch of two each
 * through the portability layer, and print the sum of the first output. Nothing is freed or closed. */
#include <hgrt.h>
#include <nvdla.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char bytes[1 << 20];
static size_t size;

#define CHECK(call)                               \
    if ((call) != NvSuccess) {                    \
        fprintf(stderr, "%s\n", #call " failed"); \
        exit(1);                                  \
    }

static void* run(void* sum) {
    void *session, *device, *addresses[4];
    const NvU32 sizes[4] = {(NvU32)size, 2 * 4 * sizeof(float), 2 * 3 * sizeof(float), 2 * sizeof(int32_t)};
    NvDlaMemDesc memories[4];
    CHECK(NvDlaInitialize(&session));
    CHECK(NvDlaOpen(session, 1, &device));
    for (int n = 0; n < 4; n++) {
        memories[n].size = sizes[n];
        CHECK(NvDlaAllocMem(session, device, &memories[n].handle, &addresses[n], sizes[n], NvDlaHeap_DRAM));
    }
    memcpy(addresses[0], bytes, size);
    for (int n = 0; n < 8; n++) ((float*)addresses[1])[n] = 1;
    NvDlaTask task = {2, 4, memories};
    CHECK(NvDlaSubmit(session, device, &task, 1));
    for (int n = 0; n < 6; n++) *(float*)sum += ((float*)addresses[2])[n];
    return NULL;
}

int main(int argc, char** argv) {
    FILE* file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) return 2;
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    int devices;
    if (hgDeviceGetCount(&devices) != HG_SUCCESS) return 3;
    float sums[2] = {0, 0};
    pthread_t threads[2];
    for (int n = 0; n < 2; n++) pthread_create(&threads[n], NULL, run, &sums[n]);
    for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);
    printf("%d %g %g\n", devices, sums[0], sums[1]);
    return 0;
}
