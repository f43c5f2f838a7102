/* The columns that a statement selects for a row, listed once: the SELECT list and the reader of
 * the row are made from the list. Private to this folder.
 *
 *     #define FILE_FIELDS(FIRST, NEXT)                                      \
 *         FIRST(text, path, "path")                                          \
 *         NEXT(i64, size, "size")                                            \
 *         NEXT(text, sha256, "sha256")
 *     COLUMNS_WHOLE_ROW(struct file_row, FILE_FIELDS)
 *     COLUMNS_READER(file, struct file_row, FILE_FIELDS)
 *     #define FILE_COLUMNS COLUMNS_SQL(FILE_FIELDS)
 *
 *     "select " FILE_COLUMNS " from trial_file …"              the SELECT list
 *     read_file_row(&result, i, arena, &row, err)               row i of a result
 *     read_file_rows(&result, n, arena, &rows, err)             its first n rows
 *     read_file(&reader, &row)                                  if other columns follow
 *
 * An entry is one column: its kind, the field that it fills (counts.total, files[0].role), and its
 * SQL. A kind is a function column_KIND() that reads the next column into a field of its type. A
 * file may add kinds of its own. An entry whose field does not exist, or has another type than its
 * kind reads, does not compile. A whole row with a field that no entry fills does not compile
 * either. */
#ifndef ASSAY_SCHEDULER_STORE_SQL_COLUMNS_PRIV_H
#define ASSAY_SCHEDULER_STORE_SQL_COLUMNS_PRIV_H

#include "scheduler/rows/rung_row.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/sweep/trial_state.h"

/* The SELECT list, as a literal. */
#define COLUMNS_SQL(list) list(COLUMN_SQL_FIRST, COLUMN_SQL_NEXT)
#define COLUMN_SQL_FIRST(kind, field, sql) sql
#define COLUMN_SQL_NEXT(kind, field, sql) ", " sql

/* The number of columns, which is the index of the next one. */
#define COLUMNS_COUNT(list) (0 list(COLUMN_ONE, COLUMN_ONE))
#define COLUMN_ONE(kind, field, sql) +1

/* The three readers. Strings and rows are in the arena. Errors are those of reader_check(). */
#define COLUMNS_READER(name, type, list)                                                           \
    static inline void read_##name(struct reader *rd, type *row)                                   \
    {                                                                                              \
        list(COLUMN_READ, COLUMN_READ)                                                             \
    }                                                                                              \
    static inline as_status read_##name##_row(const struct result *r, int i, struct arena *a,      \
                                              type *ret, struct as_err *err)                       \
    {                                                                                              \
        struct reader rd;                                                                          \
        reader_init(&rd, r, i, a);                                                                 \
        read_##name(&rd, ret);                                                                     \
        return reader_check(&rd, err);                                                             \
    }                                                                                              \
    __attribute__((unused)) /* clang looks also at inline functions */                             \
    static inline as_status read_##name##_rows(const struct result *r, int n, struct arena *a,     \
                                               type **ret, struct as_err *err)                     \
    {                                                                                              \
        type *rows = arena_alloc(a, (size_t)n + 1, sizeof *rows);                                  \
        if (!rows)                                                                                 \
            return as_fail_nomem(err);                                                             \
        for (int i = 0; i < n; i++) {                                                              \
            as_status st = read_##name##_row(r, i, a, &rows[i], err);                              \
            if (st != AS_OK)                                                                       \
                return st;                                                                         \
        }                                                                                          \
        *ret = rows;                                                                               \
        return AS_OK;                                                                              \
    }
#define COLUMN_READ(kind, field, sql) column_##kind(rd, &row->field);

/* Assert that the list fills every field of the row: an initialiser with one value for each entry
 * leaves no field out. */
/* clang-format off */
#define COLUMNS_WHOLE_ROW(type, list)                                                              \
    _Pragma("GCC diagnostic push")                                                                 \
    _Pragma("GCC diagnostic error \"-Wmissing-field-initializers\"")                               \
    _Pragma("GCC diagnostic ignored \"-Wmissing-braces\"")                                         \
    static const type list##_WHOLE __attribute__((unused)) = {list(COLUMN_ZERO, COLUMN_ZERO)};     \
    _Pragma("GCC diagnostic pop")
/* clang-format on */
#define COLUMN_ZERO(kind, field, sql) 0,

/* The kinds. An SQL null is read as NULL, 0 or false. */
void column_text(struct reader *rd, const char **ret);
void column_i64(struct reader *rd, int64_t *ret);
void column_f64(struct reader *rd, double *ret);
void column_bool(struct reader *rd, bool *ret);
void column_trial_state(struct reader *rd, trial_state *ret);
void column_sweep_state(struct reader *rd, sweep_state *ret);
void column_decision(struct reader *rd, trial_decision *ret);

#endif
