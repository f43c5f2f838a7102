/* libpq behind the few calls that the store needs. Only this file knows SQLSTATEs.
 *
 * A statement is prepared on a connection when it is first used there, and found again by its
 * address. Arguments and rows travel as text, except for bytea: text of numbers is exact in both
 * directions and is readable in the database's log. An error of libpq becomes a status by its
 * SQLSTATE. The table also says whether the connection is broken and whether the transaction may
 * run again. */
#include "scheduler/store/pg_priv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

/* The arguments in the form that libpq takes. */
struct wire_args {
    const char *v[ARGS_MAX];
    int len[ARGS_MAX], format[ARGS_MAX];
    char num[ARGS_MAX][32]; /* the text of numbers */
};

/* ARGS() makes no list longer than ARGS_MAX. */
static void wire_format(const struct args *a, struct wire_args *ret)
{
    for (int i = 0; i < a->n; i++) {
        const struct arg *x = &a->v[i];
        ret->v[i] = x->kind == ARG_TEXT || x->kind == ARG_BYTES ? x->p : ret->num[i];
        ret->len[i] = x->kind == ARG_BYTES ? (int)x->len : 0;
        ret->format[i] = x->kind == ARG_BYTES;
        if (x->kind == ARG_I64)
            snprintf(ret->num[i], sizeof ret->num[i], "%" PRId64, x->i64);
        else if (x->kind == ARG_F64)
            ret->v[i] = as_format_double(x->f64, ret->num[i], sizeof ret->num[i]);
    }
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

/* Errors. */

struct sqlstate_row {
    const char *prefix; /* of the five characters of an SQLSTATE */
    as_status status;
    bool broken, retry;
};

#define SQLSTATE_DISK_FULL "53100"

/* The first match counts. */
static const struct sqlstate_row sqlstates[] = {
    {"40001", AS_E_UNAVAILABLE, false, true},  /* serialization_failure */
    {"40P01", AS_E_UNAVAILABLE, false, true},  /* deadlock_detected */
    {"55P03", AS_E_UNAVAILABLE, false, false}, /* lock_not_available: lock_timeout */
    {"57014", AS_E_UNAVAILABLE, false, false}, /* query_canceled: statement_timeout */
    {"57P", AS_E_UNAVAILABLE, true, false},    /* shut down, crashed, cannot connect now */
    {"08", AS_E_UNAVAILABLE, true, false},     /* connection exceptions */
    {"25006", AS_E_UNAVAILABLE, true, false},  /* read_only_sql_transaction: a standby */
    {"25P03", AS_E_UNAVAILABLE, true, false},  /* idle_in_transaction_session_timeout */
    {"53", AS_E_UNAVAILABLE, false, false},    /* disk full, too many connections */
    {"58", AS_E_UNAVAILABLE, true, false},     /* the server's files */
    {"23505", AS_E_CONFLICT, false, false},    /* unique_violation */
    {"23503", AS_E_NOT_FOUND, false, false},   /* foreign_key_violation */
    {"22", AS_E_INVAL, false, false},          /* data exceptions */
    {"", AS_E_INTERNAL, false, false},
};

/* The server's message on one line. */
static void one_line(const char *s, char *ret, size_t size)
{
    size_t n = 0;
    for (; *s && n + 1 < size; s++)
        ret[n++] = *s == '\n' || *s == '\t' ? ' ' : *s;
    while (n > 0 && ret[n - 1] == ' ')
        n--;
    ret[n] = '\0';
}

static as_status conn_failed(struct conn *c, const PGresult *res, const char *what,
                             struct as_err *err)
{
    char words[300];
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    if (PQstatus(c->pg) == CONNECTION_BAD || !state) {
        c->broken = true;
        one_line(PQerrorMessage(c->pg), words, sizeof words);
        return as_fail(err, AS_E_UNAVAILABLE, "the database connection was lost: %s", words);
    }
    const struct sqlstate_row *row = sqlstates;
    while (strncmp(row->prefix, state, strlen(row->prefix)) != 0)
        row++;
    c->broken = c->broken || row->broken;
    c->retry = row->retry;
    c->disk_full = as_streq(state, SQLSTATE_DISK_FULL);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    one_line(text ? text : "no message", words, sizeof words);
    return as_fail(err, row->status, "%sdatabase, %s: %s (SQLSTATE %s)",
                   c->disk_full ? "the database's disk is full: " : "", what, words, state);
}

/* Statements. */

void result_done(struct result *r)
{
    PQclear(r->pg);
    r->pg = NULL;
}

/* The entry of a statement in `ready`. The table is never full (CONN_STMTS). */
static const struct stmt **conn_slot(struct conn *c, const struct stmt *s)
{
    size_t i = ((uintptr_t)s >> 4) * 0x9e3779b1u % CONN_STMTS;
    while (c->ready[i] && c->ready[i] != s)
        i = (i + 1) % CONN_STMTS;
    return &c->ready[i];
}

static as_status conn_prepare(struct conn *c, const struct stmt *s, struct as_err *err)
{
    const struct stmt **slot = conn_slot(c, s);
    if (*slot)
        return AS_OK;
    PGresult *res = PQprepare(c->pg, s->name, s->sql, 0, NULL);
    as_status st = AS_OK;
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        st = conn_failed(c, res, s->name, err);
    else
        *slot = s;
    PQclear(res);
    return st;
}

static as_status run_statement(struct tx *t, const struct stmt *s, const struct args *a, int binary,
                               struct result *ret, struct as_err *err)
{
    static const struct args none;
    struct conn *c = t->conn;
    as_status st = conn_prepare(c, s, err);
    if (st != AS_OK)
        return st;
    if (!a)
        a = &none;
    struct wire_args w;
    wire_format(a, &w);
    PGresult *res = PQexecPrepared(c->pg, s->name, a->n, w.v, w.len, w.format, binary);
    ExecStatusType got = PQresultStatus(res);
    if (got != PGRES_TUPLES_OK && got != PGRES_COMMAND_OK) {
        st = conn_failed(c, res, s->name, err);
        PQclear(res);
        return st;
    }
    int64_t affected = 0;
    if (*PQcmdTuples(res) && as_parse_i64(PQcmdTuples(res), &affected, NULL) != AS_OK)
        affected = 0;
    *ret = (struct result){.pg = res, .rows = PQntuples(res), .affected = (int)affected};
    return AS_OK;
}

as_status tx_query(struct tx *t, const struct stmt *s, const struct args *a, struct result *ret,
                   struct as_err *err)
{
    return run_statement(t, s, a, 0, ret, err);
}

as_status tx_query_binary(struct tx *t, const struct stmt *s, const struct args *a,
                          struct result *ret, struct as_err *err)
{
    return run_statement(t, s, a, 1, ret, err);
}

as_status tx_exec(struct tx *t, const struct stmt *s, const struct args *a, int *ret_affected,
                  struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st = run_statement(t, s, a, 0, &r, err);
    if (st == AS_OK && ret_affected)
        *ret_affected = r.affected;
    return st;
}

as_status conn_exec(struct conn *c, const char *sql, struct as_err *err)
{
    PGresult *res = PQexec(c->pg, sql);
    ExecStatusType got = PQresultStatus(res);
    as_status st = AS_OK;
    if (got != PGRES_COMMAND_OK && got != PGRES_TUPLES_OK)
        st = conn_failed(c, res, "command", err);
    PQclear(res);
    return st;
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

/* Connections. */

static void drop_notice(void *arg, const PGresult *res)
{
    (void)arg;
    (void)res; /* notices are for people at a terminal; errors come with the result */
}

/* Does the server keep what it acknowledges? Not with fsync off. */
static as_status conn_suits(struct conn *c, struct as_err *err)
{
    if (PQserverVersion(c->pg) < 140000)
        return as_fail(err, AS_E_UNSUPPORTED, "PostgreSQL %d is too old, 14 or later is needed",
                       PQserverVersion(c->pg) / 10000);
    PGresult *res = PQexec(c->pg, "select current_setting('fsync')");
    as_status st = AS_OK;
    const char *allow = getenv("ASSAY_ALLOW_FSYNC_OFF");
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        st = conn_failed(c, res, "settings", err);
    else if (strcmp(PQgetvalue(res, 0, 0), "on") != 0 && !as_streq(allow, "1"))
        st = as_fail(err, AS_E_CONFLICT,
                     "the database runs with fsync=off and may lose what was acknowledged; turn it "
                     "on, or set ASSAY_ALLOW_FSYNC_OFF=1");
    PQclear(res);
    return st;
}

as_status conn_open(const char *info, const char *app, const char *options, struct conn **ret,
                    struct as_err *err)
{
    static const char *const keys[] = {"dbname",
                                       "application_name",
                                       "connect_timeout",
                                       "keepalives_idle",
                                       "keepalives_interval",
                                       "keepalives_count",
                                       "tcp_user_timeout",
                                       "client_encoding",
                                       "options",
                                       NULL};
    static const char session_options[] =
        "-c statement_timeout=15s -c idle_in_transaction_session_timeout=30s -c lock_timeout=5s "
        "-c timezone=UTC -c extra_float_digits=1 -c datestyle=ISO "
        "-c default_transaction_isolation=read\\ committed";
    AS_AUTO(str_done) struct str all = {0};
    AS_AUTO(conn_closep) struct conn *c = as_calloc(1, sizeof *c);
    str_printf(&all, "%s%s", session_options, options);
    if (!c || all.failed)
        return as_fail_nomem(err);
    const char *const values[] = {info, app, "5", "10", "5", "3", "15000", "UTF8", all.s, NULL};
    c->pg = PQconnectdbParams(keys, values, 1);
    if (PQstatus(c->pg) != CONNECTION_OK) {
        char words[300];
        one_line(c->pg ? PQerrorMessage(c->pg) : "out of memory", words, sizeof words);
        return as_fail(err, AS_E_UNAVAILABLE, "cannot reach the database: %s", words);
    }
    PQsetNoticeReceiver(c->pg, drop_notice, NULL);
    as_status st = conn_suits(c, err);
    if (st == AS_OK)
        *ret = as_steal(c);
    return st;
}

void conn_close(struct conn *c)
{
    if (!c)
        return;
    PQfinish(c->pg);
    free(c);
}
