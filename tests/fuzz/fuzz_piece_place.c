/* Where pieces are kept, as people write it: the bucket in the first line, the endpoint in the
 * second. What is accepted needs no escaping in a URL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/content/piece_kinds_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hold(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(str_done) struct str text = {0};
    struct as_err err = {0};
    void *place = NULL;
    (void)setenv("AWS_REGION", "eu-central-1", 0);
    (void)setenv("AWS_ACCESS_KEY_ID", "key", 0);
    (void)setenv("AWS_SECRET_ACCESS_KEY", "secret", 0);
    str_puts(&text, "s3://"); /* what makes it a bucket */
    str_add(&text, (const char *)data, size);
    if (!text.s || strlen(text.s) != text.len)
        return 0;
    char *endpoint = strchr(text.s, '\n');
    if (endpoint)
        *endpoint++ = '\0';
    const struct piece_place where = {.where = text.s, .endpoint = endpoint};
    if (s3_open(&where, &place, &err) < 0) {
        hold(err.msg[0]);
        return 0;
    }
    hold(!strpbrk(text.s, " ?#%\\\"<>") && !strstr(text.s, "/../") &&
         !strchr(text.s + strlen("s3://"), ':'));
    hold(!endpoint || !strpbrk(endpoint, "@?# "));
    s3_ops.close(place);
    return 0;
}
