/* An ONNX graph as protobuf messages.
 *
 * The messages are those of onnx.proto, which protoc-c translates when Assay is built; no other
 * file includes them. They lie in one arena, so nothing is freed one by one. Weights are not
 * copied: their messages point at the caller's memory, and the file is written piece by piece into
 * a draft, so that exporting a model takes little more memory than reading it.
 *
 * Names of values are PREFIX/SCOPE/OP.N with a running number N, so they are distinct. PREFIX is
 * "assay", longer if an input begins so. */
#include "model/onnx/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <onnx.pb-c.h>

#include "base/arena.h"
#include "base/file.h"

struct list {
    void **items;
    size_t n, cap;
};

struct onnx_graph {
    struct arena memory;
    as_status st;
    struct as_err why;
    char *prefix; /* of every name that is no input's or output's */
    const char *scope;
    size_t n_names;
    struct list nodes, constants, inputs, outputs, properties;
};

as_status onnx_graph_create(struct onnx_graph **ret, struct as_err *err)
{
    AS_AUTO(onnx_graph_freep) struct onnx_graph *g = as_calloc(1, sizeof *g);
    if (!g)
        return as_fail_nomem(err);
    g->scope = "";
    g->prefix = arena_strdup(&g->memory, "assay");
    if (!g->prefix)
        return as_fail_nomem(err);
    *ret = as_steal(g);
    return AS_OK;
}

void onnx_graph_free(struct onnx_graph *g)
{
    if (!g)
        return;
    free(g->nodes.items);
    free(g->constants.items);
    free(g->inputs.items);
    free(g->outputs.items);
    free(g->properties.items);
    arena_done(&g->memory);
    free(g);
}

/* ---- failures and memory ---- */

as_status onnx_graph_status(const struct onnx_graph *g, struct as_err *err)
{
    if (g->st == AS_OK)
        return AS_OK;
    return as_fail(err, g->st, "%s", g->why.msg);
}

void onnx_graph_fail(struct onnx_graph *g, as_status st, const char *fmt, ...)
{
    char text[AS_ERR_MSG_MAX];
    va_list args;
    if (g->st != AS_OK)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    g->st = as_fail(&g->why, st, "%s", text);
}

void *onnx_graph_memory(struct onnx_graph *g, size_t n, size_t size)
{
    if (g->st != AS_OK)
        return NULL;
    void *p = arena_alloc(&g->memory, n, size);
    if (!p)
        onnx_graph_fail(g, AS_E_NOMEM, "out of memory");
    return p;
}

static void *copy_bytes(struct onnx_graph *g, const void *bytes, size_t n, size_t size)
{
    void *p = onnx_graph_memory(g, n ? n : 1, size);
    if (p && n)
        memcpy(p, bytes, n * size);
    return p;
}

static char *copy_text(struct onnx_graph *g, const char *s)
{
    return copy_bytes(g, s, strlen(s) + 1, 1);
}

const char *onnx_graph_text(struct onnx_graph *g, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = n < 0 ? NULL : onnx_graph_memory(g, (size_t)n + 1, 1);
    if (text)
        (void)vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

/* A new message, in its initial state; NULL after a failure. */
#define NEW(g, type, name)                                                                         \
    __extension__({                                                                                \
        type *new_ = onnx_graph_memory((g), 1, sizeof *new_);                                      \
        if (new_)                                                                                  \
            name##__init(new_);                                                                    \
        new_;                                                                                      \
    })

static void push(struct onnx_graph *g, struct list *l, void *item)
{
    if (g->st != AS_OK)
        return;
    g->st = as_reserve_one(&l->items, l->n, &l->cap, sizeof *l->items, &g->why);
    if (g->st == AS_OK)
        l->items[l->n++] = item;
}

void onnx_graph_scope(struct onnx_graph *g, const char *scope)
{
    g->scope = scope ? scope : "";
}

/* A name for a value that no other value has. */
static char *new_name(struct onnx_graph *g, const char *what)
{
    return (char *)onnx_graph_text(g, "%s%s%s/%s.%zu", g->prefix, *g->scope ? "/" : "", g->scope,
                                   what, g->n_names++);
}

static int32_t type_of(onnx_type type)
{
    static const int32_t types[] = {[ONNX_FLOAT] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
                                    [ONNX_DOUBLE] = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE,
                                    [ONNX_INT64] = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
                                    [ONNX_UINT8] = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
                                    [ONNX_STRING] = ONNX__TENSOR_PROTO__DATA_TYPE__STRING,
                                    [ONNX_BOOL] = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL};
    return types[type];
}

static size_t size_of(onnx_type type)
{
    static const size_t sizes[] = {[ONNX_FLOAT] = 4, [ONNX_DOUBLE] = 8, [ONNX_INT64] = 8,
                                   [ONNX_UINT8] = 1, [ONNX_STRING] = 0, [ONNX_BOOL] = 1};
    return sizes[type];
}

/* ---- inputs, outputs, properties ---- */

static Onnx__TensorShapeProto__Dimension *new_dim(struct onnx_graph *g, int64_t size)
{
    Onnx__TensorShapeProto__Dimension *d =
        NEW(g, Onnx__TensorShapeProto__Dimension, onnx__tensor_shape_proto__dimension);
    if (!d)
        return NULL;
    if (size == ONNX_ROWS) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = copy_text(g, "rows");
    } else {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = size;
    }
    return d;
}

static Onnx__TypeProto *new_type(struct onnx_graph *g, const struct onnx_port *port)
{
    Onnx__TypeProto *type = NEW(g, Onnx__TypeProto, onnx__type_proto);
    Onnx__TypeProto__Tensor *tensor = NEW(g, Onnx__TypeProto__Tensor, onnx__type_proto__tensor);
    Onnx__TensorShapeProto *shape = NEW(g, Onnx__TensorShapeProto, onnx__tensor_shape_proto);
    Onnx__TensorShapeProto__Dimension **dims =
        onnx_graph_memory(g, port->n_dims ? port->n_dims : 1, sizeof *dims);
    if (!dims)
        return NULL;
    for (size_t i = 0; i < port->n_dims; i++)
        dims[i] = new_dim(g, port->dims[i]);
    shape->n_dim = port->n_dims;
    shape->dim = dims;
    tensor->has_elem_type = 1;
    tensor->elem_type = type_of(port->type);
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    return type;
}

/* Add a port called `name` to `to`; returns its name in the graph. */
static const char *add_port(struct onnx_graph *g, struct list *to, const struct onnx_port *port,
                            const char *name)
{
    Onnx__ValueInfoProto *v = NEW(g, Onnx__ValueInfoProto, onnx__value_info_proto);
    if (!v)
        return NULL;
    v->name = copy_text(g, name);
    v->type = new_type(g, port);
    v->doc_string = port->note ? copy_text(g, port->note) : NULL;
    push(g, to, v);
    return g->st == AS_OK ? v->name : NULL;
}

const char *onnx_graph_input(struct onnx_graph *g, const struct onnx_port *port)
{
    while (g->st == AS_OK && strncmp(port->name, g->prefix, strlen(g->prefix)) == 0)
        g->prefix = (char *)onnx_graph_text(g, "%s_", g->prefix);
    return add_port(g, &g->inputs, port, port->name);
}

bool onnx_graph_has_input(const struct onnx_graph *g, const char *name)
{
    for (size_t i = 0; i < g->inputs.n; i++)
        if (strcmp(((const Onnx__ValueInfoProto *)g->inputs.items[i])->name, name) == 0)
            return true;
    return false;
}

static Onnx__NodeProto *add_node(struct onnx_graph *g, const struct onnx_node *node, char *output,
                                 char *second);

void onnx_graph_output(struct onnx_graph *g, const struct onnx_port *port, const char *value)
{
    const char *name = port->name;
    while (name && onnx_graph_has_input(g, name))
        name = onnx_graph_text(g, "%s_", name);
    name = name ? add_port(g, &g->outputs, port, name) : NULL;
    if (name)
        (void)add_node(g, &(struct onnx_node){.op = "Identity", ONNX_IN(value)}, (char *)name,
                       NULL);
}

void onnx_graph_property(struct onnx_graph *g, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *p =
        NEW(g, Onnx__StringStringEntryProto, onnx__string_string_entry_proto);
    if (!p)
        return;
    p->key = copy_text(g, key);
    p->value = copy_text(g, value);
    push(g, &g->properties, p);
}

/* ---- constants ---- */

/* A tensor message without values. */
static Onnx__TensorProto *add_tensor(struct onnx_graph *g, const char *name, onnx_type type,
                                     const int64_t *dims, size_t n_dims)
{
    Onnx__TensorProto *t = NEW(g, Onnx__TensorProto, onnx__tensor_proto);
    if (!t)
        return NULL;
    t->name = new_name(g, name);
    t->has_data_type = 1;
    t->data_type = type_of(type);
    t->n_dims = n_dims;
    t->dims = copy_bytes(g, dims, n_dims, sizeof *dims);
    push(g, &g->constants, t);
    return g->st == AS_OK ? t : NULL;
}

const char *onnx_graph_constant(struct onnx_graph *g, const char *name, onnx_type type,
                                const int64_t *dims, size_t n_dims, const void *data)
{
    Onnx__TensorProto *t = add_tensor(g, name, type, dims, n_dims);
    size_t n = size_of(type);
    if (!t)
        return NULL;
    for (size_t i = 0; i < n_dims; i++)
        n *= (size_t)dims[i];
    t->has_raw_data = 1;
    t->raw_data.len = n;
    t->raw_data.data = (uint8_t *)data; /* protobuf-c only reads it */
    return t->name;
}

static const char *add_vector(struct onnx_graph *g, const char *name, onnx_type type, const void *v,
                              size_t n)
{
    const void *copy = copy_bytes(g, v, n, size_of(type));
    return onnx_graph_constant(g, name, type, (int64_t[]){(int64_t)n}, 1, copy);
}

const char *onnx_graph_floats(struct onnx_graph *g, const char *name, const float *v, size_t n)
{
    return add_vector(g, name, ONNX_FLOAT, v, n);
}

const char *onnx_graph_doubles(struct onnx_graph *g, const char *name, const double *v, size_t n)
{
    return add_vector(g, name, ONNX_DOUBLE, v, n);
}

const char *onnx_graph_ints(struct onnx_graph *g, const char *name, const int64_t *v, size_t n)
{
    return add_vector(g, name, ONNX_INT64, v, n);
}

const char *onnx_graph_scalar(struct onnx_graph *g, const char *name, float v)
{
    const void *copy = copy_bytes(g, &v, 1, sizeof v);
    return onnx_graph_constant(g, name, ONNX_FLOAT, NULL, 0, copy);
}

static ProtobufCBinaryData *copy_texts(struct onnx_graph *g, const char *const *v, size_t n)
{
    ProtobufCBinaryData *texts = onnx_graph_memory(g, n ? n : 1, sizeof *texts);
    for (size_t i = 0; texts && i < n; i++) { /* equal neighbours share a copy: modes of trees */
        texts[i].data =
            i > 0 && v[i] == v[i - 1] ? texts[i - 1].data : (uint8_t *)copy_text(g, v[i]);
        texts[i].len = strlen(v[i]);
    }
    return g->st == AS_OK ? texts : NULL;
}

const char *onnx_graph_strings(struct onnx_graph *g, const char *name, const char *const *v,
                               size_t n)
{
    Onnx__TensorProto *t = add_tensor(g, name, ONNX_STRING, (int64_t[]){(int64_t)n}, 1);
    if (!t)
        return NULL;
    t->string_data = copy_texts(g, v, n);
    t->n_string_data = n;
    return t->name;
}

/* ---- nodes ---- */

static void set_list(struct onnx_graph *g, const struct onnx_attr *a, Onnx__AttributeProto *m)
{
    if (a->kind == ONNX_ATTR_INTS) {
        m->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        m->n_ints = a->n;
        m->ints = copy_bytes(g, a->ints, a->n, sizeof *a->ints);
    } else if (a->kind == ONNX_ATTR_FLOATS) {
        m->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
        m->n_floats = a->n;
        m->floats = copy_bytes(g, a->floats, a->n, sizeof *a->floats);
    } else {
        m->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
        m->n_strings = a->n;
        m->strings = copy_texts(g, a->strings, a->n);
    }
}

static Onnx__AttributeProto *new_attr(struct onnx_graph *g, const struct onnx_attr *a)
{
    Onnx__AttributeProto *m = NEW(g, Onnx__AttributeProto, onnx__attribute_proto);
    if (!m)
        return NULL;
    m->name = copy_text(g, a->name);
    m->has_type = 1;
    if (a->kind == ONNX_ATTR_INT) {
        m->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        m->has_i = 1;
        m->i = a->i;
    } else if (a->kind == ONNX_ATTR_FLOAT) {
        m->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        m->has_f = 1;
        m->f = a->f;
    } else if (a->kind == ONNX_ATTR_STRING) {
        m->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        m->has_s = 1;
        m->s.data = (uint8_t *)copy_text(g, a->strings[0]);
        m->s.len = strlen(a->strings[0]);
    } else {
        set_list(g, a, m);
    }
    return m;
}

/* second: NULL of a node with one output. */
static Onnx__NodeProto *add_node(struct onnx_graph *g, const struct onnx_node *node, char *output,
                                 char *second)
{
    Onnx__NodeProto *m = NEW(g, Onnx__NodeProto, onnx__node_proto);
    char **in = onnx_graph_memory(g, node->n_in ? node->n_in : 1, sizeof *in);
    char **out = onnx_graph_memory(g, 2, sizeof *out);
    Onnx__AttributeProto **attrs =
        onnx_graph_memory(g, node->n_attrs ? node->n_attrs : 1, sizeof(void *));
    if (!attrs)
        return NULL;
    for (size_t i = 0; i < node->n_in; i++)
        in[i] = (char *)node->in[i];
    for (size_t i = 0; i < node->n_attrs; i++)
        attrs[i] = new_attr(g, &node->attrs[i]);
    out[0] = output;
    out[1] = second;
    m->name = copy_text(g, output);
    m->op_type = copy_text(g, node->op);
    m->domain = node->ml ? copy_text(g, "ai.onnx.ml") : NULL;
    m->n_input = node->n_in;
    m->input = in;
    m->n_output = second ? 2 : 1;
    m->output = out;
    m->n_attribute = node->n_attrs;
    m->attribute = attrs;
    push(g, &g->nodes, m);
    return g->st == AS_OK ? m : NULL;
}

const char *onnx_graph_add(struct onnx_graph *g, const struct onnx_node *node)
{
    char *output = new_name(g, node->op);
    return output && add_node(g, node, output, NULL) ? output : NULL;
}

const char *onnx_graph_add_two(struct onnx_graph *g, const struct onnx_node *node,
                               const char **ret_second)
{
    char *output = new_name(g, node->op), *second = new_name(g, node->op);
    *ret_second = second;
    return second && output && add_node(g, node, output, second) ? output : NULL;
}

const char *onnx_graph_unary(struct onnx_graph *g, const char *op, const char *a)
{
    return onnx_graph_add(g, &(struct onnx_node){.op = op, ONNX_IN(a)});
}

const char *onnx_graph_binary(struct onnx_graph *g, const char *op, const char *a, const char *b)
{
    return onnx_graph_add(g, &(struct onnx_node){.op = op, ONNX_IN(a, b)});
}

const char *onnx_graph_cast(struct onnx_graph *g, const char *a, onnx_type to)
{
    return onnx_graph_add(
        g, &(struct onnx_node){.op = "Cast", ONNX_IN(a), ONNX_ATTRS(onnx_int("to", type_of(to)))});
}

const char *onnx_graph_transpose(struct onnx_graph *g, const char *a, const int64_t *order,
                                 size_t n_dims)
{
    return onnx_graph_add(g, &(struct onnx_node){.op = "Transpose",
                                                 ONNX_IN(a),
                                                 ONNX_ATTRS(onnx_ints("perm", order, n_dims))});
}

const char *onnx_graph_concat(struct onnx_graph *g, const char *const *values, size_t n,
                              int64_t axis)
{
    if (n == 1)
        return values[0];
    return onnx_graph_add(
        g, &(struct onnx_node){
               .op = "Concat", .in = values, .n_in = n, ONNX_ATTRS(onnx_int("axis", axis))});
}

/* ---- the file ---- */

/* protobuf-c hands over many small pieces and some large ones, and its callback reports nothing, so
 * the sink gathers the small ones and keeps the first failure. */
struct sink {
    ProtobufCBuffer base;
    int fd;
    as_status st;
    struct as_err *err;
    size_t have;
    unsigned char bytes[1 << 16];
};

static void sink_flush(struct sink *s)
{
    if (s->st == AS_OK && s->have > 0)
        s->st = file_write_all(s->fd, s->bytes, s->have, s->err);
    s->have = 0;
}

static void sink_append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
    struct sink *s = (struct sink *)base; /* base is its first member */
    if (len > sizeof s->bytes - s->have)
        sink_flush(s);
    if (len > sizeof s->bytes) {
        if (s->st == AS_OK)
            s->st = file_write_all(s->fd, data, len, s->err);
        return;
    }
    memcpy(s->bytes + s->have, data, len);
    s->have += len;
}

static as_status write_message(const ProtobufCMessage *m, int fd, struct as_err *err)
{
    AS_AUTO(as_freep) struct sink *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->base.append = sink_append;
    s->fd = fd;
    s->err = err;
    (void)protobuf_c_message_pack_to_buffer(m, &s->base);
    sink_flush(s);
    return s->st;
}

static as_status write_model(Onnx__ModelProto *model, const char *path, struct as_err *err)
{
    size_t size = protobuf_c_message_get_packed_size(&model->base);
    AS_AUTO(file_output_done) struct file_output out = {0};
    if (size > ONNX_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "the ONNX file would have %zu bytes, and the format allows at most %zu",
                       size, ONNX_MAX_BYTES);
    as_status st = file_output_open(&out, path, 0644, err);
    if (st != AS_OK)
        return st;
    st = write_message(&model->base, out.fd, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%s", path);
    return file_output_commit(&out, err);
}

as_status onnx_graph_write(struct onnx_graph *g, const char *path, struct as_err *err)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto standard = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto ml = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *sets[] = {&standard, &ml};
    if (g->st != AS_OK)
        return onnx_graph_status(g, err);
    standard.domain = (char[]){""};
    standard.has_version = ml.has_version = 1;
    standard.version = ONNX_OPSET;
    ml.domain = (char[]){"ai.onnx.ml"};
    ml.version = ONNX_OPSET_ML;
    graph.name = (char[]){"assay"};
    graph.n_node = g->nodes.n;
    graph.node = (Onnx__NodeProto **)g->nodes.items;
    graph.n_initializer = g->constants.n;
    graph.initializer = (Onnx__TensorProto **)g->constants.items;
    graph.n_input = g->inputs.n;
    graph.input = (Onnx__ValueInfoProto **)g->inputs.items;
    graph.n_output = g->outputs.n;
    graph.output = (Onnx__ValueInfoProto **)g->outputs.items;
    model.has_ir_version = 1;
    model.ir_version = ONNX_IR_VERSION;
    model.n_opset_import = AS_ARRAY_LEN(sets);
    model.opset_import = sets;
    model.producer_name = (char[]){"assay"};
    model.graph = &graph;
    model.n_metadata_props = g->properties.n;
    model.metadata_props = (Onnx__StringStringEntryProto **)g->properties.items;
    return write_model(&model, path, err);
}
