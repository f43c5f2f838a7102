/* A connection: libpq behind the few calls that the store needs. Only this file knows SQLSTATEs.
 *
 * A statement is prepared on a connection when it is first used there, and found again by its
 * address. An error of libpq becomes a status by its SQLSTATE. The table also says whether the
 * connection is broken and whether the transaction may run again. */
#include "scheduler/store/pg_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

/* What PostgreSQL answered to a command that was sent. AS_OK: it ran. */
static as_status check_result(struct conn *c, const PGresult *res, const char *what,
                              struct as_err *err)
{
    ExecStatusType got = PQresultStatus(res);
    return got == PGRES_TUPLES_OK || got == PGRES_COMMAND_OK ? AS_OK
                                                             : conn_failed(c, res, what, err);
}

/* Deferred statements.
 *
 * A batch has many statements of which it needs no rows, or needs them only with those of a later
 * one. They are sent without a wait, in libpq's pipeline mode, and answered in one round trip with
 * the next statement that is waited for. PostgreSQL works on them meanwhile. When one fails, it
 * skips what follows, COMMIT too. */

/* What PostgreSQL answered, taken into *ret. */
static void take_result(PGresult *res, struct result *ret)
{
    int64_t affected = 0;
    if (*PQcmdTuples(res) && as_parse_i64(PQcmdTuples(res), &affected, NULL) != AS_OK)
        affected = 0;
    *ret = (struct result){.pg = res, .rows = PQntuples(res), .affected = (int)affected};
}

/* Read the answers to all that was deferred. The first failure counts. */
static as_status conn_collect(struct conn *c, struct as_err *err)
{
    as_status st = AS_OK;
    if (!PQpipelineSync(c->pg))
        st = conn_failed(c, NULL, "pipeline", err);
    for (int i = 0; i < c->n_deferred && !c->broken; i++) {
        const struct deferred *d = &c->deferred[i];
        PGresult *res = PQgetResult(c->pg);
        if (st == AS_OK)
            st = check_result(c, res, d->name, err);
        if (st == AS_OK && d->want)
            take_result(as_steal(res), d->want);
        PQclear(res);
        for (PGresult *more; !c->broken && (more = PQgetResult(c->pg));)
            PQclear(more);
    }
    c->n_deferred = 0;
    if (!c->broken) {
        PGresult *sync = PQgetResult(c->pg);
        if (PQresultStatus(sync) != PGRES_PIPELINE_SYNC || !PQexitPipelineMode(c->pg))
            st = conn_failed(c, NULL, "pipeline", err);
        PQclear(sync);
    }
    return st;
}

static as_status conn_settle(struct conn *c, struct as_err *err)
{
    return c->n_deferred > 0 ? conn_collect(c, err) : AS_OK;
}

/* Is there room for two more? Begin deferring. */
static as_status defer_begin(struct conn *c, struct as_err *err)
{
    as_status st = c->n_deferred + 2 > CONN_DEFERRED_MAX ? conn_settle(c, err) : AS_OK;
    if (st == AS_OK && c->n_deferred == 0 && !PQenterPipelineMode(c->pg))
        st = conn_failed(c, NULL, "pipeline", err);
    return st;
}

/* `what` was handed to libpq if `ok`: PostgreSQL may begin. */
static as_status deferred(struct conn *c, int ok, const char *what, struct result *want,
                          struct as_err *err)
{
    if (!ok || PQflush(c->pg) < 0)
        return conn_failed(c, NULL, what, err);
    c->deferred[c->n_deferred++] = (struct deferred){what, want};
    return AS_OK;
}

as_status conn_defer(struct conn *c, const char *command, struct as_err *err)
{
    as_status st = defer_begin(c, err);
    if (st != AS_OK)
        return st;
    int ok = PQsendQueryParams(c->pg, command, 0, NULL, NULL, NULL, NULL, 0);
    return deferred(c, ok, command, NULL, err);
}

as_status conn_exec(struct conn *c, const char *sql, struct as_err *err)
{
    as_status st = conn_settle(c, err);
    if (st != AS_OK)
        return st;
    PGresult *res = PQexec(c->pg, sql);
    st = check_result(c, res, "command", err);
    PQclear(res);
    return st;
}

as_status conn_end(struct conn *c, const char *command, struct as_err *err)
{
    if (c->n_deferred == 0)
        return conn_exec(c, command, err);
    as_status st = conn_defer(c, command, err);
    return st == AS_OK ? conn_collect(c, err) : st;
}

void conn_rollback(struct conn *c)
{
    struct as_err ignored;
    for (int i = 0; i < c->n_deferred; i++)
        c->deferred[i].want = NULL; /* whoever wanted it has returned */
    as_status st = conn_settle(c, &ignored);
    if (!c->broken)
        st = conn_exec(c, "rollback", &ignored);
    c->broken = c->broken || st != AS_OK;
}

/* Not deferred: a statement is prepared once for each connection. */
static as_status conn_prepare(struct conn *c, const struct stmt *s, struct as_err *err)
{
    const struct stmt **slot = conn_slot(c, s);
    if (*slot)
        return AS_OK;
    as_status st = conn_settle(c, err);
    if (st != AS_OK)
        return st;
    PGresult *res = PQprepare(c->pg, s->name, s->sql, 0, NULL);
    st = check_result(c, res, s->name, err);
    if (st == AS_OK)
        *slot = s;
    PQclear(res);
    return st;
}

static as_status defer_statement(struct conn *c, const struct stmt *s, const struct args *a,
                                 int binary, struct result *want, struct as_err *err)
{
    struct wire_args w;
    as_status st = defer_begin(c, err);
    if (st != AS_OK)
        return st;
    wire_format(a, &w);
    int ok = PQsendQueryPrepared(c->pg, s->name, a->n, w.v, w.len, w.format, binary);
    return deferred(c, ok, s->name, want, err);
}

static const struct args no_args;

/* Run a statement, after what was deferred. */
static as_status run_statement(struct tx *t, const struct stmt *s, const struct args *a, int binary,
                               struct result *ret, struct as_err *err)
{
    struct wire_args w;
    struct conn *c = t->conn;
    as_status st = conn_prepare(c, s, err);
    if (st != AS_OK)
        return st;
    if (!a)
        a = &no_args;
    if (c->n_deferred > 0) {
        st = defer_statement(c, s, a, binary, ret, err);
        return st == AS_OK ? conn_collect(c, err) : st;
    }
    wire_format(a, &w);
    PGresult *res = PQexecPrepared(c->pg, s->name, a->n, w.v, w.len, w.format, binary);
    st = check_result(c, res, s->name, err);
    if (st == AS_OK)
        take_result(as_steal(res), ret);
    PQclear(res);
    return st;
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

as_status tx_send(struct tx *t, const struct stmt *s, const struct args *a, struct result *ret,
                  struct as_err *err)
{
    if (t->kind != TX_BATCH)
        return run_statement(t, s, a, 0, ret, err);
    as_status st = conn_prepare(t->conn, s, err);
    return st == AS_OK ? defer_statement(t->conn, s, a ? a : &no_args, 0, ret, err) : st;
}

as_status tx_wait(struct tx *t, struct as_err *err)
{
    return conn_settle(t->conn, err);
}

as_status tx_exec(struct tx *t, const struct stmt *s, const struct args *a, int *ret_affected,
                  struct as_err *err)
{
    RESULT_AUTO r = {0};
    if (!ret_affected && t->kind == TX_BATCH)
        return tx_send(t, s, a, NULL, err);
    as_status st = run_statement(t, s, a, 0, &r, err);
    if (st == AS_OK && ret_affected)
        *ret_affected = r.affected;
    return st;
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
        "-c default_transaction_isolation=read\\ committed "
        /* A table of few rows, of which each commit leaves dead versions, is small when it is
         * analysed: PostgreSQL would read it whole from then on, in plans that stay. Where a
         * statement has no index, the cost of that must not begin the compiler. */
        "-c enable_seqscan=off -c jit=off";
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
