/* Operators on float32 and float64, one for each kind of parameter; other element types are not supported. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define TRY(call)                                \
    do {                                         \
        diopiError_t code_ = (call);             \
        if (code_ != diopiSuccess) return code_; \
    } while (0)

/* Call a function of the runtime; if it fails, store the reason. */
#define ASK(call)                                                                                     \
    do {                                                                                              \
        diopiError_t code_ = (call);                                                                  \
        if (code_ != diopiSuccess) return fail(code_, "the runtime returned %d: " #call, (int)code_); \
    } while (0)

/* Return from the function with an error unless a requirement of the arguments is met. */
#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) return fail(diopiErrorOccurred, "expected " #condition); \
    } while (0)

/* A tensor's elements and geometry. */
typedef struct {
    char* data;
    diopiSize_t shape, stride;
    int64_t numel;
    diopiDtype_t dtype;
} View;

static diopiError_t any_view(diopiConstTensorHandle_t tensor, View* view) {
    ASK(diopiGetTensorDataConst(tensor, (const void**)&view->data));
    ASK(diopiGetTensorShape(tensor, &view->shape));
    ASK(diopiGetTensorStride(tensor, &view->stride));
    ASK(diopiGetTensorNumel(tensor, &view->numel));
    ASK(diopiGetTensorDtype(tensor, &view->dtype));
    return diopiSuccess;
}

static diopiError_t float_view(diopiConstTensorHandle_t tensor, View* view) {
    TRY(any_view(tensor, view));
    if (view->dtype == diopi_dtype_float32 || view->dtype == diopi_dtype_float64) return diopiSuccess;
    return fail(diopiDtypeNotSupported, "element type %d is neither float32 nor float64", (int)view->dtype);
}

/* Return the position in memory of the `index`-th element, in row-major order, of `view` expanded to `shape`. */
static int64_t place(const View* view, const diopiSize_t* shape, int64_t index) {
    int64_t position = 0;
    for (int64_t axis = shape->len - 1; axis >= 0; axis--) {
        int64_t own = axis - (shape->len - view->shape.len), coordinate = index % shape->data[axis];
        if (own >= 0 && view->shape.data[own] != 1) position += coordinate * view->stride.data[own];
        index /= shape->data[axis];
    }
    return position;
}

static double at(const View* view, int64_t position) {
    return view->dtype == diopi_dtype_float32 ? ((const float*)view->data)[position]
                                              : ((const double*)view->data)[position];
}

static double get(const View* view, int64_t index) { return at(view, place(view, &view->shape, index)); }

static void put(const View* view, int64_t index, double value) {
    int64_t position = place(view, &view->shape, index);
    if (view->dtype == diopi_dtype_float32) {
        ((float*)view->data)[position] = (float)value;
    } else {
        ((double*)view->data)[position] = value;
    }
}

static int64_t wrapped(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

static bool is_axis(int64_t axis, int64_t rank) { return wrapped(axis, rank) >= 0 && wrapped(axis, rank) < rank; }

static bool have_same_shape(const View* one, const View* two) {
    bool same = one->shape.len == two->shape.len;
    for (int64_t axis = 0; same && axis < one->shape.len; axis++) {
        same = one->shape.data[axis] == two->shape.data[axis];
    }
    return same;
}

/* Return whether `view` can be expanded to the shape of `result`. */
static bool fits(const View* view, const View* result) {
    int64_t missing = result->shape.len - view->shape.len;
    bool does_fit = missing >= 0;
    for (int64_t axis = 0; does_fit && axis < view->shape.len; axis++) {
        int64_t size = view->shape.data[axis];
        does_fit = size == 1 || size == result->shape.data[axis + missing];
    }
    return does_fit;
}

/* Return whether two tensors differ at most in the size of `axis`. */
static bool differ_only_in(const View* one, const View* two, int64_t axis) {
    bool same = one->shape.len == two->shape.len;
    for (int64_t other = 0; same && other < one->shape.len; other++) {
        same = other == axis || one->shape.data[other] == two->shape.data[other];
    }
    return same;
}

/* Number of elements in the axes after `axis`. */
static int64_t elements_behind(const View* view, int64_t axis) {
    int64_t elements = 1;
    while (++axis < view->shape.len) elements *= view->shape.data[axis];
    return elements;
}

static diopiError_t magnitude(diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    View result, operand;
    TRY(float_view(out, &result));
    TRY(float_view(input, &operand));
    REQUIRE(have_same_shape(&operand, &result));
    for (int64_t i = 0; i < result.numel; i++) put(&result, i, fabs(get(&operand, i)));
    return diopiSuccess;
}

diopiError_t diopiAbs(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    (void)ctx;
    return magnitude(out, input);
}

diopiError_t diopiAbsInp(diopiContextHandle_t ctx, diopiTensorHandle_t input) {
    (void)ctx;
    return magnitude(input, input);
}

static double number(const diopiScalar_t* scalar) {
    bool integral = scalar->stype <= diopi_dtype_uint64 || scalar->stype == diopi_dtype_bool;
    return integral ? (double)scalar->ival : scalar->fval;
}

diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    (void)ctx;
    View result, one, two;
    TRY(float_view(out, &result));
    TRY(float_view(input, &one));
    TRY(float_view(other, &two));
    REQUIRE(alpha != NULL && fits(&one, &result) && fits(&two, &result));
    double factor = number(alpha);
    for (int64_t i = 0; i < result.numel; i++) {
        put(&result, i,
            at(&one, place(&one, &result.shape, i)) + factor * at(&two, place(&two, &result.shape, i)));
    }
    return diopiSuccess;
}

static double quotient(double x, double y, diopiRoundMode_t mode) {
    if (mode == RoundModeTrunc) return trunc(x / y);
    if (mode == RoundModeNone || y == 0) return x / y;
    double rest = fmod(x, y), whole = (x - rest) / y;
    if (rest != 0 && (rest < 0) != (y < 0)) whole -= 1;
    if (whole == 0) return copysign(0, x / y);
    double floored = floor(whole);
    return whole - floored > 0.5 ? floored + 1 : floored;
}

diopiError_t diopiDiv(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, diopiRoundMode_t rounding_mode) {
    (void)ctx;
    View result, one, two;
    if (rounding_mode >= RoundModeEND) return fail(diopiErrorOccurred, "rounding mode %d", (int)rounding_mode);
    TRY(float_view(out, &result));
    TRY(float_view(input, &one));
    TRY(float_view(other, &two));
    REQUIRE(fits(&one, &result) && fits(&two, &result));
    bool narrow = result.dtype == diopi_dtype_float32;
    for (int64_t i = 0; i < result.numel; i++) {
        double x = at(&one, place(&one, &result.shape, i)), y = at(&two, place(&two, &result.shape, i));
        bool truncated = narrow && rounding_mode == RoundModeTrunc;
        put(&result, i, truncated ? (double)truncf((float)x / (float)y) : quotient(x, y, rounding_mode));
    }
    return diopiSuccess;
}

diopiError_t diopiSum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiSize_t dim) {
    (void)ctx;
    View result, operand;
    TRY(float_view(out, &result));
    TRY(float_view(input, &operand));
    bool summed[64] = {false};
    int64_t rank = operand.shape.len, totals_count = 1;
    REQUIRE(rank <= 64);
    for (int64_t i = 0; i < dim.len && rank > 0; i++) {
        REQUIRE(is_axis(dim.data[i], rank));
        summed[wrapped(dim.data[i], rank)] = true;
    }
    if (dim.len == 0) memset(summed, true, sizeof summed);
    for (int64_t axis = 0; axis < rank; axis++) totals_count *= summed[axis] ? 1 : operand.shape.data[axis];
    REQUIRE(totals_count == result.numel);
    double* totals = calloc((size_t)result.numel + 1, sizeof *totals);
    if (totals == NULL) return fail(diopiErrorOccurred, "out of memory");
    for (int64_t i = 0; i < operand.numel; i++) {
        int64_t target = 0, step = 1, rest = i;
        for (int64_t axis = rank - 1; axis >= 0; axis--) {
            int64_t size = operand.shape.data[axis];
            if (!summed[axis]) {
                target += rest % size * step;
                step *= size;
            }
            rest /= size;
        }
        totals[target] += get(&operand, i);
    }
    for (int64_t i = 0; i < result.numel; i++) put(&result, i, totals[i]);
    free(totals);
    return diopiSuccess;
}

/* Return the position of the largest of `size` elements that are `step` apart; NaN is larger than all numbers. */
static int64_t largest(const View* view, int64_t first, int64_t size, int64_t step) {
    int64_t best = 0;
    for (int64_t i = 1; i < size; i++) {
        double one = get(view, first + i * step), so_far = get(view, first + best * step);
        if (!isnan(so_far) && (isnan(one) || one > so_far)) best = i;
    }
    return best;
}

diopiError_t diopiArgmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const int64_t* dim, bool keepdim) {
    (void)ctx;
    (void)keepdim; /* changes the shape of `out`, not its elements */
    View result, operand;
    TRY(any_view(out, &result));
    TRY(float_view(input, &operand));
    int64_t rank = operand.shape.len, axis = dim == NULL ? -1 : wrapped(*dim, rank);
    bool flat = dim == NULL || rank == 0;
    REQUIRE(result.dtype == diopi_dtype_int64);
    REQUIRE(dim == NULL || is_axis(*dim, rank > 0 ? rank : 1));
    int64_t size = flat ? operand.numel : operand.shape.data[axis], step = flat ? 1 : elements_behind(&operand, axis);
    if (size == 0 && result.numel > 0) return fail(diopiErrorOccurred, "diopiArgmax: there is no element");
    REQUIRE(size == 0 || result.numel == operand.numel / size);
    for (int64_t i = 0; i < result.numel; i++) {
        int64_t first = i / step * size * step + i % step;
        ((int64_t*)result.data)[place(&result, &result.shape, i)] = largest(&operand, first, size, step);
    }
    return diopiSuccess;
}

static double gelu(double x) { return 0.5 * x * erfc(-x / sqrt(2)); }
static double gelu_tanh(double x) { return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))); }

diopiError_t diopiGelu(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const char* approximate) {
    (void)ctx;
    View result, operand;
    bool exact = strcmp(approximate, "none") == 0;
    if (!exact && strcmp(approximate, "tanh") != 0) {
        return fail(diopiErrorOccurred, "diopiGelu: approximate is '%s', expected 'none' or 'tanh'", approximate);
    }
    TRY(float_view(out, &result));
    TRY(float_view(input, &operand));
    REQUIRE(have_same_shape(&operand, &result));
    for (int64_t i = 0; i < result.numel; i++) {
        double x = get(&operand, i);
        double value = x == -INFINITY ? 0 * x : exact ? gelu(x) : gelu_tanh(x);
        put(&result, i, value);
    }
    return diopiSuccess;
}

diopiError_t diopiMSELoss(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t target, diopiReduction_t reduction) {
    (void)ctx;
    View result, one, two;
    if (reduction >= ReductionEND) return fail(diopiErrorOccurred, "diopiMSELoss: reduction is %d", (int)reduction);
    TRY(float_view(out, &result));
    TRY(float_view(input, &one));
    TRY(float_view(target, &two));
    if (one.numel != two.numel) return fail(diopiNoImplement, "diopiMSELoss: target is not broadcast");
    REQUIRE(result.numel == (reduction == ReductionNone ? one.numel : 1));
    double total = 0;
    for (int64_t i = 0; i < one.numel; i++) {
        double difference = get(&one, i) - get(&two, i);
        if (reduction == ReductionNone) put(&result, i, difference * difference);
        total += difference * difference;
    }
    if (reduction != ReductionNone) put(&result, 0, reduction == ReductionMean ? total / (double)one.numel : total);
    return diopiSuccess;
}

diopiError_t diopiNonzero(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input) {
    View operand, result;
    TRY(float_view(input, &operand));
    int64_t rank = operand.shape.len, shape[2] = {0, rank};
    for (int64_t i = 0; i < operand.numel; i++) shape[0] += get(&operand, i) != 0;
    diopiSize_t size = {shape, 2};
    ASK(diopiRequireTensor(ctx, out, &size, NULL, diopi_dtype_int64, diopi_device));
    TRY(any_view(*out, &result));
    int64_t* row = (int64_t*)result.data;
    for (int64_t i = 0; i < operand.numel; i++) {
        if (get(&operand, i) == 0) continue;
        for (int64_t axis = rank - 1, rest = i; axis >= 0; rest /= operand.shape.data[axis--]) {
            row[axis] = rest % operand.shape.data[axis];
        }
        row += rank;
    }
    return diopiSuccess;
}

/* Copy between `part` and the slice of `whole` that starts at `start` along `axis`. */
static void copy_slice(const View* whole, const View* part, int64_t axis, int64_t start, bool to_whole) {
    int64_t behind = elements_behind(part, axis), chunk = part->shape.data[axis] * behind;
    for (int64_t i = 0; i < part->numel; i++) {
        int64_t other = i / chunk * whole->shape.data[axis] * behind + start * behind + i % chunk;
        if (to_whole) {
            put(whole, other, get(part, i));
        } else {
            put(part, i, get(whole, other));
        }
    }
}

diopiError_t diopiCat(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t* tensors,
                      int64_t num_inputs, int64_t dim) {
    (void)ctx;
    View result, operand;
    TRY(float_view(out, &result));
    REQUIRE(is_axis(dim, result.shape.len));
    int64_t axis = wrapped(dim, result.shape.len), start = 0;
    for (int64_t i = 0; i < num_inputs; i++) {
        TRY(float_view(tensors[i], &operand));
        if (operand.numel == 0) continue;
        REQUIRE(differ_only_in(&operand, &result, axis));
        REQUIRE(start + operand.shape.data[axis] <= result.shape.data[axis]);
        copy_slice(&result, &operand, axis, start, true);
        start += operand.shape.data[axis];
    }
    return diopiSuccess;
}

diopiError_t diopiSplitWithSizes(diopiContextHandle_t ctx, diopiTensorHandle_t* outs, int64_t num_outs,
                                 diopiConstTensorHandle_t input, const diopiSize_t splitSizes, int64_t dim) {
    (void)ctx;
    View operand, result;
    if (splitSizes.len != num_outs) return fail(diopiErrorOccurred, "diopiSplitWithSizes: the numbers differ");
    TRY(float_view(input, &operand));
    REQUIRE(is_axis(dim, operand.shape.len));
    int64_t axis = wrapped(dim, operand.shape.len), start = 0;
    for (int64_t i = 0; i < num_outs; i++) {
        TRY(float_view(outs[i], &result));
        REQUIRE(splitSizes.data[i] >= 0 && start + splitSizes.data[i] <= operand.shape.data[axis]);
        REQUIRE(differ_only_in(&result, &operand, axis) && result.shape.data[axis] == splitSizes.data[i]);
        copy_slice(&operand, &result, axis, start, false);
        start += splitSizes.data[i];
    }
    return diopiSuccess;
}

diopiError_t diopiEqual(diopiContextHandle_t ctx, bool* out, diopiConstTensorHandle_t input,
                        diopiConstTensorHandle_t other) {
    (void)ctx;
    View one, two;
    TRY(float_view(input, &one));
    TRY(float_view(other, &two));
    bool equal = have_same_shape(&one, &two);
    for (int64_t i = 0; equal && i < one.numel; i++) equal = get(&one, i) == get(&two, i);
    *out = equal;
    return diopiSuccess;
}

static double norm_of(const View* view, double order) {
    double total = 0;
    for (int64_t i = 0; i < view->numel; i++) {
        double x = fabs(get(view, i));
        total = isinf(order) ? fmax(total, x) : total + (order == 0 ? x != 0 : pow(x, order));
    }
    return isinf(order) || order == 0 ? total : pow(total, 1 / order);
}

diopiError_t diopiClipGradNorm(diopiContextHandle_t ctx, double* out, diopiTensorHandle_t* grads, int64_t num_grads,
                               double max_norm, double norm_type, bool error_if_nonfinite) {
    (void)ctx;
    View grad;
    double total = 0;
    for (int64_t i = 0; i < num_grads; i++) {
        TRY(float_view(grads[i], &grad));
        double norm = norm_of(&grad, norm_type);
        total = isinf(norm_type) ? fmax(total, norm) : total + (norm_type == 0 ? norm != 0 : pow(norm, norm_type));
    }
    if (!isinf(norm_type) && norm_type != 0) total = pow(total, 1 / norm_type);
    if (error_if_nonfinite && !isfinite(total)) return fail(diopiErrorOccurred, "diopiClipGradNorm: norm %g", total);
    double factor = fmin(1, max_norm / (total + 1e-6));
    for (int64_t i = 0; i < num_grads; i++) {
        TRY(float_view(grads[i], &grad));
        for (int64_t k = 0; k < grad.numel; k++) put(&grad, k, get(&grad, k) * factor);
    }
    *out = total;
    return diopiSuccess;
}

/* A number in (0, 1): the `index`-th of the sequence `seed` (Steele, Lea, Flood, "Fast splittable generators", 2014). */
static double uniform(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

diopiError_t diopiNormal(diopiContextHandle_t ctx, diopiTensorHandle_t out, double mean, double std,
                         diopiGeneratorHandle_t generator) {
    (void)ctx;
    View result;
    uint64_t seed = 0, offset = 0;
    if (std < 0) return fail(diopiErrorOccurred, "diopiNormal: std is %g, expected at least 0", std);
    TRY(float_view(out, &result));
    if (generator != NULL) ASK(diopiGeneratorGetSeedAndOffset(generator, &seed, &offset));
    for (int64_t i = 0; i < result.numel; i++) {
        uint64_t drawn = offset + 2 * (uint64_t)i;
        double radius = sqrt(-2 * log(uniform(seed, drawn)));
        put(&result, i, mean + std * radius * cos(2 * acos(-1) * uniform(seed, drawn + 1)));
    }
    if (generator == NULL) return diopiSuccess;
    ASK(diopiGeneratorSetSeedAndOffset(generator, seed, offset + 2 * (uint64_t)result.numel));
    return diopiSuccess;
}

static int64_t index_at(const View* view, int64_t i) {
    int64_t position = place(view, &view->shape, i);
    return view->dtype == diopi_dtype_int32 ? ((const int32_t*)view->data)[position]
                                            : ((const int64_t*)view->data)[position];
}

static diopiError_t check_indices(const View* indices, int64_t first, int64_t last) {
    REQUIRE(indices->dtype == diopi_dtype_int32 || indices->dtype == diopi_dtype_int64);
    for (int64_t i = 0; i < indices->numel; i++) REQUIRE(index_at(indices, i) >= first && index_at(indices, i) <= last);
    return diopiSuccess;
}

diopiError_t diopiSpMM(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       diopiConstTensorHandle_t mat2) {
    (void)ctx;
    bool sparse = false;
    ASK(diopiIsTensorSparse(input, &sparse));
    if (!sparse) return fail(diopiNoImplement, "diopiSpMM: input is not sparse");
    diopiConstTensorHandle_t handles[3];
    View result, dense, crow, col, values;
    ASK(diopiGetTensorCrowIndices(input, &handles[0]));
    ASK(diopiGetTensorColIndices(input, &handles[1]));
    ASK(diopiGetTensorValues(input, &handles[2]));
    TRY(any_view(handles[0], &crow));
    TRY(any_view(handles[1], &col));
    TRY(float_view(handles[2], &values));
    TRY(float_view(mat2, &dense));
    TRY(float_view(out, &result));
    REQUIRE(result.shape.len == 2 && dense.shape.len == 2 && crow.numel == result.shape.data[0] + 1);
    REQUIRE(result.shape.data[1] == dense.shape.data[1]);
    TRY(check_indices(&crow, 0, values.numel));
    TRY(check_indices(&col, 0, dense.shape.data[0] - 1));
    int64_t columns = dense.shape.data[1];
    for (int64_t i = 0; i < result.numel; i++) {
        double sum = 0;
        for (int64_t p = index_at(&crow, i / columns); p < index_at(&crow, i / columns + 1); p++) {
            sum += get(&values, p) * get(&dense, index_at(&col, p) * columns + i % columns);
        }
        put(&result, i, sum);
    }
    return diopiSuccess;
}
