/* Decompression of the format DEFLATE, which RFC 1951 specifies. */
#ifndef RUNNER_INFLATE_H_
#define RUNNER_INFLATE_H_

#include <stdbool.h>
#include <stddef.h>

/* Decompress `count` bytes to exactly `size` bytes; return false if the bytes are damaged. */
bool inflate_bytes(const unsigned char* bytes, size_t count, unsigned char* result, size_t size);

#endif /* RUNNER_INFLATE_H_ */
