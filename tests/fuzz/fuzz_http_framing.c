/* The raw bytes of a connection. However they are cut into pieces, the same message is refused at
 * the same place; and what passes has no line that ends in another way than with CRLF. */
#include <stdlib.h>
#include <string.h>

#include "api/http/http_framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Follow all bytes in pieces of this size; returns how many were followed before a problem. */
static size_t follow(const char *bytes, size_t len, size_t piece, struct http_framing *ret)
{
    *ret = (struct http_framing){0};
    for (size_t at = 0; at < len; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        size_t good = http_framing_follow(ret, bytes + at, n);
        if (good > n || (!ret->problem && good != n))
            abort();
        if (ret->problem)
            return at + n;
    }
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct http_framing whole, single, odd;
    (void)follow(bytes, size, size ? size : 1, &whole);
    (void)follow(bytes, size, 1, &single);
    (void)follow(bytes, size, 7, &odd);
    if (whole.problem != single.problem || whole.problem != odd.problem ||
        whole.refusal != single.refusal)
        abort();
    if (!whole.problem && (whole.part != single.part || whole.left != single.left))
        abort();
    /* lines have no NUL and end with CRLF, so that none of these passes as long as the head
     * lasts */
    if (!single.problem && single.part >= HTTP_FRAMING_LINE && single.part <= HTTP_FRAMING_VALUE &&
        single.part_bytes == size && (memchr(bytes, '\0', size) || size > HTTP_HEAD_MAX))
        abort();
    return 0;
}
