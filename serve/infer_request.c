/* One pass over the JSON. The keys of a tensor may come in any order, and its values need its shape
 * and type: where `data` comes first, its place is noted, it is passed over, and read at the end of
 * the object. The values of binary tensors follow when the JSON has ended, because only then is
 * known that the sizes of all of them are right.
 *
 * Unknown keys and parameters are passed over, as the protocol wants it; but those of extensions
 * that would change the meaning of an answer are refused by name. */
#include "serve/infer_request.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define NAME_SHOWN 80 /* bytes of a name in messages */

/* A tensor while its object is read. */
struct input_scan {
    struct infer_input *in;
    const char *data; /* where its values begin, to be read later; NULL: none noted */
    bool has_name, has_type, has_shape, has_data, has_values, is_binary;
    size_t binary_size;
};

struct request_scan {
    struct json_reader r;
    struct infer_request *ret;
    const char *binary; /* the bytes behind the JSON */
    size_t binary_left;
    struct input_scan *scans; /* [cap], beside ret->inputs */
    size_t cap;
};

static bool is_key(struct json_text t, const char *name)
{
    return t.len == strlen(name) && memcmp(t.s, name, t.len) == 0;
}

/* The name of the tensor for messages. */
static const char *shown(const struct infer_input *in, char buf[NAME_SHOWN + 1])
{
    int n = in->name.len < NAME_SHOWN ? (int)in->name.len : NAME_SHOWN;
    (void)snprintf(buf, NAME_SHOWN + 1, "%.*s", n, in->name.s ? in->name.s : "");
    as_utf8_repair(buf);
    return buf;
}

const char *infer_shape_format(const struct infer_input *in, char *buf)
{
    size_t n = 0;
    for (size_t i = 0; i < in->n_dims; i++)
        n += (size_t)snprintf(buf + n, 200 - n, "%s%zu", i ? ", " : "[", in->shape[i]);
    (void)snprintf(buf + n, 200 - n, "%s", in->n_dims ? "]" : "[]");
    return buf;
}

/* Note that a key was read; a second one of the same name is a fault. */
static bool once(struct json_reader *r, bool *seen, const char *key)
{
    if (*seen)
        return json_reader_fail(r, AS_E_INVAL, "the key '%s' stands twice in one object", key);
    *seen = true;
    return true;
}

/* ---- values in JSON ---- */

static bool read_number(struct json_reader *r, const struct infer_input *in, size_t i, float *ret)
{
    char name[NAME_SHOWN + 1];
    double v;
    bool flag;
    char c = json_reader_peek(r);
    if (c == 'n' && in->type >= TENSOR_FP16) {
        *ret = NAN;
        return json_reader_null(r);
    }
    if (in->type == TENSOR_BOOL && (c == 't' || c == 'f')) {
        bool ok = json_reader_bool(r, "a value", &flag);
        *ret = ok && flag;
        return ok;
    }
    const char *from = r->at;
    if (c == '0' && json_reader_number(r, "a value", &v)) {
        struct json_text text = {from, (size_t)(r->at - from)};
        const char *fault = tensor_number_fault(in->type, text, v);
        *ret = (float)v;
        return !fault || json_reader_fail(r, AS_E_INVAL,
                                          "element %zu of tensor '%s' (%s) is %.*s, expected %s", i,
                                          shown(in, name), tensor_type_name(in->type),
                                          text.len < 40 ? (int)text.len : 40, text.s, fault);
    }
    return json_reader_fail(r, AS_E_INVAL, "element %zu of tensor '%s' is %s, expected %s", i,
                            shown(in, name),
                            c == '"'   ? "a string"
                            : c == '[' ? "an array"
                            : c == '{' ? "an object"
                            : c == 'n' ? "null"
                            : c        ? "true or false"
                                       : "no JSON (NaN and Infinity are none; null is missing)",
                            in->type == TENSOR_BOOL ? "true or false" : "a number");
}

static bool read_text(struct json_reader *r, const struct infer_input *in, size_t i,
                      struct json_text *ret)
{
    char what[NAME_SHOWN + 64], name[NAME_SHOWN + 1];
    if (json_reader_peek(r) == 'n') {
        *ret = (struct json_text){"", 0};
        return json_reader_null(r);
    }
    (void)snprintf(what, sizeof what, "element %zu of tensor '%s'", i, shown(in, name));
    return json_reader_text(r, what, ret);
}

static bool read_element(struct json_reader *r, struct infer_input *in, size_t i)
{
    char name[NAME_SHOWN + 1], shape[200];
    if (i >= in->n)
        return json_reader_fail(r, AS_E_INVAL,
                                "tensor '%s' has more than %zu values, the number of its shape %s",
                                shown(in, name), in->n, infer_shape_format(in, shape));
    return in->type == TENSOR_BYTES ? read_text(r, in, i, &in->texts[i])
                                    : read_number(r, in, i, &in->numbers[i]);
}

/* The values of one dimension; those of all, where they are written in one row. */
static bool read_level(struct json_reader *r, struct infer_input *in, size_t dim, bool *is_nested,
                       size_t *n)
{
    char name[NAME_SHOWN + 1], shape[200];
    bool is_first = true;
    size_t here = 0;
    if (!json_reader_enter(r, '[', "the data of a tensor"))
        return false;
    for (; json_reader_more(r, &is_first); here++) {
        if (dim == 0 && here == 0 && in->n_dims > 1)
            *is_nested = json_reader_peek(r) == '[';
        bool ok = *is_nested && dim + 1 < in->n_dims ? read_level(r, in, dim + 1, is_nested, n)
                                                     : read_element(r, in, (*n)++);
        if (!ok)
            return false;
    }
    if (r->st < 0)
        return false;
    size_t expected = *is_nested ? in->shape[dim] : in->n;
    return here == expected ||
           json_reader_fail(r, AS_E_INVAL,
                            "tensor '%s' has %zu values%s, expected %zu for its shape %s",
                            shown(in, name), here, *is_nested ? " in a dimension" : "", expected,
                            infer_shape_format(in, shape));
}

/* Memory for the values. Each takes two bytes of JSON at least, so that it is bounded by what was
 * sent, whatever the shape says. */
static bool make_room(struct json_reader *r, struct infer_input *in, size_t bytes_left)
{
    char name[NAME_SHOWN + 1], shape[200];
    if (in->n > bytes_left / 2 + 1)
        return json_reader_fail(r, AS_E_INVAL,
                                "tensor '%s' has fewer values than its shape %s says",
                                shown(in, name), infer_shape_format(in, shape));
    if (in->type == TENSOR_BYTES)
        in->texts = arena_alloc(r->arena, in->n, sizeof *in->texts);
    else
        in->numbers = arena_alloc(r->arena, in->n, sizeof *in->numbers);
    return in->texts || in->numbers ||
           json_reader_fail(r, AS_E_NOMEM, "out of memory for tensor '%s'", shown(in, name));
}

static bool read_values(struct json_reader *r, struct input_scan *s)
{
    bool is_nested = false;
    size_t n = 0;
    s->has_values = true;
    return make_room(r, s->in, (size_t)(r->end - r->at)) && read_level(r, s->in, 0, &is_nested, &n);
}

static bool read_data(struct json_reader *r, struct input_scan *s)
{
    if (!once(r, &s->has_data, "data"))
        return false;
    if (s->has_type && s->has_shape)
        return read_values(r, s);
    s->data = r->at;
    return json_reader_skip(r);
}

/* ---- one tensor ---- */

/* A dimension of few digits. Any other text is left to json_reader_count(), whose message needs a
 * name that takes longer to write than the number takes to read. */
static bool read_plain_dimension(struct json_reader *r, size_t *ret)
{
    const char *p = r->at;
    size_t n = 0;
    while (p < r->end && p - r->at < 9 && *p >= '0' && *p <= '9')
        n = n * 10 + (size_t)(*p++ - '0');
    if (p == r->at || *r->at == '0' || p == r->end || (*p != ',' && *p != ']'))
        return false;
    r->at = p;
    *ret = n;
    return true;
}

static bool read_dimension(struct json_reader *r, const struct infer_input *in, size_t *ret)
{
    char name[NAME_SHOWN + 1], what[NAME_SHOWN + 64];
    if (read_plain_dimension(r, ret))
        return true;
    (void)snprintf(what, sizeof what, "dimension %zu in the shape of tensor '%s'", in->n_dims,
                   shown(in, name));
    if (!json_reader_count(r, what, ret))
        return false;
    return *ret > 0 || json_reader_fail(r, AS_E_INVAL, "%s is 0, expected at least 1", what);
}

static bool read_shape(struct json_reader *r, struct input_scan *s)
{
    char name[NAME_SHOWN + 1];
    struct infer_input *in = s->in;
    bool is_first = true;
    if (!once(r, &s->has_shape, "shape") || !json_reader_enter(r, '[', "the shape of a tensor"))
        return false;
    in->n = 1;
    while (json_reader_more(r, &is_first)) {
        if (in->n_dims == TENSOR_MAX_DIMS)
            return json_reader_fail(r, AS_E_INVAL,
                                    "the shape of tensor '%s' has more than %d dimensions",
                                    shown(in, name), TENSOR_MAX_DIMS);
        size_t *dim = &in->shape[in->n_dims];
        if (!read_dimension(r, in, dim))
            return false;
        in->n_dims++;
        if (__builtin_mul_overflow(in->n, *dim, &in->n) || in->n > INT_MAX)
            return json_reader_fail(r, AS_E_TOO_LARGE,
                                    "the shape of tensor '%s' has more than %d elements",
                                    shown(in, name), INT_MAX);
    }
    return r->st == AS_OK;
}

static bool read_type(struct json_reader *r, struct input_scan *s)
{
    char name[NAME_SHOWN + 1];
    struct json_text text;
    if (!once(r, &s->has_type, "datatype") || !json_reader_text(r, "the datatype", &text))
        return false;
    return tensor_type_parse(text, &s->in->type) ||
           json_reader_fail(
               r, AS_E_INVAL,
               "the datatype of tensor '%s' is '%.*s', expected BOOL, UINT8 to UINT64, "
               "INT8 to INT64, FP16, FP32, FP64 or BYTES",
               shown(s->in, name), text.len < 40 ? (int)text.len : 40, text.s);
}

static bool read_input_parameters(struct json_reader *r, struct input_scan *s)
{
    struct json_text key;
    bool is_first = true;
    if (!json_reader_enter(r, '{', "the parameters of a tensor"))
        return false;
    while (json_reader_key(r, &is_first, &key)) {
        if (is_key(key, "binary_data_size")) {
            s->is_binary = true;
            (void)json_reader_count(r, "the parameter binary_data_size", &s->binary_size);
        } else if (is_key(key, "shared_memory_region")) {
            return json_reader_fail(r, AS_E_UNSUPPORTED,
                                    "shared memory is not offered: send the data of the tensor");
        } else {
            (void)json_reader_skip(r);
        }
    }
    return r->st == AS_OK;
}

/* Everything that a tensor must have was read; its values are read now if they came too early. */
static bool end_input(struct json_reader *r, struct input_scan *s)
{
    char name[NAME_SHOWN + 1];
    const char *lacks = !s->has_name    ? "name"
                        : !s->has_type  ? "datatype"
                        : !s->has_shape ? "shape"
                                        : NULL;
    if (lacks)
        return json_reader_fail(r, AS_E_INVAL, "an input ('%s') has no '%s'", shown(s->in, name),
                                lacks);
    if (s->is_binary && s->has_data)
        return json_reader_fail(r, AS_E_INVAL,
                                "tensor '%s' has 'data' and binary_data_size, expected one of them",
                                shown(s->in, name));
    if (!s->is_binary && !s->has_data)
        return json_reader_fail(r, AS_E_INVAL,
                                "tensor '%s' has no 'data', and no parameter binary_data_size",
                                shown(s->in, name));
    if (!s->data)
        return true;
    const char *resume = r->at;
    r->at = s->data;
    bool ok = read_values(r, s);
    r->at = resume;
    return ok;
}

static bool read_input(struct json_reader *r, struct input_scan *s)
{
    struct json_text key;
    bool is_first = true;
    if (!json_reader_enter(r, '{', "an input"))
        return false;
    while (json_reader_key(r, &is_first, &key)) {
        if (is_key(key, "name"))
            (void)(once(r, &s->has_name, "name") &&
                   json_reader_text(r, "the name of an input", &s->in->name));
        else if (is_key(key, "datatype"))
            (void)read_type(r, s);
        else if (is_key(key, "shape"))
            (void)read_shape(r, s);
        else if (is_key(key, "data"))
            (void)read_data(r, s);
        else if (is_key(key, "parameters"))
            (void)read_input_parameters(r, s);
        else
            (void)json_reader_skip(r);
    }
    return r->st == AS_OK && end_input(r, s);
}

/* ---- the request ---- */

/* Room for one more input; both lists move to larger memory of the arena. */
static bool grow_inputs(struct request_scan *q)
{
    struct infer_request *ret = q->ret;
    if (ret->n_inputs < q->cap)
        return true;
    if (q->cap >= INFER_MAX_INPUTS)
        return json_reader_fail(&q->r, AS_E_TOO_LARGE, "there are more than %d inputs",
                                INFER_MAX_INPUTS);
    size_t cap = q->cap ? q->cap * 4 : 16;
    struct infer_input *inputs = arena_alloc(q->r.arena, cap, sizeof *inputs);
    struct input_scan *scans = arena_alloc(q->r.arena, cap, sizeof *scans);
    if (!inputs || !scans)
        return json_reader_fail(&q->r, AS_E_NOMEM, "out of memory for the inputs");
    for (size_t i = 0; i < ret->n_inputs; i++) {
        inputs[i] = ret->inputs[i];
        scans[i] = q->scans[i];
        scans[i].in = &inputs[i];
    }
    ret->inputs = inputs;
    q->scans = scans;
    q->cap = cap;
    return true;
}

static bool read_inputs(struct request_scan *q)
{
    bool is_first = true;
    if (!json_reader_enter(&q->r, '[', "'inputs'"))
        return false;
    while (json_reader_more(&q->r, &is_first)) {
        if (!grow_inputs(q))
            return false;
        size_t i = q->ret->n_inputs++;
        q->scans[i] = (struct input_scan){.in = &q->ret->inputs[i]};
        if (!read_input(&q->r, &q->scans[i]))
            return false;
    }
    return q->r.st == AS_OK;
}

static bool read_output_parameters(struct json_reader *r, struct infer_wish *w)
{
    struct json_text key;
    bool is_first = true;
    if (!json_reader_enter(r, '{', "the parameters of an output"))
        return false;
    while (json_reader_key(r, &is_first, &key)) {
        if (is_key(key, "binary_data"))
            (void)json_reader_bool(r, "the parameter binary_data", &w->is_binary);
        else if (is_key(key, "classification"))
            return json_reader_fail(r, AS_E_UNSUPPORTED,
                                    "the extension 'classification' is not offered: ask for the "
                                    "outputs 'predictions' and 'probabilities'");
        else if (is_key(key, "shared_memory_region"))
            return json_reader_fail(r, AS_E_UNSUPPORTED, "shared memory is not offered");
        else
            (void)json_reader_skip(r);
    }
    return r->st == AS_OK;
}

static bool read_wish(struct json_reader *r, struct infer_wish *w)
{
    struct json_text key;
    bool is_first = true;
    if (!json_reader_enter(r, '{', "an output"))
        return false;
    while (json_reader_key(r, &is_first, &key)) {
        if (is_key(key, "name"))
            (void)json_reader_text(r, "the name of an output", &w->name);
        else if (is_key(key, "parameters"))
            (void)read_output_parameters(r, w);
        else
            (void)json_reader_skip(r);
    }
    return r->st == AS_OK &&
           (w->name.s || json_reader_fail(r, AS_E_INVAL, "an output has no 'name'"));
}

static bool read_wishes(struct request_scan *q)
{
    bool is_first = true;
    if (!once(&q->r, &q->ret->has_wishes, "outputs") || !json_reader_enter(&q->r, '[', "'outputs'"))
        return false;
    while (json_reader_more(&q->r, &is_first)) {
        if (q->ret->n_wishes == INFER_MAX_OUTPUTS)
            return json_reader_fail(&q->r, AS_E_TOO_LARGE, "there are more than %d outputs",
                                    INFER_MAX_OUTPUTS);
        struct infer_wish *w = &q->ret->wishes[q->ret->n_wishes++];
        *w = (struct infer_wish){.is_binary = q->ret->is_binary};
        if (!read_wish(&q->r, w))
            return false;
    }
    return q->r.st == AS_OK;
}

static bool read_parameters(struct request_scan *q)
{
    struct json_text key;
    bool is_first = true;
    if (!json_reader_enter(&q->r, '{', "'parameters'"))
        return false;
    while (json_reader_key(&q->r, &is_first, &key)) {
        if (is_key(key, "binary_data_output"))
            (void)json_reader_bool(&q->r, "the parameter binary_data_output", &q->ret->is_binary);
        else
            (void)json_reader_skip(&q->r);
    }
    return q->r.st == AS_OK;
}

static bool read_id(struct request_scan *q)
{
    if (!once(&q->r, &q->ret->has_id, "id") || !json_reader_text(&q->r, "'id'", &q->ret->id))
        return false;
    return q->ret->id.len <= INFER_MAX_ID ||
           json_reader_fail(&q->r, AS_E_TOO_LARGE, "'id' has %zu bytes, expected at most %d",
                            q->ret->id.len, INFER_MAX_ID);
}

/* binary_data_output may stand behind the outputs, which it is the default of. */
static bool read_outputs_and_parameters(struct request_scan *q, const char *wishes)
{
    if (!wishes)
        return true;
    const char *resume = q->r.at;
    q->r.at = wishes;
    bool ok = read_wishes(q);
    q->r.at = resume;
    return ok;
}

static bool read_request(struct request_scan *q)
{
    struct json_text key;
    const char *wishes = NULL;
    bool is_first = true, has_inputs = false, has_parameters = false;
    if (!json_reader_enter(&q->r, '{', "the request"))
        return false;
    while (json_reader_key(&q->r, &is_first, &key)) {
        if (is_key(key, "id")) {
            (void)read_id(q);
        } else if (is_key(key, "inputs")) {
            (void)(once(&q->r, &has_inputs, "inputs") && read_inputs(q));
        } else if (is_key(key, "outputs")) {
            bool is_second = wishes != NULL;
            wishes = q->r.at;
            (void)((!is_second || once(&q->r, &is_second, "outputs")) && json_reader_skip(&q->r));
        } else if (is_key(key, "parameters")) {
            (void)(once(&q->r, &has_parameters, "parameters") && read_parameters(q));
        } else {
            (void)json_reader_skip(&q->r);
        }
    }
    if (q->r.st == AS_OK && q->ret->n_inputs == 0)
        return json_reader_fail(&q->r, AS_E_INVAL, "the request has no 'inputs'");
    return q->r.st == AS_OK && read_outputs_and_parameters(q, wishes);
}

/* ---- values behind the JSON ---- */

static bool take_texts(struct request_scan *q, struct infer_input *in, const char *p, size_t size)
{
    char name[NAME_SHOWN + 1];
    size_t at = 0;
    in->texts = in->n <= size / 4 ? arena_alloc(q->r.arena, in->n, sizeof *in->texts) : NULL;
    if (!in->texts && in->n <= size / 4)
        return json_reader_fail(&q->r, AS_E_NOMEM, "out of memory for tensor '%s'",
                                shown(in, name));
    for (size_t i = 0; in->texts && i < in->n; i++) {
        uint32_t len = 0;
        if (size - at < sizeof len)
            return json_reader_fail(&q->r, AS_E_INVAL, "tensor '%s' ends within element %zu",
                                    shown(in, name), i);
        memcpy(&len, p + at, sizeof len);
        at += sizeof len;
        if (len > size - at)
            return json_reader_fail(&q->r, AS_E_INVAL,
                                    "element %zu of tensor '%s' says it has %u bytes, but %zu are "
                                    "left",
                                    i, shown(in, name), (unsigned)len, size - at);
        if (len && !as_utf8_valid(p + at, len))
            return json_reader_fail(&q->r, AS_E_INVAL,
                                    "element %zu of tensor '%s' is not valid UTF-8", i,
                                    shown(in, name));
        in->texts[i] = (struct json_text){p + at, len};
        at += len;
    }
    return (in->texts && at == size) ||
           json_reader_fail(&q->r, AS_E_INVAL,
                            "tensor '%s' has %zu bytes, which are not %zu texts with their lengths",
                            shown(in, name), size, in->n);
}

static bool take_numbers(struct request_scan *q, struct infer_input *in, const char *p, size_t size)
{
    char name[NAME_SHOWN + 1], shape[200];
    if (in->n * tensor_type_size(in->type) != size)
        return json_reader_fail(&q->r, AS_E_INVAL,
                                "tensor '%s' has a binary_data_size of %zu, expected %zu for %s %s",
                                shown(in, name), size, in->n * tensor_type_size(in->type),
                                tensor_type_name(in->type), infer_shape_format(in, shape));
    in->numbers = arena_alloc(q->r.arena, in->n, sizeof *in->numbers);
    if (!in->numbers)
        return json_reader_fail(&q->r, AS_E_NOMEM, "out of memory for tensor '%s'",
                                shown(in, name));
    tensor_numbers_decode(in->type, p, in->n, in->numbers);
    for (size_t i = 0; i < in->n; i++)
        if (isinf(in->numbers[i]))
            return json_reader_fail(&q->r, AS_E_INVAL,
                                    "element %zu of tensor '%s' is infinite, or too large for "
                                    "float32",
                                    i, shown(in, name));
    return true;
}

static bool take_binary(struct request_scan *q)
{
    char name[NAME_SHOWN + 1];
    for (size_t i = 0; i < q->ret->n_inputs; i++) {
        const struct input_scan *s = &q->scans[i];
        if (!s->is_binary)
            continue;
        if (s->binary_size > q->binary_left)
            return json_reader_fail(&q->r, AS_E_INVAL,
                                    "tensor '%s' has a binary_data_size of %zu, but %zu bytes are "
                                    "left behind the JSON",
                                    shown(s->in, name), s->binary_size, q->binary_left);
        bool ok = s->in->type == TENSOR_BYTES ? take_texts(q, s->in, q->binary, s->binary_size)
                                              : take_numbers(q, s->in, q->binary, s->binary_size);
        if (!ok)
            return false;
        q->binary += s->binary_size;
        q->binary_left -= s->binary_size;
    }
    return q->binary_left == 0 ||
           json_reader_fail(&q->r, AS_E_INVAL,
                            "%zu bytes behind the JSON belong to no tensor: compare "
                            "Inference-Header-Content-Length and binary_data_size",
                            q->binary_left);
}

as_status infer_request_parse(const char *body, size_t len, size_t json_len, struct arena *arena,
                              struct infer_request *ret, struct as_err *err)
{
    struct request_scan q = {.ret = ret};
    if (json_len > len)
        return as_fail(err, AS_E_INVAL,
                       "Inference-Header-Content-Length is %zu, but the body has %zu bytes",
                       json_len, len);
    *ret = (struct infer_request){0};
    json_reader_init(&q.r, body, json_len, arena);
    q.binary = body + json_len;
    q.binary_left = len - json_len;
    (void)read_request(&q);
    as_status st = json_reader_end(&q.r, err);
    if (st < 0)
        return st;
    if (!take_binary(&q)) {
        if (err)
            *err = q.r.err;
        return q.r.st;
    }
    return AS_OK;
}
