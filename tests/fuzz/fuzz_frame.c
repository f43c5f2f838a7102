/* What a rank reads from a peer: the head of a frame or of a message, a hello, an endpoint. What is
 * accepted is written again as it was. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/collective/frame.h"
#include "trial-runner/collective/handshake.h"
#include "trial-runner/collective/mail_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_frame(const uint8_t *data)
{
    struct as_err err;
    struct frame f;
    uint8_t again[FRAME_HEAD_BYTES];
    if (frame_decode(data, &f, &err) < 0)
        return;
    frame_encode(&f, again);
    if (memcmp(again, data, sizeof again) != 0)
        abort();
}

static void try_mail(const uint8_t *data)
{
    struct as_err err;
    struct mail_head h;
    uint8_t again[MAIL_HEAD_BYTES];
    if (mail_head_decode(data, 1000, &h, &err) < 0)
        return;
    mail_head_encode(&h, again);
    if (h.n > 1000 || (h.type == MAIL_ANSWER && h.kind > 0) ||
        memcmp(again, data, sizeof again) != 0)
        abort();
}

static void try_hello(const uint8_t *data)
{
    struct as_err err;
    struct world w = {.attempt = 9, .epoch = 2, .rank = 1, .n = 4};
    int32_t from = -1;
    if (hello_decode(&w, data, &from, &err) == AS_OK && (from < 0 || from >= w.n || from == w.rank))
        abort();
}

static void try_endpoint(const uint8_t *data, size_t size)
{
    struct as_err err;
    struct endpoint e;
    char buf[ENDPOINT_TEXT_MAX];
    char *text = malloc(size + 1);
    if (!text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    struct endpoint again;
    if (endpoint_parse(text, &e, &err) == AS_OK &&
        (endpoint_parse(endpoint_format(&e, buf), &again, &err) < 0 ||
         memcmp(&e, &again, sizeof e) != 0))
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= FRAME_HEAD_BYTES)
        try_frame(data);
    if (size >= MAIL_HEAD_BYTES)
        try_mail(data);
    if (size >= HELLO_BYTES)
        try_hello(data);
    try_endpoint(data, size);
    return 0;
}
