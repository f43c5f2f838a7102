/* The parser of server-sent events: any bytes, in any pieces, give the same events. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/client/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_event(void *arg, const char *id, const char *type, const char *text, size_t len)
{
    uint64_t *digest = arg;
    assert(strlen(id) < SSE_ID_MAX && *type && strlen(type) < SSE_ID_MAX && text[len] == '\0');
    *digest = *digest * 31 + len + strlen(id) + (uint64_t)(unsigned char)text[0];
    return true;
}

static uint64_t read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct sse s = {0};
    uint64_t digest = 1;
    bool stop = false;
    as_status st = AS_OK;
    for (size_t at = 0; st == AS_OK && at < size; at += piece) {
        size_t left = size - at;
        st = sse_feed(&s, (const char *)data + at, left < piece ? left : piece, on_event, &digest,
                      &stop, NULL);
        assert(!stop);
    }
    sse_done(&s);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t whole = read_all(data, size, size ? size : 1), bytes = read_all(data, size, 1);
    assert(whole == bytes);
    return 0;
}
