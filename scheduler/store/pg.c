/* Arguments of statements, and the rows of their results, as text: text of numbers is exact in both
 * directions and is readable in the database's log. bytea travels in binary. */
#include "scheduler/store/pg_priv.h"

#include <stdlib.h>
#include <string.h>

/* Arguments. */

struct arg arg_str(const char *s)
{
    return (struct arg){.kind = ARG_TEXT, .p = s};
}

struct arg arg_i64(int64_t v)
{
    return (struct arg){.kind = ARG_I64, .i64 = v};
}

struct arg arg_i64_or_null(bool has, int64_t v)
{
    return has ? arg_i64(v) : arg_str(NULL);
}

struct arg arg_f64(double v)
{
    return (struct arg){.kind = ARG_F64, .f64 = v};
}

struct arg arg_f64_or_null(bool has, double v)
{
    return has ? arg_f64(v) : arg_str(NULL);
}

struct arg arg_bool(bool v)
{
    return arg_str(v ? "t" : "f");
}

struct arg arg_bytes(const void *bytes, size_t len)
{
    return (struct arg){.kind = ARG_BYTES, .p = bytes, .len = len};
}

static void array_comma(struct str *b)
{
    if (b->len > 1)
        str_putc(b, ',');
}

void array_open(struct str *b)
{
    str_clear(b);
    str_putc(b, '{');
}

void array_str(struct str *b, const char *s)
{
    array_comma(b);
    if (!s) {
        str_puts(b, "NULL");
        return;
    }
    str_putc(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            str_putc(b, '\\');
        str_putc(b, *s);
    }
    str_putc(b, '"');
}

void array_i64(struct str *b, int64_t v)
{
    array_comma(b);
    str_i64(b, v);
}

void array_i64_or_null(struct str *b, bool has, int64_t v)
{
    if (has)
        array_i64(b, v);
    else
        array_str(b, NULL);
}

void array_f64(struct str *b, double v)
{
    char buf[32];
    array_comma(b);
    str_puts(b, as_format_double(v, buf, sizeof buf));
}

void array_f64_or_null(struct str *b, bool has, double v)
{
    if (has)
        array_f64(b, v);
    else
        array_str(b, NULL);
}

void array_close(struct str *b)
{
    str_putc(b, '}');
}

void arrays_open(struct arrays *x)
{
    for (size_t i = 0; i < ARRAYS_MAX; i++)
        array_open(&x->c[i]);
}

as_status arrays_close(struct arrays *x, struct as_err *err)
{
    bool failed = false;
    for (size_t i = 0; i < ARRAYS_MAX; i++) {
        array_close(&x->c[i]);
        failed |= x->c[i].failed;
    }
    return failed ? as_fail_nomem(err) : AS_OK;
}

void arrays_done(struct arrays *x)
{
    for (size_t i = 0; i < ARRAYS_MAX; i++)
        str_done(&x->c[i]);
}

struct arg arg_array(const struct arrays *x, size_t i)
{
    return arg_str(str_cstr(&x->c[i]));
}

/* Rows. */

void reader_init(struct reader *rd, const struct result *r, int row, struct arena *a)
{
    *rd = (struct reader){.r = r, .a = a, .row = row};
}

bool read_null(struct reader *rd)
{
    return PQgetisnull(rd->r->pg, rd->row, rd->col) != 0;
}

const char *read_view(struct reader *rd)
{
    return PQgetvalue(rd->r->pg, rd->row, rd->col++);
}

size_t word_place(const char *const *words, const char *word)
{
    size_t place = 0;
    while (words[place] && !as_streq(words[place], word))
        place++;
    return place;
}

const char *read_str(struct reader *rd)
{
    bool null = read_null(rd);
    const char *v = read_view(rd);
    char *copy = null ? NULL : arena_strdup(rd->a, v);
    rd->failed = rd->failed || (!null && !copy);
    return copy;
}

int64_t read_i64(struct reader *rd)
{
    return strtoll(read_view(rd), NULL, 10);
}

double read_f64(struct reader *rd)
{
    return strtod(read_view(rd),
                  NULL); /* also "NaN" and "Infinity"; the server writes text that reads back
                            exactly */
}

bool read_bool(struct reader *rd)
{
    return *read_view(rd) == 't';
}

as_status reader_check(const struct reader *rd, struct as_err *err)
{
    if (rd->unknown)
        return as_fail(err, AS_E_INTERNAL, "the database holds '%.40s', which is unknown here",
                       rd->unknown);
    return rd->failed ? as_fail_nomem(err) : AS_OK;
}

int64_t result_i64(const struct result *r, int row, int col)
{
    return strtoll(PQgetvalue(r->pg, row, col), NULL, 10);
}
