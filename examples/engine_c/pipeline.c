/* `pipeline DETECTOR CLASSIFIER PICTURES THRESHOLD ...` finds objects in pictures and classifies them with two engines
   of a group. `pipeline.py` creates the files. The detector returns boxes and scores. For each threshold, the host
   selects the boxes with larger scores, drops those that overlap a box with a larger score, and crops the others from
   the pictures. The classifier processes the crops in batches of any size. A line is printed for each object: picture,
   corners, score, class. */
#include "common.h"
#include <math.h>

enum { MAX_CANDIDATES = 1024 };
static const float OVERLAP = 0.3f; /* two boxes with a larger ratio of intersection and union are the same object */

struct network {
    hgEngine engine;
    hgExecutionContext context;
    int max_batch; /* the largest batch size */
};

/* An object: the number of its picture, its corners as fractions of the picture's size, and the detector's score. */
struct object {
    int picture;
    float box[4], score;
};

static struct network open_network(const char* path) {
    struct network network;
    network.engine = read_engine(path);
    CHECK(hgEngineGetMaxBatchSize(network.engine, 0, &network.max_batch));
    CHECK(hgEngineCreateExecutionContext(network.engine, &network.context, HG_CORE_ALLOC_MINIMUM, 0));
    return network;
}

static void close_network(struct network network) {
    CHECK(hgExecutionContextDestroy(network.context));
    CHECK(hgEngineDestroy(network.engine));
}

/* Return the size of a binding along an axis. */
static int length(hgEngine engine, int binding, int axis) {
    hgDims dims;
    CHECK(hgEngineGetBindingDimensions(engine, binding, &dims));
    return (int)dims.d[axis];
}

/* Execute a network with one input on any number of samples, which may be 0. */
static void execute(struct network network, float* input, int count, float* outputs[], int outputs_count) {
    for (int start = 0; start < count; start += network.max_batch) {
        int batch = count - start < network.max_batch ? count - start : network.max_batch;
        void* bindings[3] = {input + sample_floats(network.engine, 0) * (size_t)start};
        for (int n = 0; n < outputs_count; n++) {
            bindings[n + 1] = outputs[n] + sample_floats(network.engine, n + 1) * (size_t)start;
        }
        CHECK(hgExecutionContextExecute(network.context, batch, bindings, NULL));
    }
}

static float area(const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

static int is_same_object(const float* a, const float* b) {
    float width = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
    float height = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
    float common = fmaxf(width, 0) * fmaxf(height, 0);
    return common > OVERLAP * (area(a) + area(b) - common);
}

static int compare_scores(const void* a, const void* b) {
    float difference = ((const struct object*)b)->score - ((const struct object*)a)->score;
    return (difference > 0) - (difference < 0);
}

/* Write the objects of a picture to `objects` in descending order of their scores, and return their number. */
static int select_objects(int picture, const float* boxes, const float* scores, int cells, float threshold,
                  struct object* objects) {
    struct object candidates[MAX_CANDIDATES];
    int count = 0, selected = 0;
    for (int cell = 0; cell < cells && count < MAX_CANDIDATES; cell++) {
        if (!(scores[cell] > threshold)) continue;
        struct object object = {picture, {0}, scores[cell]};
        for (int n = 0; n < 4; n++) object.box[n] = boxes[cell * 4 + n];
        candidates[count++] = object;
    }
    qsort(candidates, (size_t)count, sizeof *candidates, compare_scores);
    for (int n = 0; n < count; n++) {
        int is_new = 1;
        for (int k = 0; k < selected && is_new; k++) is_new = !is_same_object(candidates[n].box, objects[k].box);
        if (is_new) objects[selected++] = candidates[n];
    }
    return selected;
}

/* Return the pixel of a picture for the n-th of `count` samples along an edge of a box. */
static int pixel(float from, float to, int n, int count, int size) {
    float position = (from + (to - from) * ((float)n + 0.5f) / (float)count) * (float)size;
    return position < 0 ? 0 : position >= (float)size ? size - 1 : (int)position;
}

static void crop(const float* picture, int size, const float* box, int crop_size, float* out) {
    for (int channel = 0; channel < 3; channel++) {
        for (int y = 0; y < crop_size; y++) {
            int row = pixel(box[1], box[3], y, crop_size, size);
            for (int x = 0; x < crop_size; x++) {
                int column = pixel(box[0], box[2], x, crop_size, size);
                *out++ = picture[(channel * size + row) * size + column];
            }
        }
    }
}

static int largest_index(const float* values, int count) {
    int found = 0;
    for (int n = 1; n < count; n++) found = values[n] > values[found] ? n : found;
    return found;
}

static void print_cores(void) {
    int cores, free_cores;
    CHECK(hgDeviceGetAttribute(0, HG_DEVICE_CORE_COUNT, &cores));
    CHECK(hgDeviceGetAttribute(0, HG_DEVICE_FREE_CORE_COUNT, &free_cores));
    printf("cores in use: %d\n", cores - free_cores);
}

/* Return the objects in all pictures, which the caller frees, and their number. */
static struct object* detect(struct network detector, float* pictures, int count, float threshold, int* found) {
    int cells = length(detector.engine, 1, 1);
    float* boxes = (float*)allocate((size_t)(count * cells * 4) * sizeof(float));
    float* scores = (float*)allocate((size_t)(count * cells) * sizeof(float));
    struct object* objects = (struct object*)allocate((size_t)(count * cells) * sizeof *objects);
    float* outputs[] = {boxes, scores};
    execute(detector, pictures, count, outputs, 2);
    *found = 0;
    for (int n = 0; n < count; n++) {
        *found += select_objects(n, boxes + n * cells * 4, scores + n * cells, cells, threshold, objects + *found);
    }
    free(scores);
    free(boxes);
    return objects;
}

/* Classify objects, and print them. */
static void classify(struct network classifier, const float* pictures, int size, const struct object* objects,
                     int count) {
    int classes = length(classifier.engine, 1, 1), crop_size = length(classifier.engine, 0, 2);
    size_t sample = sample_floats(classifier.engine, 0);
    float* crops = (float*)allocate((size_t)count * sample * sizeof(float));
    float* logits = (float*)allocate((size_t)(count * classes) * sizeof(float));
    for (int n = 0; n < count; n++) {
        const float* picture = pictures + (size_t)objects[n].picture * (size_t)(3 * size * size);
        crop(picture, size, objects[n].box, crop_size, crops + (size_t)n * sample);
    }
    execute(classifier, crops, count, &logits, 1);
    for (int n = 0; n < count; n++) {
        const struct object* object = &objects[n];
        const float* box = object->box;
        printf("picture %d: %.6f %.6f %.6f %.6f, score %.6f, class %d\n", object->picture, box[0], box[1], box[2],
               box[3], object->score, largest_index(logits + n * classes, classes));
    }
    free(logits);
    free(crops);
}

int main(int argc, char** argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: pipeline DETECTOR CLASSIFIER PICTURES THRESHOLD ...\n");
        return 2;
    }
    struct network detector = open_network(argv[1]), classifier = open_network(argv[2]);
    print_cores();
    size_t size;
    float* pictures = (float*)(void*)read_file(argv[3], &size);
    int count = (int)(size / sizeof(float) / sample_floats(detector.engine, 0));
    for (int n = 4; n < argc; n++) {
        int found;
        struct object* objects = detect(detector, pictures, count, (float)atof(argv[n]), &found);
        printf("objects in %d pictures: %d, batches of up to %d\n", count, found, classifier.max_batch);
        classify(classifier, pictures, length(detector.engine, 0, 2), objects, found);
        free(objects);
    }
    free(pictures);
    close_network(classifier);
    close_network(detector);
    return 0;
}
