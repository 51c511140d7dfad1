/* A program that owns its process: it compares what the process had before and after the first call of a library.
 *
 * Usage: host_process LIBRARY FUNCTION compare|interrupt. The function starts Python and accepts a pointer to an int.
 * `compare` prints each difference as a line and exits with status 3; `interrupt` raises SIGINT, whose default action
 * ends the process, and exits with status 4 if it does not. */
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNALS = 64, STREAMS = 3 };

struct process_state {
    struct sigaction actions[SIGNALS];
    sigset_t blocked;
    char locale[256];
    int rounding, traps, exceptions;
    int streams[STREAMS];
};

static void ignore_signal(int number) { (void)number; }

static void read_state(struct process_state* state) {
    memset(state, 0, sizeof *state);
    for (int number = 1; number < SIGNALS; number++) sigaction(number, NULL, &state->actions[number]);
    sigprocmask(SIG_SETMASK, NULL, &state->blocked);
    snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
    state->rounding = fegetround();
    state->traps = fegetexcept();
    state->exceptions = fetestexcept(FE_ALL_EXCEPT);
    for (int stream = 0; stream < STREAMS; stream++) state->streams[stream] = fcntl(stream, F_GETFL);
}

static void print_difference(const char* what, int before, int after) {
    if (before != after) printf("%s: %d before, %d after\n", what, before, after);
}

static void print_differences(const struct process_state* before, const struct process_state* after) {
    for (int number = 1; number < SIGNALS; number++)
        if (before->actions[number].sa_handler != after->actions[number].sa_handler)
            printf("handler of signal %d (%s)\n", number, sigabbrev_np(number));
    if (memcmp(&before->blocked, &after->blocked, sizeof before->blocked) != 0) puts("blocked signals");
    if (strcmp(before->locale, after->locale) != 0) printf("locale: %s before, %s after\n", before->locale, after->locale);
    print_difference("rounding mode", before->rounding, after->rounding);
    print_difference("trapped floating-point exceptions", before->traps, after->traps);
    print_difference("raised floating-point exceptions", before->exceptions, after->exceptions);
    for (int stream = 0; stream < STREAMS; stream++)
        print_difference("flags of a standard stream", before->streams[stream], after->streams[stream]);
}

int main(int count, char** arguments) {
    if (count != 4) return 5;
    void* library = dlopen(arguments[1], RTLD_NOW);
    if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 5;
    int (*function)(int*);
    *(void**)&function = dlsym(library, arguments[2]);
    if (function == NULL) return fprintf(stderr, "%s\n", dlerror()), 5;

    signal(SIGINT, SIG_DFL); /* shells let the programs that they start in the background ignore it */
    signal(SIGUSR1, ignore_signal);
    signal(SIGCHLD, SIG_IGN);
    fesetround(FE_UPWARD);
    feenableexcept(FE_DIVBYZERO | FE_INVALID);
    static struct process_state before, after;
    int result = 0;
    read_state(&before);
    int code = function(&result);
    read_state(&after);
    if (code != 0) return fprintf(stderr, "%s returned %d\n", arguments[2], code), 5;
    if (strcmp(arguments[3], "interrupt") == 0) {
        raise(SIGINT);
        exit(4);
    }
    print_differences(&before, &after);
    exit(3);
}
