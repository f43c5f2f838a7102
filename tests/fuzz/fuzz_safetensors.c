/* safetensors files: every byte of every tensor that a file yields may be read. */
#include <stdlib.h>
#include <string.h>

#include "data/formats/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err;
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    char *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    if (safetensors_parse(bytes, size, &s, &err) < 0)
        return 0;
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < safetensors_count(s); i++) {
        const struct safetensors_tensor *t = safetensors_at(s, i);
        for (size_t k = 0; k < t->size_bytes; k++)
            sum = (unsigned char)(sum + ((const unsigned char *)t->data)[k]);
        if (!safetensors_get(s, t->name))
            abort();
    }
    return 0;
}
