/* The file of a decoded copy, for who reads it and who writes it. Private to this folder. */
#ifndef ASSAY_DATA_DATASET_DECODED_PRIV_H
#define ASSAY_DATA_DATASET_DECODED_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "data/dataset.h"

#define DECODED_MAGIC "assay-decoded-1"
#define DECODED_PIECE ((size_t)1 << 18) /* bytes; a multiple of 32: see decoded_sum_add() */

struct decoded_header {
    char magic[16];
    char info[SHA256_HEX_SIZE]; /* digest of dataset_info as JSON */
    char x_is_bytes;
    char unused[6];
    uint64_t size; /* bytes behind the header */
    uint64_t checksum;
};

/* Four lanes of multiply and rotate (the constants are odd, from xxHash64). It finds damage by
 * disks and crashes; it is no protection against forgery. */
struct decoded_sum {
    uint64_t lane[4];
};
#define DECODED_SUM_START ((struct decoded_sum){{1, 2, 3, 4}})

/* A part is added in pieces of DECODED_PIECE bytes, the last of which may be shorter. */
void decoded_sum_add(struct decoded_sum *s, const void *bytes, size_t len);
uint64_t decoded_sum_end(const struct decoded_sum *s);

typedef enum decoded_coding { SAME_BYTES, BYTES_OF_FLOATS, WORDS_OF_TOKENS } decoded_coding;

/* An array of the data set, and how the file stores it. */
struct decoded_part {
    void *array;
    size_t n, kept_size; /* number of values; bytes of one value in the file */
    decoded_coding coding;
};

#define DECODED_PARTS 4 /* x, labels, targets, tokens; one behind another, without gaps */

/* Which arrays there are is taken from d. */
void decoded_parts_of(const struct dataset *d, bool x_is_bytes,
                      struct decoded_part ret[DECODED_PARTS]);
uint64_t decoded_size_of(const struct decoded_part parts[DECODED_PARTS]);

AS_MUST_CHECK as_status decoded_info_digest(const struct dataset_info *info,
                                            char ret[SHA256_HEX_SIZE]);

/* Is it the header of a copy of this data set, in a file of `size` bytes? */
bool decoded_is_header(const struct decoded_header *h, const struct dataset_info *info,
                       uint64_t size);

#endif
