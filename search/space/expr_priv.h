/* Shared by the parts of the expression language: nodes, and the parser's position in the text. */
#ifndef ASSAY_SEARCH_SPACE_EXPR_PRIV_H
#define ASSAY_SEARCH_SPACE_EXPR_PRIV_H

#include <jansson.h>

#include "search/space/expr.h"

typedef enum value_type { NUMBER, TEXT, BOOLEAN, MIXED } value_type;

struct value {
    value_type type; /* never MIXED: only a parameter can be MIXED, not a value */
    double v;        /* a text's number, or 0 and 1 */
};

typedef enum expr_op {
    OP_CONST, /* value */
    OP_PARAM, /* parameter `a`; if it is a choice, its values begin at `b` */
    OP_IN,    /* a in the values b..b+n-1 */
    OP_AND,
    OP_OR,
    OP_NOT,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_POW,
    OP_NEG,
    OP_MIN,
    OP_MAX,
    OP_ABS,
    OP_LOG,
    OP_LOG2,
    OP_EXP,
    OP_SQRT,
    OP_FLOOR,
    OP_CEIL
} expr_op;

struct node {
    expr_op op;
    value_type type;
    size_t a, b, n;
    double v; /* OP_CONST */
};

/* A parameter that the expression names. */
struct name {
    size_t param;
    size_t at;       /* for a choice: its first value in expr.values */
    value_type type; /* of all its values */
};

struct expr {
    char *text;
    struct node *nodes; /* the last one is the root */
    size_t n_nodes;
    struct value *values;
    size_t n_values;
    struct name *names;
    size_t n_names;
};

typedef enum token {
    T_END,
    T_NUMBER,
    T_TEXT,
    T_BOOLEAN,
    T_PARAM,
    T_FUNCTION,
    T_AND,
    T_OR,
    T_NOT,
    T_IN,
    T_SIGN /* one of the signs below; `sign` is its text */
} token;

struct parser {
    const struct space *space;
    const char *pointer;
    struct as_err *err;
    as_status st; /* of the first error; every function returns at once after a failed call */
    struct expr *e;
    size_t node_cap, value_cap, name_cap;
    json_t *texts; /* text -> its number */
    unsigned depth;
    size_t next;  /* the first byte after the token */
    size_t start; /* the token's own first byte */
    token token;
    const char *sign;
    expr_op function;
    size_t param;
    double v;
};

/* Read the next token. False: there is no valid token. Every function here that returns false has
 * set p->st. */
bool expr_scan_next(struct parser *p);

/* Set an error at the column of `byte` of the text, and return false. */
bool expr_refuse(struct parser *p, as_status code, size_t byte, const char *fmt, ...)
    AS_PRINTF(4, 5);
bool expr_no_memory(struct parser *p);

/* The number that stands for a text. */
bool expr_intern(struct parser *p, const char *s, double *ret);

#endif
