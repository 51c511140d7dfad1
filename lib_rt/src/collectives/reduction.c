/* Element types, and operations over the elements of several ranks, in the order of the ranks.
 *
 * Elements are widened to 64 bits. A floating-point result is computed there and rounded once. */
#include <math.h>
#include <string.h>

#include "collectives.h"

#define BLOCK 512 /* elements that are widened at a time */

/* X(code of at::ScalarType, component in C, kind, number of components, array in 64 bits, widened x, narrowed x) */
#define ELEMENT_TYPES(X)                                                                                               \
    X(0, uint8_t, UNSIGNED, 1, naturals, x, (uint8_t)x)                                                                \
    X(1, int8_t, SIGNED, 1, integers, x, (int8_t)x)                                                                    \
    X(2, int16_t, SIGNED, 1, integers, x, (int16_t)x)                                                                  \
    X(3, int32_t, SIGNED, 1, integers, x, (int32_t)x)                                                                  \
    X(4, int64_t, SIGNED, 1, integers, x, x)                                                                           \
    X(5, uint16_t, REAL, 1, reals, decode(x, half), encode(x, half))                                                   \
    X(6, float, REAL, 1, reals, x, (float)x)                                                                           \
    X(7, double, REAL, 1, reals, x, x)                                                                                 \
    X(9, float, COMPLEX, 2, reals, x, (float)x)                                                                        \
    X(10, double, COMPLEX, 2, reals, x, x)                                                                             \
    X(11, uint8_t, UNSIGNED, 1, naturals, x != 0, x != 0)                                                              \
    X(15, uint16_t, REAL, 1, reals, decode(x, bfloat16), encode(x, bfloat16))                                          \
    X(27, uint16_t, UNSIGNED, 1, naturals, x, (uint16_t)x)                                                             \
    X(28, uint32_t, UNSIGNED, 1, naturals, x, (uint32_t)x)                                                             \
    X(29, uint64_t, UNSIGNED, 1, naturals, x, x)

#define DESCRIBE(code, component, kind, components, array, widened, narrowed)                                          \
    {code, sizeof(component) * components, kind},

static const struct element_type types[] = {ELEMENT_TYPES(DESCRIBE)};

const struct element_type* find_type(int32_t code) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].code == code) return &types[i];
    }
    return NULL;
}

bool operation_applies(int32_t operation, const struct element_type* type) {
    bool is_floating = type->kind == REAL || type->kind == COMPLEX;
    switch (operation) {
    case SUM:
    case PRODUCT:
        return true;
    case AVG:
        return is_floating;
    case MIN:
    case MAX:
        return type->kind != COMPLEX;
    case BAND:
    case BOR:
    case BXOR:
        return !is_floating;
    default:
        return false;
    }
}

/* A floating-point format of 16 bits. */
struct format {
    int mantissa_bits, min_exponent;
    uint16_t infinity;
};

static const struct format half = {10, -14, 0x7C00}, bfloat16 = {7, -126, 0x7F80};

static double decode(uint16_t bits, struct format format) {
    uint16_t magnitude = bits & 0x7FFF;
    int field = magnitude >> format.mantissa_bits, mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
    double value = magnitude > format.infinity ? NAN : INFINITY;
    if (magnitude < format.infinity) {
        int hidden = field > 0 ? 1 << format.mantissa_bits : 0;
        value = ldexp(mantissa + hidden, format.min_exponent - format.mantissa_bits + (field > 0 ? field - 1 : 0));
    }
    return bits & 0x8000 ? -value : value;
}

/* Round to the nearest number of the format, and to the even one if two are equally near. */
static uint16_t encode(double value, struct format format) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (isnan(value)) return sign | format.infinity | (uint16_t)(1 << (format.mantissa_bits - 1));
    if (magnitude >= ldexp(1, 2 - format.min_exponent)) return sign | format.infinity;
    int exponent = magnitude > 0 ? ilogb(magnitude) : format.min_exponent;
    if (exponent < format.min_exponent) exponent = format.min_exponent;
    double mantissa = nearbyint(ldexp(magnitude, format.mantissa_bits - exponent));
    uint32_t bits = ((uint32_t)(exponent - format.min_exponent) << format.mantissa_bits) + (uint32_t)mantissa;
    return sign | (uint16_t)(bits < format.infinity ? bits : format.infinity);
}

/* Components of elements in 64 bits; a complex element has two components. */
union wide {
    int64_t integers[BLOCK];
    uint64_t naturals[BLOCK];
    double reals[2 * BLOCK];
};

#define WIDEN(code, component, kind, components, array, widened, narrowed)                                             \
    case code:                                                                                                         \
        for (size_t i = 0; i < count * components; i++) {                                                              \
            component x;                                                                                               \
            memcpy(&x, bytes + i * sizeof x, sizeof x);                                                                \
            wide->array[i] = widened;                                                                                  \
        }                                                                                                              \
        break;

static void widen(int32_t type, const char* bytes, union wide* wide, size_t count) {
    switch (type) { ELEMENT_TYPES(WIDEN) }
}

#define NARROW(code, component, kind, components, array, widened, narrowed)                                            \
    case code:                                                                                                         \
        for (size_t i = 0; i < count * components; i++) {                                                              \
            __typeof__(wide->array[0]) x = wide->array[i];                                                             \
            component rounded = narrowed;                                                                              \
            memcpy(bytes + i * sizeof rounded, &rounded, sizeof rounded);                                              \
        }                                                                                                              \
        break;

static void narrow(int32_t type, const union wide* wide, char* bytes, size_t count) {
    switch (type) { ELEMENT_TYPES(NARROW) }
}

/* Replace each number a of the total, with the number b of the input, by an expression. */
#define COMBINE(array, expression)                                                                                     \
    do {                                                                                                               \
        for (size_t i = 0; i < count; i++) {                                                                           \
            __typeof__(total->array[0]) a = total->array[i], b = input->array[i];                                      \
            total->array[i] = expression;                                                                              \
        }                                                                                                              \
    } while (0)

/* Combine integers; sums and products are those modulo 2^64, whose low bits are right for narrower types. */
static void combine_integers(enum operation operation, union wide* total, const union wide* input, size_t count) {
    if (operation == SUM) COMBINE(naturals, a + b);
    if (operation == PRODUCT) COMBINE(naturals, a * b);
    if (operation == BAND) COMBINE(naturals, a & b);
    if (operation == BOR) COMBINE(naturals, a | b);
    if (operation == BXOR) COMBINE(naturals, a ^ b);
}

static void choose_integers(enum operation operation, bool is_signed, union wide* total, const union wide* input,
                            size_t count) {
    if (operation == MIN && is_signed) COMBINE(integers, a < b ? a : b);
    if (operation == MIN && !is_signed) COMBINE(naturals, a < b ? a : b);
    if (operation == MAX && is_signed) COMBINE(integers, a > b ? a : b);
    if (operation == MAX && !is_signed) COMBINE(naturals, a > b ? a : b);
}

static void combine_reals(enum operation operation, union wide* total, const union wide* input, size_t count) {
    if (operation == SUM || operation == AVG) COMBINE(reals, a + b);
    if (operation == PRODUCT) COMBINE(reals, a * b);
    if (operation == MIN) COMBINE(reals, a < b || isnan(a) ? a : b);
    if (operation == MAX) COMBINE(reals, a > b || isnan(a) ? a : b);
}

static void multiply_complex(union wide* total, const union wide* input, size_t count) {
    for (size_t i = 0; i < 2 * count; i += 2) {
        double real = total->reals[i], imaginary = total->reals[i + 1];
        total->reals[i] = real * input->reals[i] - imaginary * input->reals[i + 1];
        total->reals[i + 1] = real * input->reals[i + 1] + imaginary * input->reals[i];
    }
}

static size_t component_count(const struct element_type* type) { return type->kind == COMPLEX ? 2 : 1; }

static void combine(const struct element_type* type, enum operation operation, union wide* total,
                    const union wide* input, size_t count) {
    if (type->kind == COMPLEX && operation == PRODUCT) {
        multiply_complex(total, input, count);
    } else if (type->kind == COMPLEX || type->kind == REAL) {
        combine_reals(operation, total, input, count * component_count(type));
    } else {
        combine_integers(operation, total, input, count); /* a Boolean is narrowed to whether its sum is not 0 */
        choose_integers(operation, type->kind == SIGNED, total, input, count);
    }
}

/* Combine the elements of the inputs; the result may be one of them. */
void reduce_elements(const struct element_type* type, enum operation operation, const char* const* inputs,
                     int32_t input_count, char* result, size_t count) {
    union wide total, input;
    for (size_t start = 0; start < count; start += BLOCK) {
        size_t size = count - start < BLOCK ? count - start : BLOCK;
        widen(type->code, inputs[0] + start * type->bytes, &total, size);
        for (int32_t i = 1; i < input_count; i++) {
            widen(type->code, inputs[i] + start * type->bytes, &input, size);
            combine(type, operation, &total, &input, size);
        }
        if (operation == AVG) {
            for (size_t i = 0; i < size * component_count(type); i++) total.reals[i] /= input_count;
        }
        narrow(type->code, &total, result + start * type->bytes, size);
    }
}
