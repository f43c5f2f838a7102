/* What the environment and assay-train say about GPUs: whatever they say, every id is named once
 * and is one of those that the driver lists. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trial-runner/process/gpus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_once(const struct gpu_list *l)
{
    assert(l->n <= GPUS_MAX);
    for (size_t i = 0; i < l->n; i++) {
        assert(l->v[i].id[0] && l->v[i].memory_bytes >= 0);
        for (size_t k = 0; k < i; k++)
            assert(strcmp(l->v[i].id, l->v[k].id) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct nvml_device devices[] = {
        {.id = "GPU-aa", .is_divided = true},
        {.id = "MIG-x", .is_part = true, .memory_bytes = 1},
        {.id = ""},
        {.id = "GPU-ab", .memory_bytes = 2},
    };
    const struct nvml_devices all = {.v = devices, .n = AS_ARRAY_LEN(devices)};
    AS_AUTO(as_freep) char *text = malloc(size + 1);
    AS_AUTO(as_freep) struct gpu_list *chosen = calloc(1, sizeof *chosen);
    AS_AUTO(as_freep) struct gpu_list *parsed = calloc(1, sizeof *parsed);
    if (!text || !chosen || !parsed)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    as_status st = gpus_select(&all, text, chosen, NULL);
    assert(st == AS_OK && chosen->n <= 2);
    check_once(chosen);
    st = gpus_parse(text, parsed, NULL);
    assert(st == AS_OK || st == AS_E_TOO_LARGE);
    check_once(parsed);
    (void)gpus_order_is_unclear(&all, text, NULL);
    return 0;
}
