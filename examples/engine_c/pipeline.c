/* Finds objects in pictures and says what each is, by two engines of a group: `pipeline DETECTOR CLASSIFIER PICTURES
   THRESHOLD ...`. `pipeline.py` makes the files. The detector gives boxes and scores; of those above a threshold the
   host keeps what does not overlap a better one, cuts it out, and has the classifier say what it is, in batches of
   however many there are. A line is printed for each: picture, corners, score, class. */
#include "common.h"
#include <math.h>

enum { MOST_CANDIDATES = 1024 };
static const float OVERLAP = 0.3f; /* of two boxes, relative to what both cover, from which they are one object */

struct network {
    hgEngine engine;
    hgExecutionContext context;
    int most; /* largest batch */
};

/* An object: where its picture is, its box there, in parts of the picture, and how sure the detector is. */
struct object {
    int picture;
    float box[4], score;
};

static struct network opened(const char* path) {
    struct network made;
    made.engine = read_engine(path);
    CHECK(hgEngineGetMaxBatchSize(made.engine, 0, &made.most));
    CHECK(hgEngineCreateExecutionContext(made.engine, &made.context, HG_CORE_ALLOC_MINIMUM, 0));
    return made;
}

static void closed(struct network network) {
    CHECK(hgExecutionContextDestroy(network.context));
    CHECK(hgEngineDestroy(network.engine));
}

/* Size of a binding along an axis. */
static int length(hgEngine engine, int binding, int axis) {
    hgDims dims;
    CHECK(hgEngineGetBindingDimensions(engine, binding, &dims));
    return (int)dims.d[axis];
}

/* Executes a network of one input on any number of samples, none included. */
static void execute(struct network network, float* input, int count, float* outputs[], int outputs_count) {
    for (int start = 0; start < count; start += network.most) {
        int batch = count - start < network.most ? count - start : network.most;
        void* bindings[3] = {input + floats(network.engine, 0) * (size_t)start};
        for (int n = 0; n < outputs_count; n++) {
            bindings[n + 1] = outputs[n] + floats(network.engine, n + 1) * (size_t)start;
        }
        CHECK(hgExecutionContextExecute(network.context, batch, bindings, NULL));
    }
}

static float area(const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

static int is_same(const float* one, const float* other) {
    float width = fminf(one[2], other[2]) - fmaxf(one[0], other[0]);
    float height = fminf(one[3], other[3]) - fmaxf(one[1], other[1]);
    float common = fmaxf(width, 0) * fmaxf(height, 0);
    return common > OVERLAP * (area(one) + area(other) - common);
}

static int is_better(const void* one, const void* other) {
    float difference = ((const struct object*)other)->score - ((const struct object*)one)->score;
    return (difference > 0) - (difference < 0);
}

/* The objects of a picture, the surest first; how many. */
static int choose(int picture, const float* boxes, const float* scores, int cells, float threshold,
                  struct object* objects) {
    struct object candidates[MOST_CANDIDATES];
    int count = 0, kept = 0;
    for (int cell = 0; cell < cells && count < MOST_CANDIDATES; cell++) {
        if (!(scores[cell] > threshold)) continue;
        struct object one = {picture, {0}, scores[cell]};
        for (int n = 0; n < 4; n++) one.box[n] = boxes[cell * 4 + n];
        candidates[count++] = one;
    }
    qsort(candidates, (size_t)count, sizeof *candidates, is_better);
    for (int n = 0; n < count; n++) {
        int is_new = 1;
        for (int k = 0; k < kept && is_new; k++) is_new = !is_same(candidates[n].box, objects[k].box);
        if (is_new) objects[kept++] = candidates[n];
    }
    return kept;
}

/* The pixel of a picture that the n-th of so many along an edge of a box is. */
static int pixel(float from, float to, int n, int count, int size) {
    float place = (from + (to - from) * ((float)n + 0.5f) / (float)count) * (float)size;
    return place < 0 ? 0 : place >= (float)size ? size - 1 : (int)place;
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

static int best(const float* values, int count) {
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

/* Has the detector look at pictures; the objects in all of them, which the caller frees, and how many. */
static struct object* detect(struct network detector, float* pictures, int count, float threshold, int* found) {
    int cells = length(detector.engine, 1, 1);
    float* boxes = (float*)allocated((size_t)(count * cells * 4) * sizeof(float));
    float* scores = (float*)allocated((size_t)(count * cells) * sizeof(float));
    struct object* objects = (struct object*)allocated((size_t)(count * cells) * sizeof *objects);
    float* outputs[] = {boxes, scores};
    execute(detector, pictures, count, outputs, 2);
    *found = 0;
    for (int n = 0; n < count; n++) {
        *found += choose(n, boxes + n * cells * 4, scores + n * cells, cells, threshold, objects + *found);
    }
    free(scores);
    free(boxes);
    return objects;
}

/* Has the classifier look at objects, and prints them. */
static void classify(struct network classifier, const float* pictures, int size, const struct object* objects,
                     int count) {
    int classes = length(classifier.engine, 1, 1), crop_size = length(classifier.engine, 0, 2);
    size_t sample = floats(classifier.engine, 0);
    float* crops = (float*)allocated((size_t)count * sample * sizeof(float));
    float* logits = (float*)allocated((size_t)(count * classes) * sizeof(float));
    for (int n = 0; n < count; n++) {
        const float* picture = pictures + (size_t)objects[n].picture * (size_t)(3 * size * size);
        crop(picture, size, objects[n].box, crop_size, crops + (size_t)n * sample);
    }
    execute(classifier, crops, count, &logits, 1);
    for (int n = 0; n < count; n++) {
        const struct object* one = &objects[n];
        printf("picture %d: %.6f %.6f %.6f %.6f, score %.6f, class %d\n", one->picture, one->box[0], one->box[1],
               one->box[2], one->box[3], one->score, best(logits + n * classes, classes));
    }
    free(logits);
    free(crops);
}

int main(int argc, char** argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: pipeline DETECTOR CLASSIFIER PICTURES THRESHOLD ...\n");
        return 2;
    }
    struct network detector = opened(argv[1]), classifier = opened(argv[2]);
    print_cores();
    size_t size;
    float* pictures = (float*)(void*)read_file(argv[3], &size);
    int count = (int)(size / sizeof(float) / floats(detector.engine, 0));
    for (int n = 4; n < argc; n++) {
        int found;
        struct object* objects = detect(detector, pictures, count, (float)atof(argv[n]), &found);
        printf("objects in %d pictures: %d, batches of up to %d\n", count, found, classifier.most);
        classify(classifier, pictures, length(detector.engine, 0, 2), objects, found);
        free(objects);
    }
    free(pictures);
    closed(classifier);
    closed(detector);
    return 0;
}
