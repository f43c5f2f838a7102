/* Runs one fuzz target without libFuzzer: each file of the corpus folders named on the command
 * line, then seeded mutations of it (bit flips, cuts, splices, runs of one byte). Deterministic: a
 * crash prints the seed's file and round, and happens again. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"

#define ROUNDS 400
#define FUZZ_INPUT_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t mutate(struct rng *r, const char *in, size_t len, char *out)
{
    memcpy(out, in, len);
    for (unsigned edits = 1 + (unsigned)rng_below(r, 6); edits && len; edits--) {
        size_t at = (size_t)rng_below(r, len);
        switch (rng_below(r, 5)) {
        case 0:
            out[at] = (char)(out[at] ^ (1 << rng_below(r, 8)));
            break;
        case 1:
            out[at] = (char)rng_below(r, 256);
            break;
        case 2: /* cut the tail */
            len = at;
            break;
        case 3: { /* copy a piece over another */
            size_t from = (size_t)rng_below(r, len), n = (size_t)rng_below(r, 64);
            n = n < len - at ? n : len - at;
            n = n < len - from ? n : len - from;
            memmove(out + at, out + from, n);
            break;
        }
        default: /* repeat a byte, growing */
            for (size_t n = (size_t)rng_below(r, 48); n && len < FUZZ_INPUT_MAX; n--) {
                memmove(out + at + 1, out + at, len - at);
                len++;
            }
        }
    }
    return len;
}

static int run_file(const char *path)
{
    AS_AUTO(as_freep) char *in = NULL;
    AS_AUTO(as_freep) char *out = malloc(FUZZ_INPUT_MAX + 1);
    size_t len;
    struct as_err err;
    if (!out || file_read(path, FUZZ_INPUT_MAX - 1, &in, &len, &err) < 0) {
        (void)fprintf(stderr, "fuzz: %s\n", out ? err.msg : "out of memory");
        return 1;
    }
    (void)LLVMFuzzerTestOneInput((const uint8_t *)in, len);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct rng r;
        rng_init(&r, 1, round);
        size_t n = mutate(&r, in, len, out);
        /* an exact heap copy, so that the sanitizers see one byte too far */
        uint8_t *exact = malloc(n ? n : 1);
        if (!exact)
            return 1;
        memcpy(exact, out, n);
        (void)LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
    return 0;
}

int main(int argc, char **argv)
{
    size_t files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        for (struct dirent *e; dir && (e = readdir(dir));) {
            if (e->d_name[0] == '.')
                continue;
            AS_AUTO(as_freep) char *path = file_join(argv[i], e->d_name);
            if (!path || run_file(path))
                return 1;
            files++;
        }
        if (dir)
            (void)closedir(dir);
    }
    (void)printf("%zu files, %d mutations each\n", files, ROUNDS);
    return files ? 0 : 1; /* an empty corpus tests nothing */
}
