#include "data/text_hash.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fnv.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

static void add_term(uint64_t hash, size_t n, float *ret)
{
    uint64_t x = mix(hash);
    ret[x % n] += x >> 63 ? -1.0f : 1.0f;
}

/* The byte as a part of a word; 0: it is between words. */
static unsigned char word_byte(char ch)
{
    unsigned char c = (unsigned char)ch;
    if (c >= 'A' && c <= 'Z')
        return (unsigned char)(c + ('a' - 'A'));
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 128 ? c : 0;
}

void text_hash(const char *s, size_t len, size_t n, float *ret)
{
    uint64_t word = FNV64_BASIS, pair = FNV64_BASIS; /* `pair` began with the word before */
    bool inside = false, paired = false;
    memset(ret, 0, n * sizeof *ret);
    for (size_t i = 0; i <= len; i++) {
        unsigned char c = i < len ? word_byte(s[i]) : 0;
        if (c) {
            word = (word ^ c) * FNV64_PRIME;
            pair = (pair ^ c) * FNV64_PRIME;
            inside = true;
        } else if (inside) {
            add_term(word, n, ret);
            if (paired)
                add_term(pair, n, ret);
            pair = (word ^ ' ') * FNV64_PRIME;
            word = FNV64_BASIS;
            inside = false;
            paired = true;
        }
    }
    double squares = 0;
    for (size_t k = 0; k < n; k++)
        squares += (double)ret[k] * (double)ret[k];
    double norm = sqrt(squares);
    for (size_t k = 0; norm > 0 && k < n; k++)
        ret[k] = (float)((double)ret[k] / norm);
}
