/* A small framework in C and C++: a separate runtime, and a program that calls the vendor library linked to it.
 *
 *   framework results     calls each function once; prints lines of name, error code, and the bytes of the results
 *   framework registered  the same with the device functions that the library registers instead of the well-known names
 *   framework threads     the same from eight threads concurrently, whose results are compared
 *   framework failures    calls that fail; prints the error code, the last error, and whether results are unchanged
 *   framework first       eight threads that begin with the same call
 *   framework forked      one call after a fork
 *   framework arithmetic  calls with the default floating-point environment, and with another; whether it was kept
 */
#include <fenv.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime.h"

/* The program: calls, and their results as text. */

static diopiTensorHandle_t tensor(Session* session, diopiDtype_t dtype, int64_t rows, int64_t columns,
                                  const void* values) {
    int64_t shape[] = {rows, columns};
    return tensor_of(session, dtype, shape, 2, values);
}

/* The matrix of (i - 2.5) * step for i = 0, 1, 2 … */
static diopiTensorHandle_t ramp(Session* session, int64_t rows, int64_t columns, float step) {
    float values[64];
    for (int i = 0; i < rows * columns; i++) values[i] = ((float)i - 2.5f) * step;
    return tensor(session, diopi_dtype_float32, rows, columns, values);
}

static diopiTensorHandle_t zeros(Session* session, int64_t rows, int64_t columns) {
    return tensor(session, diopi_dtype_float32, rows, columns, NULL);
}

#define TELL(session, ...) \
    ((session)->length +=  \
     (size_t)snprintf((session)->text + (session)->length, sizeof(session)->text - (session)->length, __VA_ARGS__))

static void tell_bytes(Session* session, const void* bytes, size_t count) {
    TELL(session, " ");
    for (size_t i = 0; i < count; i++) TELL(session, "%02x", ((const unsigned char*)bytes)[i]);
}

static void tell_tensor(Session* session, diopiTensorHandle_t result) {
    unsigned char bytes[1024];
    size_t count = (size_t)(result->numel * element_size(result->dtype));
    CHECK(count <= sizeof bytes);
    CHECK(device.d2h(session->context.stream, bytes, result->data, count) == 0);
    CHECK(device.synchronize(session->context.stream) == 0);
    tell_bytes(session, bytes, count);
}

/* Call a function and begin its line; false if the library does not have it. */
#define TRY(session, name, ...) \
    (name != NULL && (TELL(session, "\n" #name " %d", (int)name(&(session)->context, __VA_ARGS__)), 1))

static diopiScalar_t real(double value) {
    diopiScalar_t scalar;
    scalar.stype = diopi_dtype_float64;
    scalar.fval = value;
    return scalar;
}

static diopiScalar_t whole(int64_t value) {
    diopiScalar_t scalar;
    scalar.stype = diopi_dtype_int64;
    scalar.ival = value;
    return scalar;
}

static void element_wise(Session* session) {
    diopiTensorHandle_t one = ramp(session, 3, 4, 0.37f), two = ramp(session, 3, 4, -1.3f);
    diopiTensorHandle_t out = zeros(session, 3, 4);
    diopiScalar_t half = real(0.5), seven = whole(7);
    if (TRY(session, diopiAbs, out, one)) tell_tensor(session, out);
    if (TRY(session, diopiSin, out, one)) tell_tensor(session, out);
    if (TRY(session, diopiTanhBackward, out, one, two)) tell_tensor(session, out);
    if (TRY(session, diopiAdd, out, one, two, &half)) tell_tensor(session, out);
    if (TRY(session, diopiMulScalar, out, one, &seven)) tell_tensor(session, out);
    if (TRY(session, diopiDiv, out, one, two, RoundModeFloor)) tell_tensor(session, out);
    if (TRY(session, diopiGelu, out, one, "tanh")) tell_tensor(session, out);
    if (TRY(session, diopiClampScalar, out, one, &half, NULL)) tell_tensor(session, out);
    if (TRY(session, diopiNegInp, one)) tell_tensor(session, one);
}

static void reductions(Session* session) {
    diopiTensorHandle_t one = ramp(session, 3, 4, 0.37f), two = ramp(session, 3, 4, -1.3f);
    diopiTensorHandle_t row = zeros(session, 1, 4), single = zeros(session, 1, 1);
    diopiTensorHandle_t place = tensor(session, diopi_dtype_int64, 3, 1, NULL);
    int64_t axes[] = {0}, last = -1;
    bool equal = true;
    row->rank = 1; /* of shape (4,) */
    row->shape[0] = 4;
    row->strides[0] = 1;
    single->rank = 0;
    if (TRY(session, diopiSum, row, one, size_of(axes, 1))) tell_tensor(session, row);
    if (TRY(session, diopiArgmax, place, one, &last, true)) tell_tensor(session, place);
    if (TRY(session, diopiMSELoss, single, one, two, ReductionMean)) tell_tensor(session, single);
    if (TRY(session, diopiEqual, &equal, one, two)) tell_bytes(session, &equal, 1);
}

static void arrays(Session* session) {
    diopiTensorHandle_t one = ramp(session, 3, 4, 0.37f), two = ramp(session, 2, 4, -1.3f), made = NULL;
    diopiTensorHandle_t outs[] = {zeros(session, 1, 4), zeros(session, 2, 4)}, out = zeros(session, 5, 4);
    diopiConstTensorHandle_t ins[] = {one, two};
    diopiTensorHandle_t grads[] = {ramp(session, 3, 4, 0.37f), ramp(session, 2, 4, -1.3f)};
    int64_t sizes[] = {1, 2};
    double norm = 0;
    if (TRY(session, diopiCat, out, ins, 2, 0)) tell_tensor(session, out);
    if (TRY(session, diopiSplitWithSizes, outs, 2, one, size_of(sizes, 2), 0)) {
        tell_tensor(session, outs[0]);
        tell_tensor(session, outs[1]);
    }
    if (TRY(session, diopiNonzero, &made, one)) tell_tensor(session, made);
    if (TRY(session, diopiClipGradNorm, &norm, grads, 2, 1.5, 2, false)) {
        tell_bytes(session, &norm, 8);
        tell_tensor(session, grads[0]);
        tell_tensor(session, grads[1]);
    }
}

static void random_numbers(Session* session) {
    diopiTensorHandle_t out = zeros(session, 3, 4);
    struct diopiGenerator generator = {42, 0};
    if (TRY(session, diopiNormal, out, 1.0, 2.0, &generator)) {
        tell_tensor(session, out);
        tell_bytes(session, &generator, sizeof generator);
    }
}

static void run_all(Session* session) {
    open_session(session);
    element_wise(session);
    reductions(session);
    arrays(session);
    random_numbers(session);
    close_session(session);
}

static void* in_thread(void* session) {
    for (int i = 0; i < 5; i++) run_all((Session*)session);
    return NULL;
}

/* Make the first call of a session; its text becomes the result, the error code, and the last error if it failed. */
static void* one_call(void* session) {
    Session* own = (Session*)session;
    int code = device.create(&own->context.stream);
    if (code == 0) {
        diopiTensorHandle_t out = zeros(own, 2, 2);
        code = (int)diopiSin(&own->context, out, ramp(own, 2, 2, 1));
        if (code == 0) tell_tensor(own, out);
    }
    TELL(own, " %d %s", code, code == 0 ? "" : diopiGetLastErrorString());
    return NULL;
}

enum { THREADS = 8 };

/* Run `work` in all threads concurrently, check that their texts are equal, and print the text. */
static int at_once(void* (*work)(void*)) {
    static Session sessions[THREADS];
    pthread_t running[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&running[i], NULL, work, &sessions[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(running[i], NULL);
    puts(sessions[0].text);
    int others = 0;
    for (int i = 1; i < THREADS; i++) {
        if (strcmp(sessions[i].text, sessions[0].text) == 0) continue;
        fprintf(stderr, "thread %d told: %s\nthread 0 told: %s\n", i, sessions[i].text, sessions[0].text);
        others++;
    }
    return others;
}

static void tell_failure(Session* session, const char* what, diopiError_t code, diopiTensorHandle_t out) {
    TELL(session, "\n%s %d %s |", what, (int)code, code == diopiSuccess ? "" : diopiGetLastErrorString());
    tell_tensor(session, out);
}

static int failures(void) {
    static Session session;
    open_session(&session);
    diopiTensorHandle_t out = ramp(&session, 3, 4, 1), one = ramp(&session, 2, 4, 1);
    struct diopiContext no_stream = session.context;
    no_stream.stream = (diopiStreamHandle_t)12345;
    tell_failure(&session, "shape", diopiSin(&session.context, out, one), out);
    tell_failure(&session, "dtype", diopiBitwiseNot(&session.context, out, out), out);
    tell_failure(&session, "missing", diopiSin(&session.context, out, NULL), out);
    if (diopiTensorDestructionHook != NULL) // as not in each of the libraries; NULL is an address like any other
        CHECK(diopiTensorDestructionHook(&session.context, NULL) == diopiSuccess);
    tell_failure(&session, "stream", diopiSin(&no_stream, out, one), out);
    CHECK(device.allocate((uint64_t)1 << 60) == NULL);
    TELL(&session, "\nmemory 1 %s", device.last_error());
    close_session(&session);
    puts(session.text);
    return 0;
}

static int forked(void) {
    static Session session;
    one_call(&session);
    if (fork() == 0) {
        session.length = 0;
        one_call(&session);
        puts(session.text);
        fflush(stdout);
        _exit(0);
    }
    int status;
    wait(&status);
    return WEXITSTATUS(status);
}

/* The square roots of negative numbers are invalid operations; the others depend on the rounding mode. */
static void tell_square_roots(Session* session, const char* environment) {
    diopiTensorHandle_t out = zeros(session, 3, 4);
    TELL(session, "\n%s %d", environment, (int)diopiSqrt(&session->context, out, ramp(session, 3, 4, 0.25f)));
    tell_tensor(session, out);
}

static int arithmetic(void) {
    static Session session;
    open_session(&session);
    tell_square_roots(&session, "default");
    fesetround(FE_UPWARD);
    int traps = FE_DIVBYZERO | FE_INVALID;
    feenableexcept(traps);
    tell_square_roots(&session, "other");
    TELL(&session, "\nkept %d", fegetround() == FE_UPWARD && fegetexcept() == traps);
    close_session(&session);
    puts(session.text);
    return 0;
}

int main(int count, char** arguments) {
    static Session session;
    const char* what = count > 1 ? arguments[1] : "results";
    if (strcmp(what, "first") == 0) return at_once(one_call);
    if (strcmp(what, "forked") == 0) return forked();
    if (strcmp(what, "registered") == 0) {
        memset(&device, 0, sizeof device);
        CHECK(initLibrary() == 0);
    }
    if (strcmp(what, "threads") == 0) return at_once(in_thread);
    if (strcmp(what, "failures") == 0) return failures();
    if (strcmp(what, "arithmetic") == 0) return arithmetic();
    run_all(&session);
    puts(session.text);
    return finalizeLibrary();
}
