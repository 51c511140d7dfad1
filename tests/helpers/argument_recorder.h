/* RECORD(name) appends an argument to the JSON object that `recorded_arguments` returns: {"name": value, …}.
 *
 * Numbers, Booleans and texts are JSON values, NULL is null, arrays are lists, a scalar is {"dtype": …, "value": …}, and
 * handles and pointers are their addresses. */
#include <stdarg.h>
#include <stdio.h>

enum { ARRAY_LENGTH = 3 }; /* of every array of handles, see argument_values.py */

static char json[1 << 16];
static int length;

static void append(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(json + length, sizeof json - (size_t)length, format, arguments);
    va_end(arguments);
}

static void begin_arguments(void) {
    length = 0;
    append("{");
}

const char* recorded_arguments(void) {
    if (json[length - 1] == ',') length--; /* behind the last argument */
    append("}");
    return json;
}

static void append_integer(long long value) { append("%lld", value); }
static void append_bool(bool value) { append(value ? "true" : "false"); }
static void append_real(double value) { append("%.17g", value); }
static void append_text(const char* value) { value == NULL ? append("null") : append("\"%s\"", value); }

static void append_address(const void* value) {
    value == NULL ? append("null") : append("%llu", (unsigned long long)(uintptr_t)value);
}

static void append_array(const void* handles) {
    if (handles == NULL) {
        append("null");
        return;
    }
    append("[");
    for (int i = 0; i < ARRAY_LENGTH; i++) {
        if (i > 0) append(",");
        append_address(((const void* const*)handles)[i]);
    }
    append("]");
}

static void append_size(diopiSize_t value) {
    append("[");
    for (int64_t i = 0; i < value.len; i++) append(i > 0 ? ",%lld" : "%lld", (long long)value.data[i]);
    append("]");
}

static void append_size_pointer(const diopiSize_t* value) {
    if (value == NULL) append("null");
    else append_size(*value);
}

static void append_integer_pointer(const int64_t* value) {
    if (value == NULL) append("null");
    else append_integer(*value);
}

static void append_real_pointer(const double* value) {
    if (value == NULL) append("null");
    else append_real(*value);
}

static void append_bool_pointer(const bool* value) {
    if (value == NULL) append("null");
    else append_bool(*value);
}

static void append_scalar(const diopiScalar_t* value) {
    if (value == NULL) {
        append("null");
        return;
    }
    append("{\"dtype\":%d,\"value\":", value->stype);
    if (value->stype <= diopi_dtype_uint64 || value->stype == diopi_dtype_bool) append_integer(value->ival);
    else append_real(value->fval);
    append("}");
}

/* clang-format off */
#define RECORD(name) (append("\"" #name "\":"), _Generic((name), \
    diopiTensorHandle_t: append_address, \
    diopiConstTensorHandle_t: append_address, \
    diopiGeneratorHandle_t: append_address, \
    void*: append_address, \
    const void*: append_address, \
    diopiTensorHandle_t*: append_array, \
    diopiConstTensorHandle_t*: append_array, \
    diopiGeneratorHandle_t*: append_array, \
    bool: append_bool, \
    float: append_real, \
    double: append_real, \
    const char*: append_text, \
    diopiSize_t: append_size, \
    diopiSize_t*: append_size_pointer, \
    const diopiSize_t*: append_size_pointer, \
    int64_t*: append_integer_pointer, \
    const int64_t*: append_integer_pointer, \
    double*: append_real_pointer, \
    const double*: append_real_pointer, \
    bool*: append_bool_pointer, \
    const bool*: append_bool_pointer, \
    diopiScalar_t*: append_scalar, \
    const diopiScalar_t*: append_scalar, \
    default: append_integer)(name), append(","))
/* clang-format on */

/* Allocate a result, as an operator does that decides its shape. */
static void allocate_result(diopiContextHandle_t context, diopiTensorHandle_t* result, int64_t elements) {
    diopiSize_t shape = {&elements, 1};
    if (result != NULL) diopiRequireTensor(context, result, &shape, NULL, diopi_dtype_float32, diopi_device);
}
