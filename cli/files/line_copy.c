#include "cli/files/line_copy.h"

#include <stdlib.h>
#include <unistd.h>

as_status line_copy_open(struct line_copy *c, const char *path, const char *purpose,
                         struct as_err *err)
{
    unsigned char magic[2] = {0};
    *c = (struct line_copy){.path = path, .in = fopen(path, "re")};
    if (!c->in)
        return as_fail(err, AS_E_IO, "%.200s cannot be read", path);
    if (fread(magic, 1, 2, c->in) == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        return as_fail(err, AS_E_UNSUPPORTED, "%.200s is packed with gzip: unpack it, %s", path,
                       purpose);
    rewind(c->in);
    return AS_OK;
}

void line_copy_done(struct line_copy *c)
{
    if (c->in)
        (void)fclose(c->in);
    free(c->line);
    *c = (struct line_copy){0};
}

as_status line_copy_until(struct line_copy *c, size_t end, FILE *const *out, size_t n,
                          struct as_err *err)
{
    while (end == 0 || c->line_no + 1 < end) {
        ssize_t len = getline(&c->line, &c->cap, c->in);
        if (len < 0)
            break;
        c->line_no++;
        for (size_t i = 0; i < n; i++)
            if (fwrite(c->line, 1, (size_t)len, out[i]) != (size_t)len)
                return as_fail(err, AS_E_IO, "a temporary file cannot be written");
    }
    return ferror(c->in) ? as_fail(err, AS_E_IO, "%.200s cannot be read", c->path) : AS_OK;
}

FILE *line_copy_stream(int fd)
{
    int own = dup(fd);
    FILE *f = own < 0 ? NULL : fdopen(own, "w");
    if (!f && own >= 0)
        (void)close(own);
    return f;
}
