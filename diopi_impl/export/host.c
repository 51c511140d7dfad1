/* Starts Python if the process has no interpreter, and lets Python provide the exported functions.
 *
 * The library is not linked against Python. It looks up Python's functions at run time, after it has checked that the
 * process runs no other version. Two versions in one process would share symbols, and crash or deadlock.
 *
 * The process belongs to the framework. An interpreter that is started here leaves its signal handlers and its locale as
 * they were, and calls leave the floating-point environment of their thread. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "host.h"

static _Thread_local char last_error[1024];

void fail(const char* reason) { snprintf(last_error, sizeof last_error, "%s", reason); }

const char* last_failure(void) { return last_error; }

/* Functions of Python's C API: the result, the name, the parameters. */
#define PYTHON_FUNCTIONS(X)                                                          \
    X(const char*, Py_GetVersion, (void))                                            \
    X(int, Py_IsInitialized, (void))                                                 \
    X(void, Py_SetPythonHome, (const wchar_t*))                                      \
    X(void, Py_InitializeEx, (int))                                                  \
    X(void*, PyEval_SaveThread, (void))                                              \
    X(void, PyEval_RestoreThread, (void*))                                           \
    X(int, PyGILState_Ensure, (void))                                                \
    X(void, PyGILState_Release, (int))                                               \
    X(void*, PySys_GetObject, (const char*))                                         \
    X(void*, PyImport_ImportModule, (const char*))                                   \
    X(void*, PyObject_CallMethod, (void*, const char*, const char*, ...))            \
    X(void, Py_DecRef, (void*))                                                      \
    X(void, PyErr_Fetch, (void**, void**, void**))                                   \
    X(void, PyErr_NormalizeException, (void**, void**, void**))                      \
    X(void*, PyObject_Str, (void*))                                                  \
    X(const char*, PyUnicode_AsUTF8AndSize, (void*, ssize_t*))

#define MEMBER(result, name, parameters) result(*name) parameters;
static struct { PYTHON_FUNCTIONS(MEMBER) } python;

static enum { NOT_STARTED, INTERPRETER, READY, IMPOSSIBLE } _Atomic state;
static char impossible[1024]; /* the reason; the thread that sets `has_failed` writes it once, before it sets `state` */
static atomic_flag has_failed = ATOMIC_FLAG_INIT;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t importing = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_importing;
static bool started_interpreter;

/* Make all later calls fail with this reason. If several threads fail at the same time, the first reason is stored, and
 * each thread has its reason as last error. */
static bool give_up(const char* reason) {
    if (!atomic_flag_test_and_set(&has_failed)) {
        snprintf(impossible, sizeof impossible, "%s", reason);
        state = IMPOSSIBLE;
    }
    fail(reason);
    return false;
}

static bool fail_again(void) {
    fail(impossible);
    return false;
}

static bool give_up_because(const char* reason, const char* detail) {
    char text[sizeof impossible];
    snprintf(text, sizeof text, "%s%s", reason, detail);
    return give_up(text);
}

static const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

struct pythons { /* Python's shared libraries in the process: of the version of this library, and of another version */
    const char *matching, *mismatching;
};

static int note_python(struct dl_phdr_info* library, size_t size, void* pythons) {
    (void)size;
    struct pythons* found = pythons;
    const char* name = base_name(library->dlpi_name);
    if (strncmp(name, "libpython", 9) != 0 || strcmp(name, "libpython3.so") == 0) return 0; /* that is a forwarder */
    bool matches = strncmp(name + 9, python_version, strlen(python_version)) == 0;
    *(matches ? &found->matching : &found->mismatching) = matches ? library->dlpi_name : name;
    return 0;
}

static bool is_expected_version(const char* version) {
    size_t length = strlen(python_version);
    return strncmp(version, python_version, length) == 0 && version[length] == '.';
}

static void* load(const char* path) {
    if (*path == '\0') return give_up("this library's Python has no shared library to load"), NULL;
    void* loaded = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* extension modules need its symbols */
    if (loaded == NULL) give_up_because("Python can't be loaded: ", dlerror());
    return loaded;
}

/* Store the function called `name` in the function pointer at `pointer`; store NULL if `library` does not have it. */
static bool find(void* library, const char* name, void* pointer) {
    void* found = dlsym(library, name);
    memcpy(pointer, &found, sizeof found);
    return found != NULL;
}

/* Return a handle for Python's functions: those in the process, or those of a library that this call loads. */
static void* open_python(void) {
    struct pythons pythons = {0};
    dl_iterate_phdr(note_python, &pythons);
    const char* (*version)(void);
    bool is_there = find(RTLD_DEFAULT, "Py_GetVersion", &version);
    const char* mismatching = is_there && !is_expected_version(version()) ? version() : pythons.mismatching;
    if (mismatching != NULL) {
        char text[256];
        snprintf(text, sizeof text, "this library is for Python %s, the process runs %.*s", python_version,
                 (int)strcspn(mismatching, " "), mismatching);
        return give_up(text), NULL;
    }
    if (is_there) return dlopen(NULL, RTLD_NOW);
    return load(pythons.matching != NULL ? pythons.matching : python_library);
}

static bool find_functions(void) {
    void* library = open_python();
    if (library == NULL) return false;
#define FIND(result, name, parameters) \
    if (!find(library, #name, &python.name)) return give_up("Python has no function " #name);
    PYTHON_FUNCTIONS(FIND)
    return true;
}

void set_default_arithmetic(fenv_t* saved) {
    fegetenv(saved);
    fesetenv(FE_DFL_ENV);
}

void restore_arithmetic(const fenv_t* saved) { fesetenv(saved); }

/* What Python changes in the process when it starts. */
struct process_settings {
    struct sigaction actions[NSIG]; /* by number */
    char* locale;                   /* NULL if it can't be stored */
};

static void save_settings(struct process_settings* settings) {
    for (int number = 1; number < NSIG; number++) sigaction(number, NULL, &settings->actions[number]);
    settings->locale = strdup(setlocale(LC_ALL, NULL));
}

/* The C library keeps two of the signals for itself; for them, sigaction fails and changes nothing. */
static void restore_settings(struct process_settings* settings) {
    for (int number = 1; number < NSIG; number++) sigaction(number, &settings->actions[number], NULL);
    if (settings->locale != NULL) setlocale(LC_ALL, settings->locale);
    free(settings->locale);
}

/* Start Python without a trace in the settings of the process. Its module `signal` replaces the default action of SIGINT
 * when it is imported first, which would otherwise happen later. */
static void initialize_python(void) {
    struct process_settings settings;
    save_settings(&settings);
    python.Py_SetPythonHome(python_home);
    python.Py_InitializeEx(0); /* without its handlers of signals */
    python.Py_DecRef(python.PyImport_ImportModule("signal"));
    restore_settings(&settings);
    python.PyEval_SaveThread();
}

static bool start_interpreter(void) {
    if (!find_functions()) return false;
    if (python.Py_IsInitialized()) return true;
    if (access(python_landmark, R_OK) != 0) return give_up_because("Python was moved or removed: no ", python_landmark);
    initialize_python();
    started_interpreter = true;
    return true;
}

/* Give up with the text of the exception that Python has raised. */
static bool give_up_as_raised(const char* what, const char* failed) {
    char start[256];
    snprintf(start, sizeof start, "%s%s: ", what, failed);
    void *type = NULL, *value = NULL, *trace = NULL;
    python.PyErr_Fetch(&type, &value, &trace);
    python.PyErr_NormalizeException(&type, &value, &trace);
    void* text = value != NULL ? python.PyObject_Str(value) : NULL;
    const char* characters = text != NULL ? python.PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    give_up_because(start, characters != NULL ? characters : "an exception without text");
    void* const references[] = {type, value, trace, text};
    for (int i = 0; i < 4; i++) python.Py_DecRef(references[i]); /* accepts NULL */
    return false;
}

static bool append_paths(void) {
    void* paths = python.PySys_GetObject("path");
    if (paths == NULL) return give_up("Python has no sys.path");
    if (started_interpreter) {
        void* none = python.PyObject_CallMethod(paths, "clear", NULL);
        if (none == NULL) return give_up_as_raised("sys.path", " can't be cleared");
        python.Py_DecRef(none);
    }
    for (const char* const* path = python_paths; *path != NULL; path++) {
        void* none = python.PyObject_CallMethod(paths, "append", "s", *path);
        if (none == NULL) return give_up_as_raised("sys.path", " can't be extended");
        python.Py_DecRef(none);
    }
    return true;
}

static bool import_service(void) {
    if (!append_paths()) return false;
    void* service = python.PyImport_ImportModule(python_service);
    if (service == NULL) return give_up_as_raised(service_description, " can't be imported");
    void* none = python.PyObject_CallMethod(service, "serve", "K", (unsigned long long)(uintptr_t)service_tables);
    python.Py_DecRef(service);
    if (none == NULL) return give_up_as_raised(service_description, " can't be served");
    python.Py_DecRef(none);
    return true;
}

/* Make all calls fail in a forked process, which has only one thread. The flag may be set without a reason, because
 * another thread of the parent process was in `give_up` during the fork. */
static void after_fork(void) {
    if (state == IMPOSSIBLE) return;
    atomic_flag_clear(&has_failed);
    give_up("the process was forked after Python had started, and has none of its threads");
}

/* Let Python fill the tables. The caller holds `importing` and Python's lock. */
static bool serve(void) {
    if (state == IMPOSSIBLE) return fail_again();
    if (state == INTERPRETER && !import_service()) return false;
    state = READY;
    return true;
}

/* Start the interpreter, then import the service. One thread does this while all others wait. Python's import locks are
 * not sufficient, because concurrent imports may find partially initialized modules. A thread that waits for `starting`
 * or `importing` does not hold Python's lock. */
static bool start(void) {
    USE_DEFAULT_ARITHMETIC;
    pthread_mutex_lock(&starting);
    if (state == NOT_STARTED && start_interpreter()) {
        pthread_atfork(NULL, NULL, after_fork);
        state = INTERPRETER;
    }
    pthread_mutex_unlock(&starting);
    if (state == IMPOSSIBLE) return fail_again();
    if (is_importing) {
        char text[256];
        snprintf(text, sizeof text, "%s called its own library while it was being imported", service_description);
        return fail(text), false;
    }
    int before = python.PyGILState_Ensure();
    void* thread = python.PyEval_SaveThread();
    pthread_mutex_lock(&importing);
    python.PyEval_RestoreThread(thread);
    is_importing = true;
    bool done = serve();
    is_importing = false;
    pthread_mutex_unlock(&importing);
    python.PyGILState_Release(before);
    return done;
}

bool ready(void) {
    if (state == IMPOSSIBLE) return fail_again();
    if (state != READY) return start();
    if (python.Py_IsInitialized()) return true;
    fail("Python has ended in this process");
    return false;
}
