/* A message of each codec, from a peer: refused, or decoded into its slice and nothing else. The
 * first byte says which codec, tensors and slice; then come the blocks. A message is tried as it is
 * (the checksum in it), and with the checksum that a peer who means harm would send. */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "trial-runner/distributed/gradient_codec_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct codec_tensor layers[] = {{9, 7}, {1, 9}, {0, 3}, {3, 700}, {1, 1}};
static const struct codec_tensor vector[] = {{1, 70}};

static struct codec *codec_of(uint8_t which)
{
    static const char *const names[] = {"fp16", "one_bit", "top_k"};
    struct codec_opts opts = {.name = names[which % 3], .fraction = 0.1};
    bool many = which & 4;
    struct codec *c = NULL;
    if (codec_create(&opts, many ? layers : vector, many ? AS_ARRAY_LEN(layers) : 1, &c, NULL) < 0)
        abort();
    return c;
}

static void try_message(struct codec *c, struct codec_slice slice, uint8_t *message, size_t size)
{
    struct codec_extent at = codec_extent(c, slice);
    float *sum = calloc(at.n_values + 1, sizeof *sum);
    if (!sum)
        return;
    as_status st = codec_decode_add(c, slice, message, size, sum, NULL);
    if (st != AS_OK && st != AS_E_INVAL)
        abort();
    for (size_t i = 0; st < 0 && i < at.n_values; i++)
        if (sum[i] != 0)
            abort();
    free(sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + CODEC_HEAD_BYTES)
        return 0;
    struct codec *c = codec_of(data[0]);
    struct codec_slice slice = {.index = data[0] >> 4 & 1, .count = 1 + (data[0] >> 4 & 1)};
    size_t room = codec_extent(c, slice).bytes, n = size - 1;
    uint8_t *message = calloc(room > n ? room : n, 1);
    if (message) {
        memcpy(message, data + 1, n);
        try_message(c, slice, message, n);
        /* Too short or too long for this codec: cut, or filled up with zeros. */
        uint32_t crc =
            crc32c(codec_seed(c, slice), message + CODEC_HEAD_BYTES, room - CODEC_HEAD_BYTES);
        memcpy(message, &crc, sizeof crc);
        try_message(c, slice, message, room);
    }
    free(message);
    codec_free(c);
    return 0;
}
