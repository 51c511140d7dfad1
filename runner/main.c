/* diopi-runner: make the calls of a bundle with a vendor's library, and write the results to a file. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifndef DIOPI_RUNNER_NO_FILES
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#ifndef DIOPI_RUNNER_NO_FORK
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#endif

#include "group.h"

enum status { DONE = 0, WRONG_USAGE = 2, FAILED = 3 };
enum loss { BY_SIGNAL, BY_EXIT, BY_TIMEOUT, BY_INTERRUPTION };
enum { DEFAULT_TIMEOUT = 60, MAX_FAILED_STARTS = 3 };

struct options {
    const char *cases, *library, *results;
    double timeout;
    uint64_t first_case, first_group; /* 0: the beginning */
    bool resume, skip, in_process;
};

static const char usage[] =
    "usage: diopi-runner CASES [LIBRARY] [options]\n"
    "\n"
    "Make the calls of the bundle CASES with the vendor's LIBRARY, and write the results. If CASES is -, read the\n"
    "bundle from standard input; this implies --in-process.\n"
    "\n"
    "  -o FILE            write the results to FILE; by default to standard output\n"
    "  --timeout SECONDS  end a call after this time (default: 60)\n"
    "  --in-process       do not protect the runner from crashes of the vendor\n"
    "  --resume           continue FILE; repeat the calls during which the runner ended\n"
    "  --resume --skip    continue FILE; do not repeat these calls, their case counts as crashed\n"
    "  --start-at POSITION GROUP\n"
    "                     begin with a group of calls of the case at this byte of CASES\n"
    "  --version          show the version of the format, and the features of this runner\n";

static const char version[] =
    "diopi-runner, format 2"
#ifndef DIOPI_RUNNER_NO_FORK
    ", fork"
#endif
#ifndef DIOPIRT_NO_THREADS
    ", threads"
#endif
#ifndef DIOPI_RUNNER_STATIC
    ", dlopen"
#endif
#ifndef DIOPI_RUNNER_NO_FILES
    ", files"
#endif
    "\n";

/* Write the header of a new file, or find where an earlier runner ended. */

/* Write that calls were lost. `value` is the number of the signal or the exit code. */
static void put_loss(struct output* output, enum loss loss, int64_t value) {
    begin_record(output, "LOST");
    put_number(output, loss);
    put_number(output, value);
    end_record(output);
}

/* Begin new results. */
static void put_beginning(const struct options* options, uint64_t identity, struct output* output,
                          struct progress* progress) {
    put_header(output, identity);
    progress->committed += output_flush(output);
    progress->case_position = options->first_case;
    progress->group = options->first_group;
}

#ifdef DIOPI_RUNNER_NO_FILES

/* Write the results to standard output. Return false after a complaint. */
static bool open_output(const struct options* options, uint64_t identity, struct output* output,
                        struct progress* progress) {
    if (options->results != NULL) {
        complain("this runner has no file system, and writes to standard output; leave out -o %s", options->results);
        return false;
    }
    put_beginning(options, identity, output, progress);
    return true;
}

#else

/* What earlier results contain. */
struct earlier {
    uint64_t end, complete_end; /* the end of the last record, and of the last complete group of calls */
    bool is_pending;            /* whether there are records of a group that is not complete */
};

/* Read earlier results. `progress` becomes the place after the last complete group, or after the last group if the
 * group that is not complete is to be skipped. */
static bool read_earlier(struct input* input, struct progress* progress, bool skip, struct earlier* earlier) {
    enum next next;
    uint64_t case_position = 0, group = 0;
    while ((next = input_next(input)) == RECORD) {
        bool is_call = strcmp(input->tag, "CALL") == 0;
        earlier->end = input->end;
        if (strcmp(input->tag, "VEND") == 0) progress->has_described_vendor = 1;
        if (strcmp(input->tag, "END ") == 0) progress->is_done = 1;
        if (is_call) {
            take_bytes(&input->payload, KEY_BYTES);
            case_position = (uint64_t)take_number(&input->payload);
            group = (uint64_t)take_number(&input->payload) + 1;
        }
        earlier->is_pending = is_call || strcmp(input->tag, "RSLT") == 0;
        if (earlier->is_pending && !skip) continue;
        earlier->complete_end = earlier->end;
        progress->case_position = case_position;
        progress->group = group;
    }
    return next != DAMAGED;
}

/* Prepare to continue a file of results after its last complete group; return false after a complaint. */
static bool resume(const struct options* options, uint64_t identity, struct output* output, struct progress* progress) {
    struct input input;
    struct earlier earlier = {.end = FILE_HEADER_BYTES, .complete_end = FILE_HEADER_BYTES};
    if (!input_open(&input, options->results, RESULTS)) return false;
    bool is_same = input.identity == identity;
    if (!is_same) complain("%s contains results of another bundle", options->results);
    bool is_readable = is_same && read_earlier(&input, progress, options->skip, &earlier);
    input_close(&input);
    if (!is_readable || progress->is_done) return is_readable;
    if (ftruncate(output->descriptor, (off_t)earlier.complete_end) != 0 ||
        lseek(output->descriptor, 0, SEEK_END) < 0) {
        complain("%s can't be continued: %s", options->results, strerror(errno));
        return false;
    }
    progress->committed = earlier.complete_end;
    if (!earlier.is_pending) return true;
    if (options->skip) {
        put_loss(output, BY_INTERRUPTION, 0);
    } else {
        complain("the calls during which an earlier runner ended are repeated; add --skip if it ends there again");
    }
    return true;
}

/* Open the file of results. Write its header if it is new, or else find the place where the run continues. Return false
 * after a complaint. */
static bool open_output(const struct options* options, uint64_t identity, struct output* output,
                        struct progress* progress) {
    int flags = O_RDWR | O_CREAT | (options->resume ? 0 : O_TRUNC);
    output->descriptor = options->results != NULL ? open(options->results, flags, 0644) : dup(STDOUT_FILENO);
    if (output->descriptor < 0) {
        complain("%s can't be written: %s", options->results, strerror(errno));
        return false;
    }
    if (options->results == NULL) dup2(STDERR_FILENO, STDOUT_FILENO); /* the vendor may print something */
    struct stat status;
    bool is_new = !options->resume || fstat(output->descriptor, &status) != 0 || status.st_size == 0;
    if (is_new) {
        put_beginning(options, identity, output, progress);
    } else if (!resume(options, identity, output, progress)) {
        return false;
    }
    progress->committed += output_flush(output);
    return true;
}

#endif

/* Run the cases. */

/* Make the calls of a case from the group `first_group` on; return false after a complaint. */
static bool run_case(struct input* cases, uint64_t first_group, const struct vendor* vendor, struct output* output,
                     struct progress* progress) {
    struct cursor* payload = &cases->payload;
    const unsigned char* start = payload->at;
    take_bytes(payload, take_number(payload)); /* the ID */
    int64_t position = take_number(payload), count = take_number(payload);
    if (position < 0 || position > payload->end - start) payload->failed = true;
    for (int64_t group = 0; group < count && !payload->failed; group++) {
        progress->case_position = cases->position;
        progress->group = (uint64_t)group;
        if (group < (int64_t)first_group) {
            if (!group_skip(payload)) break;
        } else if (!group_run(payload, start + position, vendor, output, progress)) {
            return false;
        }
    }
    if (payload->failed) complain("the case at byte %llu is damaged", (unsigned long long)cases->position);
    return !payload->failed;
}

/* Make the calls of all cases from the place in `progress` on. */
static enum status run_cases(struct input* cases, const struct vendor* vendor, struct output* output,
                             struct progress* progress) {
    uint64_t first_case = progress->case_position, first_group = progress->group;
    enum next next;
    while ((next = input_next(cases)) == RECORD && strcmp(cases->tag, "END ") != 0) {
        bool is_first = cases->position == first_case;
        if (strcmp(cases->tag, "CASE") != 0 || cases->position < first_case) continue;
        if (!input_expand(cases)) return FAILED;
        if (!run_case(cases, is_first ? first_group : 0, vendor, output, progress)) return FAILED;
    }
    if (next == END || next == CUT) complain("%s is cut off: its last record is missing", cases->path);
    return next == RECORD ? DONE : FAILED;
}

/* Without another process that observes it, the process itself writes that a signal ends it during a call. */

static struct output* observed_output;
static const struct progress* observed_progress;

/* Handle a signal that ends this process: write that the call was lost, and let the signal end the process. */
static void note_own_end(int signal_number) {
    signal(signal_number, SIG_DFL);
    if (observed_progress->is_pending) {
        put_loss(observed_output, BY_SIGNAL, signal_number); /* the buffer is empty and has memory for this record */
        output_flush(observed_output);
    }
    raise(signal_number);
}

/* Let `note_own_end` handle the signals of a crash. */
static void observe_own_end(struct output* output, const struct progress* progress) {
    static const int signals[] = {SIGABRT, SIGFPE, SIGILL, SIGSEGV};
    observed_output = output;
    observed_progress = progress;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], note_own_end);
}

/* Load the library, and run the cases after the place in `progress`. A stream of cases is already open. */
static enum status run(const struct options* options, struct input* cases, struct output* output,
                       struct progress* progress) {
    struct vendor vendor = {0};
#ifndef DIOPI_RUNNER_NO_FILES
    output->process = (long)getpid();
#endif
    if (!cases->is_stream && !input_open(cases, options->cases, CASES)) return FAILED;
    if (progress->case_position > 0 && !input_seek(cases, progress->case_position)) return FAILED;
    if (!vendor_load(&vendor, options->library)) return FAILED;
    if (!progress->has_described_vendor) vendor_describe(output);
    progress->committed += output_flush(output);
    progress->has_described_vendor = 1;
    enum status status = run_cases(cases, &vendor, output, progress);
    if (status == DONE && !vendor_finish(&vendor)) status = FAILED;
    if (status == DONE) {
        begin_record(output, "END ");
        put_number(output, 0); /* the number of records is not known */
        end_record(output);
        progress->is_done = 1;
    }
    progress->committed += output_flush(output);
    input_close(cases);
    return status;
}

/* Protect the runner from crashes: the library is loaded in another process, which is replaced if it ends. */

#ifndef DIOPI_RUNNER_NO_FORK

static volatile pid_t protected_process;

/* End the process that makes the calls together with the runner. */
static void end_both(int signal_number) {
    if (protected_process > 0) kill(protected_process, SIGKILL);
    _exit(128 + signal_number);
}

/* Let a function handle the signals that end the runner. */
static void handle_signals(void (*handler)(int)) {
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], handler);
}

/* Let the system end this process together with the runner, so that no second runner meets it on the device. */
static void end_with(pid_t runner) {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != runner) _exit(FAILED);
}

/* Wait until the process ends; end it if no call begins within the time limit. */
static int wait_for(pid_t process, const volatile struct progress* progress, double timeout, bool* is_late) {
    int status = 0;
    uint64_t calls = progress->calls;
    double since = seconds(), pause = 1e-4;
    *is_late = false;
    while (waitpid(process, &status, WNOHANG) == 0) {
        struct timespec nap = {0, (long)(1e9 * pause)};
        nanosleep(&nap, NULL);
        pause = pause < 0.02 ? 2 * pause : pause;
        if (progress->calls != calls) {
            calls = progress->calls;
            since = seconds();
        } else if (seconds() - since > timeout && !*is_late) {
            *is_late = true;
            kill(process, SIGKILL);
        }
    }
    return status;
}

/* Write how the process ended, after its last complete record. */
static void note_loss(struct output* output, struct progress* progress, int status, bool is_late) {
    struct stat file;
    if (fstat(output->descriptor, &file) == 0 && S_ISREG(file.st_mode) &&
        (ftruncate(output->descriptor, (off_t)progress->committed) != 0 || lseek(output->descriptor, 0, SEEK_END) < 0)) {
        complain("the results can't be continued: %s", strerror(errno));
        exit(FAILED);
    }
    bool is_signal = WIFSIGNALED(status);
    put_loss(output, is_late ? BY_TIMEOUT : is_signal ? BY_SIGNAL : BY_EXIT,
             is_signal ? WTERMSIG(status) : WEXITSTATUS(status));
    progress->committed += output_flush(output);
}

/* Run the cases in another process. If it ends during a call, record the loss and continue after the group. */
static enum status supervise(const struct options* options, struct input* cases, struct output* output,
                             struct progress* progress) {
    int failed_starts = 0;
    handle_signals(end_both);
    while (!progress->is_done) {
        uint64_t calls = progress->calls;
        fflush(NULL);
        progress->is_pending = 0;
        pid_t runner = getpid(), process = fork();
        if (process < 0) {
            complain("no process can be started: %s", strerror(errno));
            return FAILED;
        }
        if (process == 0) {
            handle_signals(SIG_DFL);
            end_with(runner);
            _exit(run(options, cases, output, progress));
        }
        protected_process = process;
        bool is_late;
        int status = wait_for(process, progress, options->timeout, &is_late);
        protected_process = 0;
        if (progress->is_done) break;
        if (progress->write_failed) return FAILED; /* the vendor is not to blame */
        bool has_complained = WIFEXITED(status) && WEXITSTATUS(status) == FAILED && !progress->is_pending;
        if (has_complained && progress->calls > calls) return FAILED;
        failed_starts = progress->calls == calls ? failed_starts + 1 : 0;
        if ((WIFEXITED(status) && WEXITSTATUS(status) == FAILED && progress->calls == calls) ||
            failed_starts == MAX_FAILED_STARTS) {
            complain("the vendor does not start, or ends before the first call of the case at byte %llu",
                     (unsigned long long)progress->case_position);
            return FAILED;
        }
        if (progress->is_pending) { /* else the group has not begun, and is repeated */
            note_loss(output, progress, status, is_late);
            progress->group++;
        }
    }
    return DONE;
}

static enum status start(const struct options* options, struct input* cases, struct output* output,
                         const struct progress* first) {
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    struct progress* progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (progress == MAP_FAILED) {
        complain("no memory can be shared: %s", strerror(errno));
        return FAILED;
    }
    *progress = *first;
    output->write_failed = &progress->write_failed;
    /* A second process could not read a stream again. */
    if (!options->in_process && !cases->is_stream) return supervise(options, cases, output, progress);
    observe_own_end(output, progress);
    return run(options, cases, output, progress);
}

#else

static enum status start(const struct options* options, struct input* cases, struct output* output,
                         const struct progress* first) {
    struct progress progress = *first;
    observe_own_end(output, &progress);
    return run(options, cases, output, &progress);
}

#endif

/* The command line. */

/* Read the command line; return false if it is wrong. */
static bool read_options(int count, char** words, struct options* options) {
    *options = (struct options){.timeout = DEFAULT_TIMEOUT};
    for (int i = 1; i < count; i++) {
        const char* word = words[i];
        bool has_value = i + 1 < count;
        if (strcmp(word, "-o") == 0 && has_value) {
            options->results = words[++i];
        } else if (strcmp(word, "--timeout") == 0 && has_value) {
            options->timeout = strtod(words[++i], NULL);
        } else if (strcmp(word, "--start-at") == 0 && i + 2 < count) {
            options->first_case = strtoull(words[++i], NULL, 10);
            options->first_group = strtoull(words[++i], NULL, 10);
        } else if (strcmp(word, "--resume") == 0) {
            options->resume = true;
        } else if (strcmp(word, "--skip") == 0) {
            options->skip = true;
        } else if (strcmp(word, "--in-process") == 0) {
            options->in_process = true;
        } else if ((word[0] == '-' && word[1] != '\0') || options->library != NULL) {
            return false;
        } else if (options->cases == NULL) {
            options->cases = word;
        } else {
            options->library = word;
        }
    }
    return options->cases != NULL && options->timeout > 0 && (options->results != NULL || !options->resume) &&
           (options->resume || !options->skip);
}

DIOPI_EXPORT int main(int count, char** words) {
    struct options options;
    if (count == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "--version") == 0)) {
        fputs(strcmp(words[1], "--help") == 0 ? usage : version, stdout);
        return DONE;
    }
    if (!read_options(count, words, &options)) {
        fputs(usage, stderr);
        return WRONG_USAGE;
    }
    struct output output = {0};
    struct input cases;
    struct progress progress = {0};
    if (!input_open(&cases, options.cases, CASES)) return FAILED;
    uint64_t identity = cases.identity;
    if (!cases.is_stream) input_close(&cases); /* the process that makes the calls opens the file itself */
    if (!open_output(&options, identity, &output, &progress)) return FAILED;
    enum status status = progress.is_done ? DONE : start(&options, &cases, &output, &progress);
    free(output.buffer);
    return status;
}
