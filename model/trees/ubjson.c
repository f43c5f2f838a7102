/* A recursive reader. The lists of numbers of a booster are most of its bytes: they stay where they
 * are, and ubjson_number() decodes one when it is asked for. The bytes may be hostile: every length
 * is compared with what is left, and the depth is limited. */
#include "model/trees/ubjson.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

struct reader {
    struct arena *memory;
    const unsigned char *bytes;
    size_t len, at;
    as_status st;
    struct as_err *err;
};

static void fail(struct reader *r, const char *why)
{
    if (r->st == AS_OK)
        r->st = as_fail(r->err, AS_E_INVAL, "no UBJSON: %s at byte %zu", why, r->at);
}

static void *allocate(struct reader *r, size_t n, size_t size)
{
    void *p = r->st == AS_OK ? arena_alloc(r->memory, n ? n : 1, size) : NULL;
    if (!p && r->st == AS_OK)
        r->st = as_fail_nomem(r->err);
    return p;
}

/* The next byte, 0 at the end. */
static char peek(struct reader *r)
{
    return r->at < r->len ? (char)r->bytes[r->at] : 0;
}

/* The next n bytes; NULL if there are fewer. */
static const unsigned char *take(struct reader *r, size_t n)
{
    if (n > r->len - r->at)
        fail(r, "it is cut short");
    if (r->st != AS_OK)
        return NULL;
    r->at += n;
    return r->bytes + r->at - n;
}

/* Bytes of a number of this type; 0: it is none. */
static size_t width_of(char type)
{
    switch (type) {
    case 'i':
    case 'U':
        return 1;
    case 'I':
        return 2;
    case 'l':
    case 'd':
        return 4;
    case 'L':
    case 'D':
        return 8;
    default:
        return 0;
    }
}

static double decode(char type, const unsigned char *p)
{
    uint64_t bits = 0;
    uint32_t low;
    float f;
    double d;
    for (size_t i = 0; i < width_of(type); i++)
        bits = bits << 8 | p[i];
    low = (uint32_t)bits;
    switch (type) {
    case 'i':
        return (int8_t)bits;
    case 'U':
        return (uint8_t)bits;
    case 'I':
        return (int16_t)bits;
    case 'l':
        return (int32_t)bits;
    case 'L':
        return (double)(int64_t)bits;
    case 'd':
        memcpy(&f, &low, sizeof f);
        return (double)f;
    default:
        memcpy(&d, &bits, sizeof d);
        return d;
    }
}

static double take_number(struct reader *r, char type)
{
    const unsigned char *p = width_of(type) ? take(r, width_of(type)) : NULL;
    if (!p)
        fail(r, "expected a number");
    return p ? decode(type, p) : 0;
}

/* A length: a whole number with its type before it. */
static size_t take_length(struct reader *r)
{
    const unsigned char *type = take(r, 1);
    double n = type ? take_number(r, (char)*type) : 0;
    if (r->st == AS_OK && !(n >= 0 && n <= (double)r->len))
        fail(r, "a length is not within the file");
    return r->st == AS_OK ? (size_t)n : 0;
}

static const char *take_text(struct reader *r)
{
    size_t n = take_length(r);
    const unsigned char *p = take(r, n);
    char *text = p ? allocate(r, n + 1, 1) : NULL;
    if (text)
        memcpy(text, p, n);
    return text;
}

static struct ubjson take_value(struct reader *r, size_t depth);

/* Items until `end`, or `n` of them if the count is known; of an object with their keys. */
static void take_items(struct reader *r, struct ubjson *v, char end, bool counted, size_t n,
                       size_t depth)
{
    struct ubjson *items = NULL;
    size_t have = 0, cap = 0;
    while (r->st == AS_OK && (counted ? have < n : peek(r) != end)) {
        const char *key = end == '}' ? take_text(r) : NULL;
        struct ubjson item = take_value(r, depth + 1);
        item.key = key;
        if (r->st == AS_OK)
            r->st = as_reserve_one(&items, have, &cap, sizeof *items, r->err);
        if (r->st == AS_OK)
            items[have++] = item;
    }
    if (!counted)
        (void)take(r, 1);
    v->items = allocate(r, have, sizeof *items);
    v->n = have;
    if (v->items && have)
        memcpy(v->items, items, have * sizeof *items);
    free(items);
}

static void take_list(struct reader *r, struct ubjson *v, char end, size_t depth)
{
    bool counted = false;
    size_t n = 0;
    v->kind = end == ']' ? UBJSON_LIST : UBJSON_OBJECT;
    if (end == ']' && peek(r) == '$') {
        const unsigned char *head = take(r, 2); /* $ and the type */
        v->type = head ? (char)head[1] : 0;
        if (peek(r) != '#')
            fail(r, "expected the length of a list of one type");
    }
    if (peek(r) == '#') {
        (void)take(r, 1);
        n = take_length(r);
        counted = true;
    }
    if (!v->type) {
        take_items(r, v, end, counted, n, depth);
        return;
    }
    size_t width = width_of(v->type);
    if (width == 0)
        fail(r, "a list of one type that is no number");
    v->kind = UBJSON_NUMBERS;
    v->n = n;
    v->bytes = width && n <= r->len / width ? take(r, n * width) : NULL;
    if (!v->bytes)
        fail(r, "it is cut short");
}

static struct ubjson take_value(struct reader *r, size_t depth)
{
    struct ubjson v = {0};
    const unsigned char *type = take(r, 1);
    if (depth > UBJSON_MAX_DEPTH)
        fail(r, "values are nested too deeply");
    if (r->st != AS_OK || !type)
        return v;
    switch ((char)*type) {
    case 'Z':
        return v;
    case 'T':
    case 'F':
        return (struct ubjson){.kind = UBJSON_NUMBER, .number = *type == 'T'};
    case 'S':
        return (struct ubjson){.kind = UBJSON_TEXT, .text = take_text(r)};
    case '[':
        take_list(r, &v, ']', depth);
        return v;
    case '{':
        take_list(r, &v, '}', depth);
        return v;
    default:
        return (struct ubjson){.kind = UBJSON_NUMBER, .number = take_number(r, (char)*type)};
    }
}

as_status ubjson_parse(struct arena *memory, const void *bytes, size_t len,
                       const struct ubjson **ret, struct as_err *err)
{
    struct reader r = {.memory = memory, .bytes = bytes, .len = len, .err = err};
    struct ubjson *v = allocate(&r, 1, sizeof *v);
    if (v)
        *v = take_value(&r, 0);
    if (r.st == AS_OK && r.at < len)
        fail(&r, "something follows the value");
    if (r.st != AS_OK)
        return r.st;
    *ret = v;
    return AS_OK;
}

const struct ubjson *ubjson_get(const struct ubjson *v, const char *key)
{
    for (size_t i = 0; v && v->kind == UBJSON_OBJECT && i < v->n; i++)
        if (v->items[i].key && strcmp(v->items[i].key, key) == 0)
            return &v->items[i];
    return NULL;
}

size_t ubjson_count(const struct ubjson *v)
{
    return v && (v->kind == UBJSON_LIST || v->kind == UBJSON_NUMBERS) ? v->n : 0;
}

double ubjson_number(const struct ubjson *v, size_t i)
{
    if (v->kind == UBJSON_NUMBERS)
        return decode(v->type, v->bytes + i * width_of(v->type));
    return v->items[i].kind == UBJSON_NUMBER ? v->items[i].number : (double)NAN;
}
