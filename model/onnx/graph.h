/* An ONNX graph while it is built, and its file.
 *
 * Values are named by texts that belong to the graph. The graph keeps its first failure: after it,
 * nothing is added and the functions return NULL, which all functions accept as a value. So code
 * that builds is a list of calls, and asks onnx_graph_status() at its end.
 *
 * Inputs are declared before anything else. They keep the names that they are given; every other
 * name gets a prefix that no input begins with, so that any column may be an input. */
#ifndef ASSAY_MODEL_ONNX_GRAPH_H
#define ASSAY_MODEL_ONNX_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define ONNX_OPSET                                                                                 \
    17 /* of the standard operators; ONNX 1.12, in runtimes since the middle of 2022 */
#define ONNX_OPSET_ML 3
#define ONNX_IR_VERSION 8
#define ONNX_MAX_BYTES ((size_t)2147483647) /* of a file: protobuf's limit */
#define ONNX_MAX_DIMS 4
#define ONNX_ROWS ((int64_t)-1) /* as a dimension: the number of rows, which the caller chooses */

struct onnx_graph;

typedef enum onnx_type {
    ONNX_FLOAT,
    ONNX_DOUBLE,
    ONNX_INT64,
    ONNX_UINT8,
    ONNX_STRING,
    ONNX_BOOL
} onnx_type;

/* An empty graph. Owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status onnx_graph_create(struct onnx_graph **ret, struct as_err *err);
void onnx_graph_free(struct onnx_graph *g);
AS_DEFINE_FREEP(struct onnx_graph, onnx_graph_free)

/* The first failure, or AS_OK. */
AS_MUST_CHECK as_status onnx_graph_status(const struct onnx_graph *g, struct as_err *err);

/* Let the graph fail, if it has not. */
void onnx_graph_fail(struct onnx_graph *g, as_status st, const char *fmt, ...) AS_PRINTF(3, 4);

/* Names of the values that are added from now on begin with this (a view of a static text, or of a
 * text in onnx_graph_text()): "members/0". */
void onnx_graph_scope(struct onnx_graph *g, const char *scope);

/* Formatted text that lives as long as the graph; NULL after a failure. */
const char *onnx_graph_text(struct onnx_graph *g, const char *fmt, ...) AS_PRINTF(2, 3);

/* n * size zeroed bytes that live as long as the graph; NULL after a failure. */
void *onnx_graph_memory(struct onnx_graph *g, size_t n, size_t size);

/* ---- what the user of the graph sees ---- */

struct onnx_port {
    const char *name; /* of an input: must differ from that of every other input */
    onnx_type type;
    const int64_t *dims;
    size_t n_dims;    /* at most ONNX_MAX_DIMS */
    const char *note; /* for people; NULL: none */
};

/* Declare an input; returns its value. All copied. */
const char *onnx_graph_input(struct onnx_graph *g, const struct onnx_port *port);

/* Make `value` an output. If an input has port->name, "_" is added to it until none has. */
void onnx_graph_output(struct onnx_graph *g, const struct onnx_port *port, const char *value);

/* Is there an input of this name? */
bool onnx_graph_has_input(const struct onnx_graph *g, const char *name);

/* A text that a runtime shows with the model. Copied. */
void onnx_graph_property(struct onnx_graph *g, const char *key, const char *value);

/* ---- constants ---- */

/* A constant whose values in the order of memory are `data`, which stays until the file is written:
 * a view of onnx_graph_memory() or of another object. `name` is for people. Not for strings. */
const char *onnx_graph_constant(struct onnx_graph *g, const char *name, onnx_type type,
                                const int64_t *dims, size_t n_dims, const void *data);

/* Vectors and scalars, copied. */
const char *onnx_graph_floats(struct onnx_graph *g, const char *name, const float *v, size_t n);
const char *onnx_graph_doubles(struct onnx_graph *g, const char *name, const double *v, size_t n);
const char *onnx_graph_ints(struct onnx_graph *g, const char *name, const int64_t *v, size_t n);
const char *onnx_graph_strings(struct onnx_graph *g, const char *name, const char *const *v,
                               size_t n);
const char *onnx_graph_scalar(struct onnx_graph *g, const char *name, float v);

/* ---- nodes ---- */

typedef enum onnx_attr_kind {
    ONNX_ATTR_INT,
    ONNX_ATTR_FLOAT,
    ONNX_ATTR_STRING,
    ONNX_ATTR_INTS,
    ONNX_ATTR_FLOATS,
    ONNX_ATTR_STRINGS
} onnx_attr_kind;

struct onnx_attr {
    const char *name;
    onnx_attr_kind kind;
    int64_t i;
    float f;
    const int64_t *ints;        /* of n */
    const float *floats;        /* of n */
    const char *const *strings; /* of n; STRING: one */
    size_t n;
};

struct onnx_node {
    const char *op;
    const char *const *in; /* values */
    size_t n_in;
    const struct onnx_attr *attrs;
    size_t n_attrs;
    bool ml; /* an operator of ai.onnx.ml */
};

#define ONNX_IN(...)                                                                               \
    .in = (const char *const[]){__VA_ARGS__},                                                      \
    .n_in = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)
#define ONNX_ATTRS(...)                                                                            \
    .attrs = (const struct onnx_attr[]){__VA_ARGS__},                                              \
    .n_attrs = sizeof((const struct onnx_attr[]){__VA_ARGS__}) / sizeof(struct onnx_attr)

static inline struct onnx_attr onnx_int(const char *name, int64_t v)
{
    return (struct onnx_attr){.name = name, .kind = ONNX_ATTR_INT, .i = v};
}

static inline struct onnx_attr onnx_ints(const char *name, const int64_t *v, size_t n)
{
    return (struct onnx_attr){.name = name, .kind = ONNX_ATTR_INTS, .ints = v, .n = n};
}

/* Add a node with one output; returns the output. Everything is copied. */
const char *onnx_graph_add(struct onnx_graph *g, const struct onnx_node *node);
/* The same of a node with two outputs, the second of which goes to *ret_second. */
const char *onnx_graph_add_two(struct onnx_graph *g, const struct onnx_node *node,
                               const char **ret_second);
const char *onnx_graph_unary(struct onnx_graph *g, const char *op, const char *a);
const char *onnx_graph_binary(struct onnx_graph *g, const char *op, const char *a, const char *b);
const char *onnx_graph_cast(struct onnx_graph *g, const char *a, onnx_type to);
const char *onnx_graph_transpose(struct onnx_graph *g, const char *a, const int64_t *order,
                                 size_t n_dims);
/* Values side by side along `axis`; one value is returned as it is. */
const char *onnx_graph_concat(struct onnx_graph *g, const char *const *values, size_t n,
                              int64_t axis);

/* ---- the file ---- */

/* Write the graph to `path`, which "-" and devices may be (file_output_open). An existing file is
 * replaced in one step or stays as it was. The bytes depend on the graph alone.
 * The graph's own failure; AS_E_TOO_LARGE: past ONNX_MAX_BYTES; AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status onnx_graph_write(struct onnx_graph *g, const char *path,
                                         struct as_err *err);

#endif
