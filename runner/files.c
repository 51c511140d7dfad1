/* Reading and writing the files of the runner. */
#include "files.h"

#include "inflate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#ifndef DIOPI_RUNNER_NO_FILES
#include <unistd.h>
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the runner supports little-endian processors only"
#endif

static const unsigned char magic[WORD] = {0xD1, 'D', 'I', 'O', 'P', 'I', '\r', '\n'};
enum { FORMAT_VERSION = 2, RECORD_HEADER_BYTES = 16 };

#define MAX_PAYLOAD (SIZE_MAX / 4 < 1ull << 40 ? SIZE_MAX / 4 : 1ull << 40)

void complain(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("diopi-runner: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void* allocate_or_exit(void* previous, size_t bytes) {
    void* memory = realloc(previous, bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        complain("out of memory: %zu bytes were requested", bytes);
        exit(3);
    }
    return memory;
}

static uint32_t checksum(const unsigned char* bytes, size_t count) { /* CRC-32, as in zlib */
    static uint32_t table[256];
    for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0);
        table[i] = value;
    }
    uint32_t sum = 0xFFFFFFFFu;
    for (size_t i = 0; i < count; i++) sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 0xFF];
    return ~sum;
}

/* Return a number of bytes rounded up to whole words. */
static size_t padded(size_t bytes) { return (bytes + WORD - 1) / WORD * WORD; }

const unsigned char* take_bytes(struct cursor* cursor, int64_t bytes) {
    size_t left = (size_t)(cursor->end - cursor->at);
    if (bytes < 0 || (uint64_t)bytes > left) {
        cursor->failed = true;
        return NULL;
    }
    const unsigned char* found = cursor->at;
    cursor->at += padded((size_t)bytes) < left ? padded((size_t)bytes) : left;
    return found;
}

int64_t take_number(struct cursor* cursor) {
    int64_t value = 0;
    const unsigned char* bytes = take_bytes(cursor, WORD);
    if (bytes != NULL) memcpy(&value, bytes, WORD);
    return value;
}

static uint32_t load_32(const unsigned char* bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t load_64(const unsigned char* bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Return whether a file begins with the header of a file of this kind; complain if it does not. */
static bool check_header(struct input* input, const unsigned char* header, size_t size, enum file_kind kind) {
    if (size < FILE_HEADER_BYTES || memcmp(header, magic, sizeof magic) != 0) {
        complain("%s is no file of `diopi-test bundle` or `diopi-runner`: it begins otherwise", input->path);
    } else if (load_32(header + 8) != FORMAT_VERSION) {
        complain("%s has version %u of the format, expected %d", input->path, (unsigned)load_32(header + 8),
                 FORMAT_VERSION);
    } else if (load_32(header + 12) != (uint32_t)kind) {
        complain("%s contains %s, expected %s", input->path, kind == CASES ? "results" : "cases",
                 kind == CASES ? "cases" : "results");
    } else {
        return true;
    }
    return false;
}

static bool open_file(struct input* input) {
#ifdef DIOPI_RUNNER_NO_FILES
    complain("this runner has no file system; expected - for standard input in place of %s", input->path);
#else
    input->file = fopen(input->path, "rb");
    if (input->file == NULL) complain("%s can't be read: %s", input->path, strerror(errno));
#endif
    return input->file != NULL;
}

bool input_open(struct input* input, const char* path, enum file_kind kind) {
    unsigned char header[FILE_HEADER_BYTES];
    *input = (struct input){.path = path, .is_stream = strcmp(path, "-") == 0, .end = sizeof header};
    if (input->is_stream) {
        input->path = "standard input";
        input->file = stdin;
    } else if (!open_file(input)) {
        return false;
    }
    size_t size = fread(header, 1, sizeof header, input->file);
    if (!check_header(input, header, size, kind)) return false;
    input->identity = load_64(header + 16);
    uint64_t largest = load_64(header + 24);
    if (largest > MAX_PAYLOAD) {
        complain("%s can't be read: its largest record has %llu bytes", path, (unsigned long long)largest);
        return false;
    }
    input->capacity = input->largest = (size_t)largest;
    input->buffer = allocate_or_exit(NULL, input->capacity);
    return true;
}

bool input_seek(struct input* input, uint64_t position) {
    if (input->is_stream) return true;
    input->end = position;
    if (fseek(input->file, (long)position, SEEK_SET) == 0) return true;
    complain("%s can't be read from byte %llu: %s", input->path, (unsigned long long)position, strerror(errno));
    return false;
}

enum next input_next(struct input* input) {
    unsigned char header[RECORD_HEADER_BYTES];
    input->position = input->end;
    size_t found = fread(header, 1, sizeof header, input->file);
    if (found == 0 && feof(input->file)) return END;
    if (found < sizeof header) return CUT;
    uint64_t bytes = load_64(header + 8);
    if (bytes > MAX_PAYLOAD || bytes % WORD != 0) {
        complain("%s is damaged: the record at byte %llu has a size of %llu bytes", input->path,
                 (unsigned long long)input->position, (unsigned long long)bytes);
        return DAMAGED;
    }
    if (bytes > input->capacity) {
        input->capacity = (size_t)bytes;
        input->buffer = allocate_or_exit(input->buffer, input->capacity);
    }
    if (fread(input->buffer, 1, (size_t)bytes, input->file) < bytes) return CUT;
    if (checksum(input->buffer, (size_t)bytes) != load_32(header + 4)) {
        complain("%s is damaged: the record at byte %llu has another checksum", input->path,
                 (unsigned long long)input->position);
        return DAMAGED;
    }
    memcpy(input->tag, header, TAG_BYTES);
    input->end = input->position + sizeof header + bytes;
    input->payload = (struct cursor){.at = input->buffer, .end = input->buffer + bytes};
    return RECORD;
}

bool input_expand(struct input* input) {
    int64_t size = take_number(&input->payload);
    if (input->content == NULL) input->content = allocate_or_exit(NULL, input->largest);
    size_t count = (size_t)(input->payload.end - input->payload.at);
    if (size < 0 || (uint64_t)size > input->largest ||
        !inflate_bytes(input->payload.at, count, input->content, (size_t)size)) {
        complain("%s is damaged: the record at byte %llu can't be decompressed", input->path,
                 (unsigned long long)input->position);
        return false;
    }
    input->payload = (struct cursor){.at = input->content, .end = input->content + size};
    return true;
}

void input_close(struct input* input) {
    if (input->file != NULL && !input->is_stream) fclose(input->file);
    free(input->buffer);
    free(input->content);
    *input = (struct input){0};
}

/* Append bytes to the buffer, which grows if necessary. */
static void append(struct output* output, const void* bytes, size_t count) {
    if (output->capacity - output->size < count) {
        output->capacity = 2 * output->capacity + count;
        output->buffer = allocate_or_exit(output->buffer, output->capacity);
    }
    if (count > 0) memcpy(output->buffer + output->size, bytes, count);
    output->size += count;
}

void put_number(struct output* output, int64_t value) { append(output, &value, sizeof value); }

void put_double(struct output* output, double value) { append(output, &value, sizeof value); }

void put_bytes(struct output* output, const void* bytes, size_t count) {
    static const unsigned char zeros[WORD];
    append(output, bytes, count);
    append(output, zeros, padded(count) - count);
}

void put_text(struct output* output, const char* text) {
    size_t length = text != NULL ? strlen(text) : 0;
    put_number(output, (int64_t)length);
    put_bytes(output, text, length);
}

void put_header(struct output* output, uint64_t identity) {
    uint32_t version_and_kind[] = {FORMAT_VERSION, RESULTS};
    append(output, magic, sizeof magic);
    append(output, version_and_kind, sizeof version_and_kind);
    append(output, &identity, sizeof identity);
    put_number(output, 0); /* the size of the largest record is not known */
}

void begin_record(struct output* output, const char* tag) {
    static const unsigned char zeros[RECORD_HEADER_BYTES];
    output->record = output->size;
    append(output, zeros, sizeof zeros);
    memcpy(output->buffer + output->record, tag, TAG_BYTES);
}

void end_record(struct output* output) {
    unsigned char* header = output->buffer + output->record;
    uint64_t bytes = output->size - output->record - RECORD_HEADER_BYTES;
    uint32_t sum = checksum(header + RECORD_HEADER_BYTES, (size_t)bytes);
    memcpy(header + 4, &sum, sizeof sum);
    memcpy(header + 8, &bytes, sizeof bytes);
}

/* Write some of the bytes; return how many, or 0 if this fails. */
static size_t write_some(struct output* output, const unsigned char* bytes, size_t count) {
#ifdef DIOPI_RUNNER_NO_FILES
    (void)output;
    size_t written = fwrite(bytes, 1, count, stdout);
    return fflush(stdout) == 0 ? written : 0;
#else
    ssize_t written;
    do {
        written = write(output->descriptor, bytes, count);
    } while (written < 0 && errno == EINTR);
    return written > 0 ? (size_t)written : 0;
#endif
}

void end_copies(const struct output* output) {
#ifdef DIOPI_RUNNER_NO_FILES
    (void)output;
#else
    if (output->process != 0 && output->process != (long)getpid()) _exit(0);
#endif
}

size_t output_flush(struct output* output) {
    size_t written = 0;
    end_copies(output);
    while (written < output->size) {
        errno = 0;
        size_t count = write_some(output, output->buffer + written, output->size - written);
        if (count == 0) {
            bool is_closed = errno == EBADF; /* by the vendor: this counts as its crash */
            complain("the results can't be written: %s", errno == 0 ? "nothing was written" : strerror(errno));
            if (output->write_failed != NULL && !is_closed) *output->write_failed = 1;
            _Exit(is_closed ? 1 : 3);
        }
        written += count;
    }
    output->size = 0;
    return written;
}
