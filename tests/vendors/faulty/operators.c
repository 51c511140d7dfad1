/* Element-wise operators on float32, which are correct for every layout and negative test unless a fault occurs. */
#include <math.h>

#include "faulty.h"

/* A tensor's elements and geometry. */
typedef struct {
    float* data;
    diopiSize_t shape, stride;
    int64_t numel;
} View;

typedef double (*Formula)(double one, double two);

static diopiError_t view(diopiConstTensorHandle_t tensor, View* view) {
    diopiDtype_t dtype;
    if (tensor == NULL) return fail(diopiErrorOccurred, "a tensor is NULL");
    diopiGetTensorDtype(tensor, &dtype);
    if (dtype != diopi_dtype_float32) return fail(diopiDtypeNotSupported, "only float32 is supported");
    diopiGetTensorDataConst(tensor, (const void**)&view->data);
    diopiGetTensorShape(tensor, &view->shape);
    diopiGetTensorStride(tensor, &view->stride);
    diopiGetTensorNumel(tensor, &view->numel);
    return diopiSuccess;
}

/* Return the size of `view` along `axis` of a shape of `rank` axes to which it is broadcast. */
static int64_t size(const View* view, int64_t rank, int64_t axis) {
    int64_t own = axis - (rank - view->shape.len);
    return own < 0 ? 1 : view->shape.data[own];
}

static bool is_broadcast(const View* out, const View* one, const View* two) {
    int64_t rank = out->shape.len;
    if (rank != (one->shape.len > two->shape.len ? one->shape.len : two->shape.len)) return false;
    for (int64_t axis = 0; axis < rank; axis++) {
        int64_t a = size(one, rank, axis), b = size(two, rank, axis);
        if ((a != b && a != 1 && b != 1) || size(out, rank, axis) != (a == 1 ? b : a)) return false;
    }
    return true;
}

/* Return the element of `view` for the `index`-th element, in row-major order, of `shape`, to which it is broadcast. */
static float* element(const View* view, const diopiSize_t* shape, int64_t index) {
    float* place = view->data;
    for (int64_t axis = shape->len - 1; axis >= 0; axis--) {
        int64_t own = axis - (shape->len - view->shape.len), coordinate = index % shape->data[axis];
        if (own >= 0 && view->shape.data[own] != 1) place += coordinate * view->stride.data[own];
        index /= shape->data[axis];
    }
    return place;
}

static diopiError_t compute(const char* name, Formula formula, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            double factor, diopiConstTensorHandle_t other) {
    View result, one, two;
    diopiError_t code = view(out, &result);
    if (code == diopiSuccess) code = view(input, &one);
    if (code == diopiSuccess) code = view(other, &two);
    if (code != diopiSuccess) return code;
    if (!is_broadcast(&result, &one, &two)) return fail(diopiErrorOccurred, "the shapes don't fit");
    bool is_special = false;
    for (int64_t i = 0; i < result.numel; i++) {
        double x = *element(&one, &result.shape, i), y = *element(&two, &result.shape, i);
        is_special |= isnan(x) && !signbit(x);
        *element(&result, &result.shape, i) = (float)formula(x, factor * y);
    }
    return go_wrong(name, is_special, (char*)result.data, sizeof(float) * (uint64_t)result.numel);
}

static double plus(double one, double two) { return one + two; }

diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    (void)ctx;
    bool integral = alpha != NULL && (alpha->stype <= diopi_dtype_uint64 || alpha->stype == diopi_dtype_bool);
    double factor = alpha == NULL ? 1 : integral ? (double)alpha->ival : alpha->fval;
    return compute("diopiAdd", plus, out, input, factor, other);
}

#define UNARY(name, value)                                                                                          \
    static double formula_of_##name(double x, double unused) {                                                      \
        (void)unused;                                                                                               \
        return value;                                                                                               \
    }                                                                                                               \
    diopiError_t name(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {          \
        (void)ctx;                                                                                                  \
        return compute(#name, formula_of_##name, out, input, 1, input);                                             \
    }

UNARY(diopiAbs, fabs(x))
UNARY(diopiAcos, acos(x))
UNARY(diopiAcosh, acosh(x))
UNARY(diopiAsin, asin(x))
UNARY(diopiAsinh, asinh(x))
UNARY(diopiAtan, atan(x))
UNARY(diopiAtanh, atanh(x))
UNARY(diopiCeil, ceil(x))
UNARY(diopiCos, cos(x))
UNARY(diopiCosh, cosh(x))
UNARY(diopiErf, erf(x))
UNARY(diopiExp, exp(x))
UNARY(diopiExpm1, expm1(x))
UNARY(diopiFloor, floor(x))
UNARY(diopiLog, log(x))
UNARY(diopiLog10, log10(x))
UNARY(diopiLog1p, log1p(x))
UNARY(diopiLog2, log2(x))
UNARY(diopiNeg, -x)
UNARY(diopiReciprocal, 1 / x)
UNARY(diopiRsqrt, 1 / sqrt(x))
UNARY(diopiSigmoid, 1 / (1 + exp(-x)))
UNARY(diopiSin, sin(x))
UNARY(diopiSinh, sinh(x))
UNARY(diopiSqrt, sqrt(x))
UNARY(diopiTan, tan(x))
UNARY(diopiTanh, tanh(x))
