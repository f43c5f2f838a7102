/* Status codes and the caller-owned error record.
 *
 * Every fallible function returns an as_status (0 or negative) and takes a `struct as_err *err`
 * last, which may be NULL. Outputs are written on success only. */
#ifndef ASSAY_BASE_STATUS_H
#define ASSAY_BASE_STATUS_H

#define AS_MUST_CHECK __attribute__((warn_unused_result))
#define AS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

typedef enum as_status {
    AS_OK = 0,
    AS_E_INVAL = -1,        /* the input is wrong; the message says which field and how */
    AS_E_NOMEM = -2,        /* out of memory */
    AS_E_IO = -3,           /* a file, pipe or disk failed */
    AS_E_NOT_FOUND = -4,    /* the thing named does not exist */
    AS_E_CONFLICT = -5,     /* the state does not allow it, or it exists already */
    AS_E_STALE = -6,        /* the write came from an attempt that is no longer current */
    AS_E_UNAVAILABLE = -7,  /* the database or the server cannot be reached; try again */
    AS_E_NUMERIC = -8,      /* a computation is not finite or a matrix is not positive definite */
    AS_E_DENIED = -9,       /* no token, or one whose role does not allow this */
    AS_E_TOO_LARGE = -10,   /* past a stated limit */
    AS_E_UNSUPPORTED = -11, /* known, but not offered by this build or version */
    AS_E_TIMEOUT = -12,     /* the time allowed ran out */
    AS_E_EXHAUSTED = -13,   /* nothing is left to return: samplers and readers expect it */
    AS_E_INTERNAL = -14,    /* our own bug; logged where it is found */
    AS_E_USAGE = -15        /* a wrong command line; of programs, never of the API */
} as_status;

#define AS_ERR_MSG_MAX 480
#define AS_ERR_POINTER_MAX 120

/* Caller-owned error record. `pointer` is a JSON pointer (RFC 6901) of the field, or "". */
struct as_err {
    as_status code;
    char msg[AS_ERR_MSG_MAX];
    char pointer[AS_ERR_POINTER_MAX];
};

/* Fill `err` (may be NULL) and yield `code`, so that callers write `return as_fail(err, …);`.
 * These are macros, so that compiler and analyzer see which code is returned. */
#define as_fail(err, code, ...)                                                                    \
    __extension__({                                                                                \
        as_status as_fail_code_ = (code);                                                          \
        as_err_set((err), as_fail_code_, "", __VA_ARGS__);                                         \
        as_fail_code_;                                                                             \
    })

/* As as_fail, with the JSON pointer of the field at fault (borrowed). */
#define as_fail_at(err, code, pointer, ...)                                                        \
    __extension__({                                                                                \
        as_status as_fail_code_ = (code);                                                          \
        as_err_set((err), as_fail_code_, (pointer), __VA_ARGS__);                                  \
        as_fail_code_;                                                                             \
    })

/* For a failed allocation: AS_E_NOMEM with the message "out of memory". */
#define as_fail_nomem(err) as_fail((err), AS_E_NOMEM, "out of memory")

/* Put `prefix` and ": " before the message of an error that is already filled. Yields `code`. */
#define as_err_prefix(err, code, ...)                                                              \
    __extension__({                                                                                \
        as_status as_fail_code_ = (code);                                                          \
        as_err_set_prefix((err), as_fail_code_, __VA_ARGS__);                                      \
        as_fail_code_;                                                                             \
    })

/* The macros call these. The arguments may point into *err. */
void as_err_set(struct as_err *err, as_status code, const char *pointer, const char *fmt, ...)
    AS_PRINTF(4, 5);
void as_err_set_prefix(struct as_err *err, as_status code, const char *fmt, ...) AS_PRINTF(3, 4);

/* The name of a status as used in logs and problem documents, such as "not_found". Never NULL. */
const char *as_status_name(as_status st);

#endif
