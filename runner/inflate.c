/* Decompression of the format DEFLATE, with tables of fixed size and no other memory. */
#include "inflate.h"

#include <stdint.h>
#include <string.h>

enum { MAX_LENGTH = 15, FAST_LENGTH = 9, LITERALS = 288, DISTANCES = 30, ALL_DISTANCES = 32, LENGTH_CODES = 19 };
enum { END_OF_BLOCK = 256, FIRST_LENGTH = 257, LENGTHS = 29 };
enum block_kind { STORED, FIXED_CODES, DYNAMIC_CODES };
enum { REPEAT_PREVIOUS = 16, REPEAT_ZERO = 17, REPEAT_ZERO_LONG = 18 };

/* The compressed bits, of which the next ones are in `hold`. */
struct bits {
    const unsigned char *at, *end;
    uint64_t hold;
    int held;
    bool failed;
};

/* A prefix code. */
struct code {
    uint16_t fast[1 << FAST_LENGTH];  /* by the next bits: 16 * symbol + length; 0 for longer codes */
    uint16_t counts[MAX_LENGTH + 1];  /* the number of codes of each length */
    uint16_t symbols[LITERALS];       /* the symbols in the order of their codes */
};

struct target {
    unsigned char *start, *at, *end;
};

static void fill(struct bits* bits) {
    while (bits->held <= 56 && bits->at < bits->end) {
        bits->hold |= (uint64_t)*bits->at++ << bits->held;
        bits->held += 8;
    }
}

static unsigned take(struct bits* bits, int count) {
    fill(bits);
    unsigned value = (unsigned)(bits->hold & ((1u << count) - 1));
    if (count > bits->held) bits->failed = true;
    bits->hold >>= count;
    bits->held -= count;
    return bits->failed ? 0 : value;
}

static unsigned reversed(unsigned value, int count) {
    unsigned result = 0;
    for (int i = 0; i < count; i++) result |= (value >> i & 1) << (count - 1 - i);
    return result;
}

/* Build a code from the lengths of its words. Return false unless it uses each sequence of bits, or has no word, or has
 * a single word of one bit and this is allowed. */
static bool build_code(struct code* code, const unsigned char* lengths, int count, bool may_be_single) {
    int free_words = 1, longest = 0;
    uint16_t places[MAX_LENGTH + 2] = {0}, values[MAX_LENGTH + 2] = {0};
    memset(code, 0, sizeof *code);
    for (int symbol = 0; symbol < count; symbol++) code->counts[lengths[symbol]]++;
    code->counts[0] = 0;
    for (int length = 1; length <= MAX_LENGTH; length++) {
        free_words = 2 * free_words - code->counts[length];
        if (free_words < 0) return false;
        if (code->counts[length] > 0) longest = length;
        places[length + 1] = (uint16_t)(places[length] + code->counts[length]);
        values[length + 1] = (uint16_t)((values[length] + code->counts[length]) << 1);
    }
    if (free_words > 0 && longest > (may_be_single ? 1 : 0)) return false;
    for (int symbol = 0; symbol < count; symbol++) {
        int length = lengths[symbol];
        if (length == 0) continue;
        code->symbols[places[length]++] = (uint16_t)symbol;
        unsigned first = reversed(values[length]++, length);
        for (unsigned i = first; length <= FAST_LENGTH && i < 1u << FAST_LENGTH; i += 1u << length) {
            code->fast[i] = (uint16_t)(16 * symbol + length);
        }
    }
    return true;
}

/* Return the next symbol; -1 if the bits are no code. */
static int take_symbol(struct bits* bits, const struct code* code) {
    fill(bits);
    unsigned entry = code->fast[bits->hold & ((1u << FAST_LENGTH) - 1)];
    if (entry != 0) {
        take(bits, entry % 16);
        return bits->failed ? -1 : (int)(entry / 16);
    }
    int value = 0, first = 0, place = 0;
    for (int length = 1; length <= MAX_LENGTH; length++) {
        value = 2 * value + (int)(bits->hold >> (length - 1) & 1);
        int count = code->counts[length];
        if (value - first < count) {
            take(bits, length);
            return bits->failed ? -1 : code->symbols[place + value - first];
        }
        place += count;
        first = 2 * (first + count);
    }
    return -1;
}

static bool copy_stored(struct bits* bits, struct target* target) {
    take(bits, bits->held % 8);
    unsigned size = take(bits, 16), complement = take(bits, 16);
    if (bits->failed || (size ^ complement) != 0xFFFF || size > (size_t)(target->end - target->at)) return false;
    for (unsigned i = 0; i < size; i++) *target->at++ = (unsigned char)take(bits, 8);
    return !bits->failed;
}

/* Copy bytes that came before; the symbol states how many. */
static bool copy_earlier(struct bits* bits, const struct code* distances, struct target* target, int symbol) {
    static const uint16_t sizes[LENGTHS] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                            31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    int index = symbol - FIRST_LENGTH;
    if (index >= LENGTHS) return false;
    int size_bits = index < 8 || index == LENGTHS - 1 ? 0 : index / 4 - 1;
    size_t size = sizes[index] + take(bits, size_bits);
    int code = take_symbol(bits, distances);
    if (code < 0 || code >= DISTANCES) return false;
    int distance_bits = code < 4 ? 0 : code / 2 - 1;
    size_t distance = code < 4 ? (size_t)code + 1 : ((size_t)(2 + code % 2) << distance_bits) + 1;
    distance += take(bits, distance_bits);
    if (bits->failed || distance > (size_t)(target->at - target->start) || size > (size_t)(target->end - target->at)) {
        return false;
    }
    for (; size > 0; size--, target->at++) *target->at = target->at[-(ptrdiff_t)distance];
    return true;
}

static bool copy_coded(struct bits* bits, const struct code* literals, const struct code* distances,
                       struct target* target) {
    for (;;) {
        int symbol = take_symbol(bits, literals);
        if (symbol == END_OF_BLOCK) return true;
        if (symbol > END_OF_BLOCK) {
            if (!copy_earlier(bits, distances, target, symbol)) return false;
        } else if (symbol >= 0 && target->at < target->end) {
            *target->at++ = (unsigned char)symbol;
        } else {
            return false;
        }
    }
}

static bool build_fixed(struct code* literals, struct code* distances) {
    unsigned char lengths[LITERALS];
    for (int i = 0; i < LITERALS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    if (!build_code(literals, lengths, LITERALS, true)) return false;
    memset(lengths, 5, ALL_DISTANCES);
    return build_code(distances, lengths, ALL_DISTANCES, true);
}

static bool build_dynamic(struct bits* bits, struct code* literals, struct code* distances) {
    static const unsigned char order[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned char lengths[LITERALS + DISTANCES + 2] = {0};
    int literal_count = (int)take(bits, 5) + 257, distance_count = (int)take(bits, 5) + 1;
    int code_count = (int)take(bits, 4) + 4, count = literal_count + distance_count;
    if (literal_count > LITERALS - 2 || distance_count > DISTANCES) return false;
    for (int i = 0; i < code_count; i++) lengths[order[i]] = (unsigned char)take(bits, 3);
    if (!build_code(literals, lengths, LENGTH_CODES, false)) return false;
    memset(lengths, 0, sizeof lengths);
    for (int i = 0; i < count;) {
        int symbol = take_symbol(bits, literals), repeats = 1;
        unsigned char length = (unsigned char)symbol;
        if (symbol < 0) return false;
        if (symbol >= REPEAT_PREVIOUS) length = symbol == REPEAT_PREVIOUS && i > 0 ? lengths[i - 1] : 0;
        if (symbol == REPEAT_PREVIOUS) repeats = 3 + (int)take(bits, 2);
        if (symbol == REPEAT_ZERO) repeats = 3 + (int)take(bits, 3);
        if (symbol == REPEAT_ZERO_LONG) repeats = 11 + (int)take(bits, 7);
        if (repeats > count - i) return false;
        for (; repeats > 0; repeats--) lengths[i++] = length;
    }
    return lengths[END_OF_BLOCK] > 0 && build_code(literals, lengths, literal_count, true) &&
           build_code(distances, lengths + literal_count, distance_count, true);
}

bool inflate_bytes(const unsigned char* bytes, size_t count, unsigned char* result, size_t size) {
    static struct code literals, distances;
    struct bits bits = {.at = bytes, .end = bytes + count};
    struct target target = {.start = result, .at = result, .end = result + size};
    bool is_last = false;
    while (!is_last) {
        is_last = take(&bits, 1) != 0;
        enum block_kind kind = (enum block_kind)take(&bits, 2);
        if (bits.failed) return false;
        if (kind == STORED) {
            if (!copy_stored(&bits, &target)) return false;
            continue;
        }
        if (kind == FIXED_CODES ? !build_fixed(&literals, &distances)
                                : kind != DYNAMIC_CODES || !build_dynamic(&bits, &literals, &distances)) {
            return false;
        }
        if (!copy_coded(&bits, &literals, &distances, &target)) return false;
    }
    return target.at == target.end;
}
