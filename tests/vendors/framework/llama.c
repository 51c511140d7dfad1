/* The LLaMA of tests/helpers/llama.py, decoded with the engine's functions of the vendor library linked to it.
 *
 *   llama top-k    prints the tokens of each time, a line a time; top-p likewise
 */
#include <math.h>

#include <diopi/functions_lmdeploy.h>

#include "runtime.h"

enum { BATCH = 3, PROMPT = 5, TIMES = 14, VOCABULARY = 23, PADDED = 24, WIDTH = 16, INNER = 20, LAYERS = 2 };
enum { HEADS = 4, KEYS = 2, SIZE = 4, PROJECTED = (HEADS + 2 * KEYS) * SIZE, END = 7, TOP_K = 6, TABLE = 6 };
enum { QKV = 1, OUTPUT, GATE, UP, DOWN, NORM, SECOND_NORM, BIAS, ROLES };
enum { EMBEDDING = 0, LAST_NORM = 100, HEAD = 101 };

static const float THETA = 10000.0f, EPS = 1e-5f, TEMPERATURE = 0.75f, PENALTY = 1.25f, TOP_P = 0.875f;
static const int64_t PROMPTS[PROMPT][BATCH] = {{1, 4, 9}, {2, 2, 20}, {3, 11, 5}, {17, 0, 3}, {6, 8, 12}};
static const int64_t BANNED[2][TABLE] = {{13, 6, 2, 8, 12, 4}, {1, 3, 6, -1, -1, -1}};
static const int64_t STOP[2][TABLE] = {{4, 1, 21, 0, 0, 0}, {2, 3, -1, -1, -1, -1}};
static const int64_t LIMITS[BATCH] = {13, 11, 12};

static Session session;
static diopiContextHandle_t ctx = &session.context;

static diopiTensorHandle_t layers[LAYERS][ROLES], embedding, last_norm, head, keys, values;
static diopiTensorHandle_t output_ids, finished, should_stop, finished_sum, padding, lengths;
static struct diopiGenerator states[BATCH] = {{11, 0}, {1ULL << 40, 0}, {77, 0}};
static diopiGeneratorHandle_t generators[BATCH] = {&states[0], &states[1], &states[2]};

#define CALL(...) CHECK((__VA_ARGS__) == diopiSuccess)

/* Tensors. */

static diopiTensorHandle_t made(diopiDtype_t dtype, int64_t one, int64_t two, const void* data) {
    int64_t shape[] = {one, two};
    return tensor_of(&session, dtype, shape, two ? 2 : 1, data);
}

static diopiTensorHandle_t integers(int64_t one, int64_t two, const int64_t* data) {
    return made(diopi_dtype_int64, one, two, data);
}

static diopiTensorHandle_t floats(int64_t one, int64_t two) { return made(diopi_dtype_float32, one, two, NULL); }

static diopiTensorHandle_t same_floats(int64_t count, float value) {
    float all[TIMES];
    for (int64_t i = 0; i < count; i++) all[i] = value;
    return made(diopi_dtype_float32, count, 0, all);
}

static diopiTensorHandle_t same_integers(int64_t count, int64_t value) {
    int64_t all[TIMES * BATCH];
    for (int64_t i = 0; i < count; i++) all[i] = value;
    return integers(count, 0, all);
}

static void read_back(diopiTensorHandle_t from, void* to) {
    CHECK(device.d2h(session.context.stream, to, from->data, (uint64_t)(from->numel * element_size(from->dtype))) == 0);
    CHECK(device.synchronize(session.context.stream) == 0);
}

/* Return numbers in mean +- scale that depend on the number of the tensor and their positions. */
static diopiTensorHandle_t weights(uint32_t number, int64_t rows, int64_t columns, float scale, float mean) {
    static float drawn[PADDED * PROJECTED];
    float step = (float)((double)scale / 1000);
    for (int64_t i = 0; i < rows * (columns ? columns : 1); i++) {
        uint32_t mixed = (uint32_t)(i + 1) * 2654435761u + number * 40503u;
        mixed ^= mixed >> 15;
        mixed *= 2246822519u;
        mixed ^= mixed >> 13;
        float scaled = ((float)(mixed % 2001) - 1000.0f) * step;
        drawn[i] = scaled + mean;
    }
    return made(diopi_dtype_float32, rows, columns, drawn);
}

static void make_model(void) {
    embedding = weights(EMBEDDING, VOCABULARY, WIDTH, 1, 0);
    last_norm = weights(LAST_NORM, WIDTH, 0, 0.25f, 1);
    head = weights(HEAD, WIDTH, PADDED, 1, 0);
    for (uint32_t n = 0; n < LAYERS; n++) {
        layers[n][NORM] = weights(10 * n + NORM, WIDTH, 0, 0.25f, 1);
        layers[n][SECOND_NORM] = weights(10 * n + SECOND_NORM, WIDTH, 0, 0.25f, 1);
        layers[n][QKV] = weights(10 * n + QKV, WIDTH, PROJECTED, 0.75f, 0);
        layers[n][BIAS] = weights(10 * n + BIAS, 1, PROJECTED, 0.25f, 0);
        layers[n][OUTPUT] = weights(10 * n + OUTPUT, WIDTH, WIDTH, 0.5f, 0);
        layers[n][GATE] = weights(10 * n + GATE, WIDTH, INNER, 0.5f, 0);
        layers[n][UP] = weights(10 * n + UP, WIDTH, INNER, 0.5f, 0);
        layers[n][DOWN] = weights(10 * n + DOWN, INNER, WIDTH, 0.5f, 0);
    }
}

static void make_state(void) {
    static float nothing[LAYERS * BATCH * KEYS * TIMES * SIZE];
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) nothing[i] = NAN;
    int64_t shape[] = {LAYERS, BATCH, KEYS, TIMES, SIZE}, ids[TIMES][BATCH];
    keys = tensor_of(&session, diopi_dtype_float32, shape, 5, nothing);
    values = tensor_of(&session, diopi_dtype_float32, shape, 5, nothing);
    for (int t = 0; t < TIMES; t++)
        for (int b = 0; b < BATCH; b++) ids[t][b] = t < PROMPT ? PROMPTS[t][b] : -1;
    output_ids = integers(TIMES, BATCH, ids[0]);
    finished = made(diopi_dtype_bool, BATCH, 0, NULL);
    should_stop = made(diopi_dtype_bool, 1, 0, NULL);
    finished_sum = same_integers(1, 0);
    padding = same_integers(BATCH, 0);
    lengths = same_integers(BATCH, PROMPT);
}

/* Return a workspace of the size that the latest query returned. */
static diopiTensorHandle_t workspace(int64_t size) {
    CHECK(size >= 0);
    return floats(size + 1, 0);
}

/* Layers: `step` is 0 for the prompts. */

static void attend(int64_t n, diopiTensorHandle_t x, int64_t step) {
    int64_t size = -1, pre_size = -1;
#define PREFILL(x, w, b, pre, work, k, v)                                                                            \
    diopiFusedContextAttentionInp(ctx, x, w, b, pre, &pre_size, false, work, &size, 1, k, v, n, HEADS, KEYS, SIZE,   \
                                  TIMES, PROMPT, PROMPT, SIZE, THETA)
#define DECODE(x, w, b, work, k, v, f, p, l)                                                                         \
    diopiFusedDecoderAttentionInp(ctx, x, w, b, work, &size, 1, k, v, f, p, l, step, n, HEADS, KEYS, SIZE, TIMES,    \
                                  SIZE, THETA)
    diopiTensorHandle_t w = layers[n][QKV], b = layers[n][BIAS];
    if (step == 0) {
        CALL(PREFILL(NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CALL(PREFILL(x, w, b, workspace(pre_size), workspace(size), keys, values));
    } else {
        CALL(DECODE(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CALL(DECODE(x, w, b, workspace(size), keys, values, finished, padding, lengths));
    }
}

static diopiTensorHandle_t hidden(diopiTensorHandle_t x, diopiTensorHandle_t residual, int64_t rows, int64_t step) {
    CALL(diopiRootMeanSquareNormInp(ctx, x, layers[0][NORM], EPS));
    for (int64_t n = 0; n < LAYERS; n++) {
        int64_t size = -1;
        attend(n, x, step);
        diopiTensorHandle_t projected = floats(rows, WIDTH);
        CALL(diopiMm(ctx, projected, x, layers[n][OUTPUT]));
        CALL(diopiFusedAddRootMeanSquareNormInp(ctx, projected, residual, NULL, layers[n][SECOND_NORM], EPS));
        CALL(diopiFusedSiluFfnInp(ctx, NULL, NULL, NULL, NULL, NULL, &size, 0));
        CALL(diopiFusedSiluFfnInp(ctx, projected, layers[n][GATE], layers[n][DOWN], layers[n][UP], workspace(size),
                                  &size, 0));
        diopiTensorHandle_t norm = n + 1 < LAYERS ? layers[n + 1][NORM] : last_norm;
        CALL(diopiFusedAddRootMeanSquareNormInp(ctx, projected, residual, NULL, norm, EPS));
        x = projected;
    }
    return x;
}

static diopiTensorHandle_t prefill(void) {
    int64_t tokens = BATCH * PROMPT, ids[BATCH][PROMPT], by_sequence[] = {BATCH, PROMPT, WIDTH};
    int64_t by_time[] = {PROMPT, BATCH, WIDTH};
    static float rows[PROMPT][BATCH][WIDTH];
    for (int b = 0; b < BATCH; b++)
        for (int t = 0; t < PROMPT; t++) ids[b][t] = PROMPTS[t][b];
    diopiTensorHandle_t prompts = integers(tokens, 0, ids[0]), x = floats(tokens, WIDTH), residual = floats(tokens, WIDTH);
    CALL(diopiInputIdsEmbeddingLookupPosEncoding(ctx, x, prompts, embedding, tokens, WIDTH));
    CALL(diopiInputIdsEmbeddingLookupPosEncoding(ctx, residual, prompts, embedding, tokens, WIDTH));
    read_back(hidden(x, residual, tokens, 0), rows);
    diopiTensorHandle_t swapped = tensor_of(&session, diopi_dtype_float32, by_time, 3, NULL);
    diopiTensorHandle_t given = tensor_of(&session, diopi_dtype_float32, by_sequence, 3, rows);
    CALL(diopiTransposeAxis01(ctx, swapped, given, BATCH, PROMPT, WIDTH));
    read_back(swapped, rows);
    return made(diopi_dtype_float32, BATCH, WIDTH, rows[PROMPT - 1]);
}

static diopiTensorHandle_t decode(int64_t step) {
    diopiTensorHandle_t x = floats(BATCH, WIDTH), residual = floats(BATCH, WIDTH);
    CALL(diopiEmbeddingLookupPosEncoding(ctx, x, embedding, output_ids, BATCH, WIDTH, step - 1));
    CALL(diopiEmbeddingLookupPosEncoding(ctx, residual, embedding, output_ids, BATCH, WIDTH, step - 1));
    return hidden(x, residual, BATCH, step);
}

/* Tokens. */

static void draw(diopiTensorHandle_t logits, int64_t step, bool is_top_k) {
    int64_t size = -1, kept_size = -1;
    diopiTensorHandle_t ks = same_integers(BATCH, 0), ps = same_floats(BATCH, 0), ends = same_integers(BATCH, END);
    diopiTensorHandle_t skip = made(diopi_dtype_bool, BATCH, 0, NULL);
#define BY_K(ids, l, work, e, f, n, k, p, s)                                                                      \
    diopiTopKSampling(ctx, ids, l, work, &size, 0, e, f, n, step, BATCH, PADDED, k, p, s, NULL, NULL, generators)
#define BY_P(ids, l, kept, work, e, f, n, p, s)                                                                   \
    diopiTopPSampling(ctx, ids, l, kept, &kept_size, work, &size, 0, e, f, n, step, BATCH, PADDED, p, s, NULL,    \
                      NULL, generators)
    if (is_top_k) {
        CALL(diopiSetupTopkRuntimeArgsInp(ctx, ks, ps, skip, BATCH, TOP_K, 0, TOP_P, 0));
        CALL(BY_K(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CALL(BY_K(output_ids, logits, workspace(size), ends, finished, lengths, ks, ps, skip));
    } else {
        diopiTensorHandle_t first = same_floats(BATCH, 0), decay = same_floats(BATCH, 0), least = same_floats(BATCH, 0);
        CALL(diopiSetupToppRuntimeArgsInp(ctx, ks, ps, skip, BATCH, 0, 0, TOP_P, 0, first, decay, 1.0f, least, 0.5f,
                                          same_integers(BATCH, 0), -1));
        CALL(BY_P(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CALL(BY_P(output_ids, logits, workspace(kept_size), workspace(size), ends, finished, lengths, ps, skip));
    }
}

static bool sample(diopiTensorHandle_t state, int64_t step, bool is_top_k) {
    bool stop;
    int64_t shape[] = {BATCH, 2, TABLE}, stops[BATCH][2][TABLE];
    for (int b = 0; b < BATCH; b++) memcpy(stops[b], STOP, sizeof STOP);
    diopiTensorHandle_t logits = floats(BATCH, PADDED), words = integers(2, TABLE, BANNED[0]);
    CALL(diopiMm(ctx, logits, state, head));
    CALL(diopiBatchApplyTemperaturePenaltyInp(ctx, logits, NULL, same_floats(BATCH, TEMPERATURE), BATCH, VOCABULARY,
                                              PADDED));
    CALL(diopiBatchApplyRepetitionPenaltyInp(ctx, logits, same_floats(BATCH, PENALTY), output_ids, BATCH, PADDED, NULL,
                                             PROMPT, step, 2));
    CALL(diopiBanBadWordsInp(ctx, logits, output_ids, words, 0, TABLE, true, BATCH, PADDED, step));
    draw(logits, step, is_top_k);
    diopiTensorHandle_t stop_words = tensor_of(&session, diopi_dtype_int64, shape, 3, stops);
    CALL(diopiStopWordsCriterion(ctx, output_ids, stop_words, finished, 0, TABLE, BATCH, step));
    CALL(diopiLengthCriterion(ctx, finished, should_stop, finished_sum, integers(BATCH, 0, LIMITS), BATCH, step));
    read_back(should_stop, &stop);
    return stop;
}

int main(int count, char** arguments) {
    bool is_top_k = count > 1 && strcmp(arguments[1], "top-k") == 0;
    int64_t step = PROMPT, tokens[BATCH][TIMES];
    open_session(&session);
    make_model();
    make_state();
    diopiTensorHandle_t prompts = same_integers(BATCH, PROMPT), gathered = integers(BATCH, TIMES, NULL);
    CALL(diopiUpdatePaddingCount(ctx, padding, prompts, PROMPT, BATCH));
    CALL(diopiPlusScalarInp(ctx, lengths, -1, BATCH)); /* the length counts a token before the cache has it */
    for (bool stop = sample(prefill(), step, is_top_k); !stop;) {
        step++;
        stop = sample(decode(step), step, is_top_k);
    }
    CALL(diopiGatherOutput(ctx, gathered, output_ids, prompts, PROMPT, step + 1, TIMES, BATCH));
    read_back(gathered, tokens);
    for (int64_t t = 0; t <= step; t++)
        printf("%d %d %d\n", (int)tokens[0][t], (int)tokens[1][t], (int)tokens[2][t]);
    close_session(&session);
    return finalizeLibrary();
}
