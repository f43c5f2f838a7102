#include "bench/search/traces.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

#define FIELDS 7
#define PEER_MARK "# peer "
#define HEADER "problem,method,slots,seed,trial,regret,ms\n"

void traces_done(struct traces *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->all[i].regret);
        free(t->all[i].ms);
    }
    free(t->all);
    *t = (struct traces){0};
}

const struct trace *traces_find(const struct traces *t, const char *problem, const char *method,
                                size_t slots, uint64_t seed)
{
    const struct trace *best = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace *x = &t->all[i];
        if (x->seed == seed && x->slots == slots && as_streq(x->method, method) &&
            as_streq(x->problem, problem) && (best == NULL || x->n > best->n))
            best = x;
    }
    return best;
}

struct row {
    const char *problem, *method;
    int64_t slots, seed, trial;
    double regret, ms;
};

static as_status read_row(char *line, struct row *ret, struct as_err *err)
{
    char *field[FIELDS];
    size_t n = 0;
    while (n < FIELDS && line != NULL)
        field[n++] = strsep(&line, ",");
    if (n != FIELDS || line != NULL)
        return as_fail(err, AS_E_INVAL, "expected %d fields", FIELDS);
    ret->problem = field[0];
    ret->method = field[1];
    as_status st = as_parse_i64(field[2], &ret->slots, err);
    if (st < 0)
        return st;
    st = as_parse_i64(field[3], &ret->seed, err);
    if (st < 0)
        return st;
    st = as_parse_i64(field[4], &ret->trial, err);
    if (st < 0)
        return st;
    ret->regret = INFINITY;
    if (!as_streq(field[5], "inf"))
        st = as_parse_double(field[5], &ret->regret, err);
    return st < 0 ? st : as_parse_double(field[6], &ret->ms, err);
}

/* Add a row to the last trace, or begin the next one with it. */
static as_status add_row(struct traces *t, const struct row *r, struct as_err *err)
{
    if (r->trial == 1) {
        as_status st = as_reserve_one(&t->all, t->n, &t->cap, sizeof *t->all, err);
        if (st < 0)
            return st;
        struct trace *x = &t->all[t->n++];
        *x = (struct trace){.slots = (size_t)r->slots, .seed = (uint64_t)r->seed};
        (void)snprintf(x->problem, sizeof x->problem, "%s", r->problem);
        (void)snprintf(x->method, sizeof x->method, "%s", r->method);
    }
    struct trace *x = t->n > 0 ? &t->all[t->n - 1] : NULL;
    if (x == NULL || r->trial != (int64_t)x->n + 1 || !as_streq(x->problem, r->problem) ||
        !as_streq(x->method, r->method) || x->seed != (uint64_t)r->seed)
        return as_fail(err, AS_E_INVAL, "trial %" PRId64 " does not follow", r->trial);
    as_status st = as_grow(&x->regret, x->n + 1, sizeof *x->regret, err);
    if (st < 0)
        return st;
    st = as_grow(&x->ms, x->n + 1, sizeof *x->ms, err);
    if (st < 0)
        return st;
    x->regret[x->n] = r->regret;
    x->ms[x->n++] = r->ms;
    return AS_OK;
}

as_status traces_load(struct traces *t, const char *path, struct as_err *err)
{
    AS_AUTO(as_freep) char *line = NULL;
    size_t cap = 0, number = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT ? AS_OK : as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    as_status st = AS_OK;
    for (ssize_t len; st == AS_OK && (len = getline(&line, &cap, f)) > 0;) {
        struct row r;
        line[strcspn(line, "\n")] = '\0';
        number++;
        if (as_starts_with(line, PEER_MARK))
            (void)snprintf(t->peer, sizeof t->peer, "%s", line + strlen(PEER_MARK));
        if (line[0] == '#' || as_starts_with(line, "problem,method,"))
            continue;
        st = read_row(line, &r, err);
        if (st == AS_OK)
            st = add_row(t, &r, err);
        if (st < 0)
            st = as_err_prefix(err, st, "%s:%zu", path, number);
    }
    (void)fclose(f);
    return st;
}

as_status traces_append(const char *path, const struct trace *one, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    AS_AUTO(file_closep) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
    if (lseek(fd, 0, SEEK_END) == 0)
        str_puts(&b, HEADER);
    if (one->peer != NULL)
        str_printf(&b, "%s%s\n", PEER_MARK, one->peer);
    for (size_t i = 0; i < one->n; i++) {
        str_printf(&b, "%s,%s,%zu,%" PRIu64 ",%zu,", one->problem, one->method, one->slots,
                   one->seed, i + 1);
        if (isfinite(one->regret[i]))
            str_printf(&b, "%.9g", one->regret[i]);
        else
            str_puts(&b, "inf");
        str_printf(&b, ",%.4g\n", one->ms[i]);
    }
    as_status st = str_check(&b, err);
    return st == AS_OK ? file_write_all(fd, b.s, b.len, err) : st;
}
