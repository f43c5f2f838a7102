/* Cuts a CSV stream into blocks of whole records.
 *
 * A line end is the end of a record if the number of quotes before it is even: a quoted cell may
 * contain line ends, and a doubled quote closes and opens again. That is also how csv.c finds
 * records. Quotes in comments do not count. Most tables have no quotes, and then the last line end
 * of the bytes is searched from behind. What follows it is kept for the next block. */
#include "data/formats/csv_blocks.h"

#include <string.h>

struct csv_blocks {
    struct source *source; /* owned */
    struct csv_block rest; /* read, and not given away yet */
    char comment;          /* csv_dialect */
    size_t line;
    bool started, eof;
};

void csv_block_done(struct csv_block *b)
{
    free(b->bytes);
    *b = (struct csv_block){0};
}

void csv_blocks_free(struct csv_blocks *b)
{
    if (!b)
        return;
    source_free(b->source);
    csv_block_done(&b->rest);
    free(b);
}

as_status csv_blocks_open(struct source *source, char comment, struct csv_blocks **ret,
                          struct as_err *err)
{
    struct csv_blocks *b = as_calloc(1, sizeof *b);
    if (!b) {
        source_free(source);
        return as_fail_nomem(err);
    }
    *b = (struct csv_blocks){.source = source, .comment = comment, .line = 1};
    *ret = b;
    return AS_OK;
}

static as_status reserve(struct csv_block *b, size_t len, struct as_err *err)
{
    if (len + 1 <= b->cap)
        return AS_OK;
    as_status st = as_grow(&b->bytes, len + 1, 1, err);
    if (st == AS_OK)
        b->cap = len + 1;
    return st;
}

/* The length of the whole records in the first `len` bytes; 0: not even one. */
static size_t whole_records(const char *bytes, size_t len, char comment)
{
    const char *end = bytes + len, *last = NULL;
    if (!memchr(bytes, '"', len)) {
        last = memrchr(bytes, '\n', len);
        return last ? (size_t)(last - bytes) + 1 : 0;
    }
    bool quoted = false;
    for (const char *p = bytes; p < end; p++) {
        if (comment && !quoted && *p == comment && (p == bytes || p[-1] == '\n')) {
            p = memchr(p, '\n', (size_t)(end - p));
            if (!p)
                break;
        }
        if (*p == '"')
            quoted = !quoted;
        else if (*p == '\n' && !quoted)
            last = p;
    }
    return last ? (size_t)(last - bytes) + 1 : 0;
}

static size_t count_lines(const char *bytes, size_t len)
{
    size_t n = 0;
    const char *end = bytes + len;
    for (const char *p = bytes; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        n++;
    return n;
}

/* Read behind ret->bytes[len]; sets b->eof. */
static as_status read_more(struct csv_blocks *b, struct csv_block *ret, struct as_err *err)
{
    size_t got = 0, want = ret->len < CSV_BLOCK ? CSV_BLOCK - ret->len : ret->len;
    if (ret->len > CSV_MAX_RECORD)
        return as_fail(err, AS_E_TOO_LARGE, "line %zu: a record is longer than %zu bytes", b->line,
                       CSV_MAX_RECORD);
    as_status st = reserve(ret, ret->len + want, err);
    if (st == AS_OK)
        st = source_read(b->source, ret->bytes + ret->len, want, &got, err);
    if (st != AS_OK)
        return st;
    ret->len += got;
    b->eof = got < want;
    return AS_OK;
}

static void drop_mark(struct csv_blocks *b, struct csv_block *ret)
{
    if (!b->started && ret->len >= 3 && memcmp(ret->bytes, "\xef\xbb\xbf", 3) == 0) {
        ret->len -= 3;
        memmove(ret->bytes, ret->bytes + 3, ret->len);
    }
    b->started = true;
}

/* Keep what follows the first n bytes for the next block. */
static as_status keep_rest(struct csv_blocks *b, struct csv_block *ret, size_t n,
                           struct as_err *err)
{
    as_status st = reserve(&b->rest, ret->len - n, err);
    if (st != AS_OK)
        return st;
    b->rest.len = ret->len - n;
    memcpy(b->rest.bytes, ret->bytes + n, b->rest.len);
    ret->len = n;
    return AS_OK;
}

as_status csv_blocks_next(struct csv_blocks *b, struct csv_block *ret, struct as_err *err)
{
    size_t whole = 0;
    as_status st = reserve(ret, b->rest.len > CSV_BLOCK ? b->rest.len : CSV_BLOCK, err);
    if (st != AS_OK)
        return st;
    if (b->rest.len)
        memcpy(ret->bytes, b->rest.bytes, b->rest.len);
    ret->len = b->rest.len;
    b->rest.len = 0;
    while (!b->eof && whole == 0) {
        st = read_more(b, ret, err);
        if (st != AS_OK)
            return st;
        drop_mark(b, ret);
        whole = whole_records(ret->bytes, ret->len, b->comment);
    }
    if (ret->len == 0)
        return AS_E_EXHAUSTED;
    st = keep_rest(b, ret, b->eof ? ret->len : whole, err);
    if (st != AS_OK)
        return st;
    ret->line = b->line;
    b->line += count_lines(ret->bytes, ret->len);
    return AS_OK;
}
