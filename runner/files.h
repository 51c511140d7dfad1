/* The files of the runner: bundles of cases, and results. docs/targets.md describes their format. */
#ifndef RUNNER_FILES_H_
#define RUNNER_FILES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum file_kind { CASES = 1, RESULTS = 2 };
enum { FILE_HEADER_BYTES = 32, TAG_BYTES = 4, KEY_BYTES = 16, WORD = 8 };

/* Print a message for the user, preceded by the name of the program. */
void complain(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Return memory; end the process with a message if there is none. `previous` is released or extended. */
void* allocate_or_exit(void* previous, size_t bytes);

/* A position in a payload. Reading beyond the end sets `failed` and returns zeros. */
struct cursor {
    const unsigned char *at, *end;
    bool failed;
};

/* Return the next number, of eight bytes, and move behind it. */
int64_t take_number(struct cursor* cursor);
/* Return the next bytes, and move behind them and their padding; NULL beyond the end. */
const unsigned char* take_bytes(struct cursor* cursor, int64_t bytes);

/* A file or stream that is read record by record into one buffer. */
struct input {
    FILE* file;
    const char* path;
    bool is_stream;              /* whether it is standard input, which can be read once */
    uint64_t identity, position; /* the position is that of the latest record */
    uint64_t end;                /* the position after the latest record */
    unsigned char* buffer;
    size_t capacity;
    unsigned char* content; /* the decompressed payload, which has at most `largest` bytes */
    size_t largest;
    char tag[TAG_BYTES + 1];
    struct cursor payload;
};

/* Open a file, or standard input if the path is "-", and check the header; return false after a complaint. */
bool input_open(struct input* input, const char* path, enum file_kind kind);
/* Continue with the record at this position in the file. A stream continues with the next record instead. */
bool input_seek(struct input* input, uint64_t position);
enum next { RECORD, END, CUT, DAMAGED };
/* Read the next record: RECORD, or END at the end of the file, CUT in the middle of a record, DAMAGED after a
 * complaint. */
enum next input_next(struct input* input);
/* Replace the payload by its decompressed content; return false after a complaint. */
bool input_expand(struct input* input);
/* Close the file and release the buffers. */
void input_close(struct input* input);

/* A file that is written with complete records; standard output if the runner has no file system. */
struct output {
    int descriptor; /* not used without a file system */
    unsigned char* buffer;
    size_t size, capacity, record; /* `record` is the position of the record that is being written */
    long process; /* the only process that may write; 0 for every process */
    volatile uint64_t* write_failed; /* set before the process ends because the file can't be written; or NULL */
};

/* These functions append to the buffer; `output_flush` writes the buffer to the file. */
void put_number(struct output* output, int64_t value);
void put_double(struct output* output, double value);
void put_bytes(struct output* output, const void* bytes, size_t count); /* with padding up to a whole word */
void put_text(struct output* output, const char* text);                 /* its length and its bytes; NULL is empty */
void put_header(struct output* output, uint64_t identity); /* the header of a file of results of this bundle */
void begin_record(struct output* output, const char* tag); /* the tag has four characters */
void end_record(struct output* output);                    /* stores the size and the checksum of the record */
/* End this process if the vendor has forked it from the process that makes the calls. */
void end_copies(const struct output* output);
/* Write everything to the file; return the number of bytes, or end the process after a complaint. */
size_t output_flush(struct output* output);

#endif /* RUNNER_FILES_H_ */
