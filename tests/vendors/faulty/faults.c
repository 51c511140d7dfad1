/* The faults, and their selection by the environment. */
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "faulty.h"

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#ifdef __cplusplus
#include <new>
#include <stdexcept>
#endif

enum {
    SOON = 20 * 1000 * 1000, /* nanoseconds */
    LONG = 120,              /* seconds, longer than any test waits, after which a process that nobody ended ends */
    MEBIBYTE = 1 << 20,
    MANY = 20 * MEBIBYTE,
    MUCH = 4096, /* mebibytes */
};

/* The operator or function of the device in which a fault occurs, and the memory of its result. */
typedef struct {
    const char* place;
    char* memory;
    uint64_t bytes;
} Call;

static bool others_were_called; /* whether this process has called operators with other faults or none */

/* The end of the process. */

static diopiError_t segfault(const Call* call) {
    (void)call;
    *(volatile char*)(uintptr_t)others_were_called = 1; /* neither 0 nor 1 is an address */
    return diopiSuccess;
}

static diopiError_t abort_with_text(const Call* call) {
    fprintf(stderr, "%s: the tile does not fit\n", call->place);
    abort();
}

static diopiError_t divide(const Call* call) {
    (void)call;
    raise(SIGFPE);
    return diopiSuccess;
}

static diopiError_t overflow_stack(const Call* call) {
    volatile char page[4096];
    page[0] = call->place[0];
    Call next = {call->place, (char*)page, call->bytes + 1};
    return call->bytes > UINT32_MAX ? diopiSuccess : (diopiError_t)(overflow_stack(&next) + page[0]);
}

static diopiError_t exit_0(const Call* call) {
    (void)call;
    exit(0);
}

static diopiError_t exit_7(const Call* call) {
    (void)call;
    exit(7);
}

static diopiError_t end_0(const Call* call) {
    (void)call;
    _exit(0);
}

static diopiError_t kill_itself(const Call* call) {
    (void)call;
    raise(SIGKILL);
    return diopiSuccess;
}

static diopiError_t terminate_itself(const Call* call) {
    (void)call;
    raise(SIGTERM);
    return diopiSuccess;
}

#ifdef __cplusplus
static diopiError_t throw_error(const Call* call) {
    (void)call;
    throw std::runtime_error("the queue is full");
}

static diopiError_t throw_number(const Call* call) {
    (void)call;
    throw 42;
}

static diopiError_t throw_bad_alloc(const Call* call) {
    (void)call;
    throw std::bad_alloc();
}
#endif

/* Faults that never return. */

static diopiError_t hang(const Call* call) {
    (void)call;
    for (time_t end = time(NULL) + LONG; time(NULL) < end;) sleep(1);
    _exit(99);
}

static diopiError_t loop(const Call* call) {
    (void)call;
    for (time_t end = time(NULL) + LONG; time(NULL) < end;) continue;
    _exit(99);
}

static diopiError_t stop(const Call* call) {
    (void)call;
    raise(SIGSTOP);
    return diopiSuccess;
}

/* Only SIGKILL ends the process. */
static diopiError_t deaf_hang(const Call* call) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    return hang(call);
}

/* Memory. */

static diopiError_t take_memory(const Call* call) {
    (void)call;
    for (int i = 0; i < MUCH; i++) {
        char* piece = (char*)malloc(MEBIBYTE);
        if (piece == NULL) return fail(diopiErrorOccurred, "no memory is left");
        memset(piece, 1, MEBIBYTE);
    }
    return fail(diopiErrorOccurred, "there is no limit");
}

static diopiError_t trust_memory(const Call* call) {
    for (int i = 0; i < MUCH; i++) memset(malloc(MEBIBYTE), 1, MEBIBYTE);
    return take_memory(call);
}

static diopiError_t leak(const Call* call) {
    (void)call;
    memset(malloc(8 * MEBIBYTE), 1, 8 * MEBIBYTE);
    return diopiSuccess;
}

static diopiError_t overrun(const Call* call) {
    memset(call->memory + call->bytes, 0x42, 16); /* only bytes of the guard */
    return diopiSuccess;
}

static diopiError_t flood(const Call* call) {
    memset(call->memory + call->bytes, 0x42, 4096); /* the guard and memory behind it */
    return diopiSuccess;
}

static diopiError_t leap(const Call* call) {
    memset(call->memory + call->bytes + 512, 0x42, 64);
    return diopiSuccess;
}

static void* write_late(void* argument) {
    struct timespec pause = {0, SOON};
    Call call = *(Call*)argument;
    free(argument);
    for (int times = 0; times < 10; times++) {
        nanosleep(&pause, NULL);
        memset(call.memory, 0x42, call.bytes);
    }
    return NULL;
}

static diopiError_t late(const Call* call) {
    pthread_t thread;
    Call* kept = (Call*)malloc(sizeof *kept);
    *kept = *call;
    pthread_create(&thread, NULL, write_late, kept);
    pthread_detach(thread);
    return diopiSuccess;
}

/* Processes. */

static diopiError_t fork_and_return(const Call* call) {
    (void)call;
    return fork() < 0 ? fail(diopiErrorOccurred, strerror(errno)) : diopiSuccess;
}

static diopiError_t leave_child(const Call* call) {
    return fork() == 0 ? hang(call) : diopiSuccess;
}

/* State of the process. */

static diopiError_t round_up(const Call* call) {
    (void)call;
    fesetround(FE_UPWARD);
    return diopiSuccess;
}

static diopiError_t flush(const Call* call) {
    (void)call;
#ifdef __x86_64__
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#else
    fesetround(FE_TOWARDZERO);
#endif
    return diopiSuccess;
}

static diopiError_t unmask(const Call* call) {
    (void)call;
#ifdef __x86_64__
    _mm_setcsr(_mm_getcsr() & ~0x0280u); /* invalid operations and divisions by zero trap */
#else
    fesetround(FE_DOWNWARD);
#endif
    return diopiSuccess;
}

static diopiError_t block_signals(const Call* call) {
    (void)call;
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGINT);
    pthread_sigmask(SIG_BLOCK, &some, NULL);
    return diopiSuccess;
}

static diopiError_t ignore_signals(const Call* call) {
    (void)call;
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGSEGV, SIG_IGN);
    return diopiSuccess;
}

static diopiError_t change_folder(const Call* call) {
    (void)call;
    return chdir("/") ? fail(diopiErrorOccurred, strerror(errno)) : diopiSuccess;
}

static diopiError_t close_descriptors(const Call* call) {
    (void)call;
    for (int descriptor = 0; descriptor < 1024; descriptor++) close(descriptor);
    return diopiSuccess;
}

/* Write to all file descriptors. A reader that expects a length reads a large number. */
static diopiError_t write_to_descriptors(const Call* call) {
    static const char foreign[] = {0, 0x10, 0, 0, 'n', 'o', 't', ' ', 'm', 'i', 'n', 'e'};
    (void)call;
    for (int descriptor = 3; descriptor < 1024; descriptor++) {
        if (write(descriptor, foreign, sizeof foreign) < 0) continue; /* not open, or not for writing */
    }
    return diopiSuccess;
}

/* Texts. */

static char text[MANY + 1];

static diopiError_t say_much(const Call* call) {
    (void)call;
    memset(text, 'x', MANY);
    for (int i = 80; i < MANY; i += 80) text[i] = '\n';
    fputs(text, stderr);
    fputs(text + MANY - MEBIBYTE, stdout);
    fflush(stdout);
    return diopiSuccess;
}

static diopiError_t say_much_and_abort(const Call* call) {
    say_much(call);
    return abort_with_text(call);
}

static diopiError_t fail_at_length(const Call* call) {
    (void)call;
    memset(text, 'y', MANY);
    return fail(diopiErrorOccurred, text);
}

static diopiError_t fail_in_bytes(const Call* call) {
    (void)call;
    return fail(diopiErrorOccurred, "\xff\xfe is no UTF-8, nor is \xed\xa0\x80");
}

static diopiError_t fail_in_controls(const Call* call) {
    (void)call;
    return fail(diopiErrorOccurred, "\x1b[2J\x1b]0;title\x07 [bold]markup[/bold]\r\n[/] \x7f the end");
}

/* Results. */

static diopiError_t report_failure(const Call* call) {
    (void)call;
    return fail(diopiErrorOccurred, "it is to fail here");
}

static diopiError_t spoil(const Call* call) {
    if (call->bytes > 0) call->memory[call->bytes - 1] += 0x40; /* a second change does not restore the value */
    return diopiSuccess;
}

static diopiError_t spoil_after_others(const Call* call) { return others_were_called ? spoil(call) : diopiSuccess; }

static diopiError_t spoil_every_second(const Call* call) {
    static int calls;
    return calls++ % 2 ? spoil(call) : diopiSuccess;
}

/* Spoil the result only in the first call of all processes, which creates a file in DIOPI_TEST_FOLDER. */
static diopiError_t spoil_once(const Call* call) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("DIOPI_TEST_FOLDER"), call->place);
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0) return diopiSuccess;
    close(file);
    return spoil(call);
}

static const struct {
    const char* name;
    diopiError_t (*happen)(const Call* call);
} FAULTS[] = {
    {"segfault", segfault},
    {"abort", abort_with_text},
    {"divide", divide},
    {"stack", overflow_stack},
    {"exit0", exit_0},
    {"exit7", exit_7},
    {"end0", end_0},
    {"kill", kill_itself},
    {"terminate", terminate_itself},
#ifdef __cplusplus
    {"throw", throw_error},
    {"throw_number", throw_number},
    {"bad_alloc", throw_bad_alloc},
#endif
    {"hang", hang},
    {"loop", loop},
    {"stop", stop},
    {"deaf", deaf_hang},
    {"memory", take_memory},
    {"memory_null", trust_memory},
    {"leak", leak},
    {"overrun", overrun},
    {"flood", flood},
    {"leap", leap},
    {"late", late},
    {"fork", fork_and_return},
    {"child", leave_child},
    {"rounding", round_up},
    {"flush", flush},
    {"unmask", unmask},
    {"block", block_signals},
    {"ignore", ignore_signals},
    {"chdir", change_folder},
    {"close", close_descriptors},
    {"stray", write_to_descriptors},
    {"loud", say_much},
    {"loud_abort", say_much_and_abort},
    {"long", fail_at_length},
    {"bytes", fail_in_bytes},
    {"controls", fail_in_controls},
    {"fail", report_failure},
    {"wrong", spoil},
    {"stale", spoil_after_others},
    {"second", spoil_every_second},
    {"once", spoil_once},
};

static diopiError_t happen(const char* name, size_t length, const Call* call) {
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        if (strlen(FAULTS[i].name) == length && !strncmp(FAULTS[i].name, name, length)) return FAULTS[i].happen(call);
    }
    fprintf(stderr, "DIOPI_TEST_FAULT: there is no fault %.*s\n", (int)length, name);
    exit(98);
}

/* Return the fault that the environment specifies for a place, up to the next comma or the end; NULL if none. */
static const char* fault_at(const char* place) {
    const size_t length = strlen(place);
    for (const char* entry = getenv("DIOPI_TEST_FAULT"); entry != NULL; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        if (!strncmp(entry, place, length) && entry[length] == '=') return entry + length + 1;
    }
    return NULL;
}

diopiError_t go_wrong(const char* place, bool is_special, char* memory, uint64_t bytes) {
    static const char* first_operator;
    if (first_operator == NULL && !strncmp(place, "diopi", 5)) first_operator = place;
    others_were_called |= first_operator != NULL && !strncmp(place, "diopi", 5) && place != first_operator;
    const char* fault = fault_at(place);
    if (fault == NULL) return diopiSuccess;
    size_t letters = strcspn(fault, "*,");
    Call call = {place, memory, bytes};
    return is_special || fault[letters] == '*' ? happen(fault, letters, &call) : diopiSuccess;
}
