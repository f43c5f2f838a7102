#include "cli/files/line_copy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/temp_file.h"

#define BYTES ((size_t)1 << 16)

as_status line_copy_open(struct line_copy *c, const char *path, struct as_err *err)
{
    *c = (struct line_copy){.bytes = as_calloc(BYTES, 1)};
    return c->bytes ? source_open(path, true, &c->in, err) : as_fail_nomem(err);
}

void line_copy_done(struct line_copy *c)
{
    source_free(c->in);
    free(c->bytes);
    *c = (struct line_copy){0};
}

/* Copy what there is of a line, of several pieces if it is long. */
static as_status copy_piece(struct line_copy *c, FILE *const *out, size_t n, struct as_err *err)
{
    const char *from = c->bytes + c->at, *stop = memchr(from, '\n', c->end - c->at);
    size_t len = stop ? (size_t)(stop - from) + 1 : c->end - c->at;
    for (size_t i = 0; i < n; i++)
        if (fwrite(from, 1, len, out[i]) != len)
            return temp_file_fail(err);
    c->at += len;
    c->line_no += stop != NULL;
    return AS_OK;
}

as_status line_copy_until(struct line_copy *c, size_t end, FILE *const *out, size_t n,
                          struct as_err *err)
{
    as_status st = AS_OK;
    while (st == AS_OK && (end == 0 || c->line_no + 1 < end)) {
        if (c->at == c->end) {
            c->at = 0;
            st = source_read(c->in, c->bytes, BYTES, &c->end, err);
            if (st != AS_OK || c->end == 0)
                break;
        }
        st = copy_piece(c, out, n, err);
    }
    return st;
}

FILE *line_copy_stream(int fd)
{
    int own = dup(fd);
    FILE *f = own < 0 ? NULL : fdopen(own, "w");
    if (!f && own >= 0)
        (void)close(own);
    return f;
}
