/* One connection and its statements: arguments in, rows out, and error names. Private to this
 * folder.
 *
 * A PGresult never leaves the function that created it: `struct result` is a local variable with
 * RESULT_AUTO. */
#ifndef ASSAY_SCHEDULER_STORE_PG_PRIV_H
#define ASSAY_SCHEDULER_STORE_PG_PRIV_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "scheduler/store/tx.h"

/* A statement, prepared on a connection when it is first used there. */
struct stmt {
    const char *name;
    const char *sql;
};

/* The statements of one aggregate, listed so that a test can prepare them all. */
struct stmt_set {
    const char *aggregate;
    const struct stmt *stmts;
    size_t n;
};
extern const struct stmt_set *const store_stmt_sets[]; /* NULL-terminated; statements.c */

#define CONN_DEFERRED_MAX 32

#define CONN_STMTS 1024 /* open addressing; a power of two above twice the number of statements */

#define TX_EVENTS_MAX (INT64_C(1) << 20) /* events in one transaction: see events.h */

struct result {
    PGresult *pg;
    int rows;
    int affected; /* rows that INSERT, UPDATE or DELETE touched */
};
void result_done(struct result *r);
#define RESULT_AUTO AS_AUTO(result_done) struct result

struct conn;
struct rung_board;
struct tx {
    struct store *db;
    struct conn *conn;
    tx_kind kind;
    int64_t events;    /* written so far in this transaction */
    int64_t *finished; /* sweeps whose trials end in this transaction, perhaps several times;
                               owned */
    size_t n_finished;
    bool finished_failed; /* there was no memory for one: the transaction must not commit */
    bool has_finishing;   /* a sweep must be finished after the commit */
    bool has_seen;        /* what it saw must be on disk when it ends */
    struct tx_board {     /* the boards that it uses; owned */
        int64_t sweep_key, stamp;
        struct rung_board *board;
    } * boards;
    size_t n_boards;
};

/* The board of a sweep that the transaction uses: one that it has already, or one of the cache.
 * NULL: there is none yet. */
struct rung_board *tx_board(struct tx *t, int64_t sweep_key);
/* Use this board from now on; takes it. When the transaction commits it goes to the cache. */
AS_MUST_CHECK as_status tx_board_add(struct tx *t, int64_t sweep_key, struct rung_board *b,
                                     struct as_err *err);

/* Which connections a transaction may use. */
enum { LANE_SHARED, LANE_BATCH, LANES };

struct conn {
    PGconn *pg;
    int lane;
    bool broken;      /* must be closed, not reused */
    bool retry;       /* the transaction failed but may be run again */
    bool disk_full;   /* a statement of the transaction failed for that */
    bool committing;  /* COMMIT was sent: whether it took effect may be
                                             unknown */
    struct tx tx;     /* the open transaction of this connection */
    struct deferred { /* what was sent and not answered yet */
        const char *name;
        struct result *want; /* gets its result; NULL: nobody wants it */
    } deferred[CONN_DEFERRED_MAX];
    int n_deferred;
    const struct stmt *ready[CONN_STMTS]; /* statements that are prepared here, by address */
};

/* One argument of a statement. Texts and bytes are borrowed until the statement ran. */
struct arg {
    enum { ARG_TEXT, ARG_I64, ARG_F64, ARG_BYTES } kind;
    union {
        const void *p; /* ARG_TEXT, ARG_BYTES; NULL is null */
        int64_t i64;
        double f64;
    };
    size_t len; /* ARG_BYTES */
};
struct arg arg_str(const char *s); /* NULL is null */
struct arg arg_i64(int64_t v);
struct arg arg_i64_or_null(bool has, int64_t v);
struct arg arg_f64(double v);
struct arg arg_f64_or_null(bool has, double v);
struct arg arg_bool(bool v);
struct arg arg_bytes(const void *bytes, size_t len); /* bytea */

/* The arguments of one statement, $1 first: ARGS(arg_i64(key), arg_str(name)). The list lives until
 * the enclosing block ends. A list longer than ARGS_MAX does not compile. */
#define ARGS_MAX 56
struct args {
    const struct arg *v;
    int n;
};
#define ARGS_COUNT(...) (sizeof((const struct arg[]){__VA_ARGS__}) / sizeof(struct arg))
#define ARGS_FIT(...) sizeof(char[ARGS_COUNT(__VA_ARGS__) <= ARGS_MAX ? 1 : -1])
#define ARGS(...)                                                                                  \
    (&(const struct args){(const struct arg[]){__VA_ARGS__},                                       \
                          (int)(ARGS_COUNT(__VA_ARGS__) + 0 * ARGS_FIT(__VA_ARGS__))})

/* The text of array parameters: open, add elements, close. */
void array_open(struct str *b);
void array_str(struct str *b, const char *s); /* NULL is null */
void array_i64(struct str *b, int64_t v);
void array_i64_or_null(struct str *b, bool has, int64_t v);
void array_f64(struct str *b, double v);
void array_f64_or_null(struct str *b, bool has, double v);
void array_close(struct str *b);

/* The array parameters of a statement that works on sets: one for each column. */
#define ARRAYS_MAX 17
struct arrays {
    struct str c[ARRAYS_MAX];
};
void arrays_open(struct arrays *x);
AS_MUST_CHECK as_status arrays_close(struct arrays *x, struct as_err *err);
void arrays_done(struct arrays *x);
#define ARRAYS_AUTO AS_AUTO(arrays_done) struct arrays
/* A view of column i until arrays_done(). */
struct arg arg_array(const struct arrays *x, size_t i);

/* `column` equals `value`, in a form that only a nested loop can join. With `=` a table that nobody
 * has analysed is read whole for each set. */
#define SQL_JOINED(column, value) column " = any (array[" value "])"
/* The same for the columns of an index after its first: SQL_JOINED() there is a filter to the
 * planner while the table is small, and the plan stays when it has grown. */
#define SQL_JOINED_NEXT(column, value) column " >= " value " and " column " <= " value
/* The attempt x is that of the row l. */
#define SQL_JOINED_ATTEMPT(x, l)                                                                   \
    SQL_JOINED(x ".sweep_key", l ".sweep_key")                                                     \
    " and " SQL_JOINED_NEXT(x ".number", l ".number") " and " SQL_JOINED_NEXT(x ".attempt",        \
                                                                              l ".attempt")

/* Run a statement. Errors: AS_E_UNAVAILABLE (away or busy; try again), AS_E_CONFLICT (a unique
 * constraint), AS_E_NOT_FOUND (a foreign key), AS_E_INVAL (data that PostgreSQL cannot hold),
 * AS_E_INTERNAL. */
AS_MUST_CHECK as_status tx_query(struct tx *t, const struct stmt *s, const struct args *a,
                                 struct result *ret, struct as_err *err);
/* The same with bytea columns in binary. */
AS_MUST_CHECK as_status tx_query_binary(struct tx *t, const struct stmt *s, const struct args *a,
                                        struct result *ret, struct as_err *err);
/* The same without a wait in a TX_BATCH: *ret, which must be empty, is filled by tx_wait() or by
 * the next statement that waits, and is not touched any more when the transaction has failed.
 * Several that are sent cost one round trip. What was sent must be waited for before AS_OK is
 * returned. */
AS_MUST_CHECK as_status tx_send(struct tx *t, const struct stmt *s, const struct args *a,
                                struct result *ret, struct as_err *err);
AS_MUST_CHECK as_status tx_wait(struct tx *t, struct as_err *err);
/* The same if no rows are wanted; *ret_affected may be NULL. In a TX_BATCH it does not wait then: a
 * failure is that of a later statement, or of the commit. */
AS_MUST_CHECK as_status tx_exec(struct tx *t, const struct stmt *s, const struct args *a,
                                int *ret_affected, struct as_err *err);
/* Text with several commands, without arguments: BEGIN, COMMIT, migrations. It waits for what was
 * deferred first. */
AS_MUST_CHECK as_status conn_exec(struct conn *c, const char *sql, struct as_err *err);
/* One command, a literal, whose answer is read with that of a later one. */
AS_MUST_CHECK as_status conn_defer(struct conn *c, const char *command, struct as_err *err);
/* One command, answered in one round trip with what was deferred; if some of that failed it does
 * not run. */
AS_MUST_CHECK as_status conn_end(struct conn *c, const char *command, struct as_err *err);
/* Roll back, also when something that was deferred has failed. */
void conn_rollback(struct conn *c);

/* Reads the columns of one row in order. An error is kept until reader_check() returns it. */
struct reader {
    const struct result *r;
    struct arena *a;
    int row, col;
    bool failed;         /* memory ran out */
    const char *unknown; /* a word that this program does not know, a view of the result; NULL:
                            none */
};
void reader_init(struct reader *rd, const struct result *r, int row, struct arena *a);
bool read_null(struct reader *rd);        /* is the next column null? does not advance */
const char *read_str(struct reader *rd);  /* NULL for null; in the arena */
const char *read_view(struct reader *rd); /* a view of the result; "" for null */
int64_t read_i64(struct reader *rd);      /* 0 for null */
double read_f64(struct reader *rd);       /* 0 for null */
bool read_bool(struct reader *rd);        /* false for null */
/* The place of a word in a NULL-terminated list. A check of its table allows no other words. */
size_t word_place(const char *const *words, const char *word);
/* AS_E_NOMEM: the arena is out of memory. AS_E_INTERNAL: an unknown word. */
AS_MUST_CHECK as_status reader_check(const struct reader *rd, struct as_err *err);
/* One number of a result; 0 for null. */
int64_t result_i64(const struct result *r, int row, int col);

/* For trials t: how many slots they take; a group takes one. */
#define SQL_SLOTS "count(*) filter (where t.group_id is null) + count(distinct t.group_id)"

/* A column of time as Unix milliseconds. */
#define SQL_MS(column) "(extract(epoch from " column ") * 1000)::bigint"
/* The time of a parameter of Unix milliseconds. */
#define SQL_TIME(parameter) "to_timestamp(" parameter "::bigint / 1000.0)"

/* A connection of the pool: open one, close one. `info` is the URL, `app` the application_name,
 * `options` further settings of its session (" -c name=value").
 * AS_E_UNAVAILABLE. AS_E_CONFLICT: fsync is off. AS_E_UNSUPPORTED: the server is older than 14. */
AS_MUST_CHECK as_status conn_open(const char *info, const char *app, const char *options,
                                  struct conn **ret, struct as_err *err);
void conn_close(struct conn *c);
AS_DEFINE_FREEP(struct conn, conn_close)

#endif
