/* Answers are written straight into their bytes, because a tree of JSON values costs more than the
 * prediction.
 *
 * Any float is known by nine digits (FLT_DECIMAL_DIG). They are taken from the value times a power
 * of ten as a double: the error of that is far below half of the last digit's distance to the next
 * float, so that the text reads back as the same float. */
#include "serve/infer_answer.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DIGITS 9

/* "0.000123" and "123000000" are written out, smaller and larger numbers with an exponent. */
static size_t place_point(char *to, const char *digits, int n, int exponent)
{
    size_t len = 0;
    if (exponent < 0) {
        memcpy(to, "0.000000", (size_t)(1 - exponent));
        len = (size_t)(1 - exponent);
        memcpy(to + len, digits, (size_t)n);
        return len + (size_t)n;
    }
    for (int i = 0; i < n || i <= exponent; i++) {
        if (i == exponent + 1)
            to[len++] = '.';
        to[len++] = i < n ? digits[i] : '0';
    }
    return len;
}

void infer_float_write(struct str *b, float v)
{
    static const double tens[] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5,  1e6,
                                  1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
    char text[48], digits[DIGITS + 1];
    double a = fabs((double)v);
    size_t len = 0;
    if (!isfinite(v)) {
        str_add(b, "null", 4);
        return;
    }
    if (a == 0) {
        str_add(b, signbit(v) ? "-0.0" : "0.0", signbit(v) ? 4 : 3);
        return;
    }
    if (a < 1e-4 || a >= 1e8) {
        len = (size_t)snprintf(text, sizeof text, "%.9g", (double)v);
        str_add(b, text, len);
        return;
    }
    int exponent = 0; /* of the first digit */
    for (; exponent < 8 && a >= tens[exponent + 1]; exponent++)
        ;
    for (; a * tens[-exponent < 0 ? 0 : -exponent] < 1; exponent--)
        ;
    uint64_t m = (uint64_t)(a * tens[DIGITS - 1 - exponent] + 0.5);
    if (m >= 1000000000) {
        m /= 10;
        exponent++;
    }
    for (int i = DIGITS - 1; i >= 0; i--, m /= 10)
        digits[i] = (char)('0' + m % 10);
    int n = DIGITS;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (v < 0)
        text[len++] = '-';
    len += place_point(text + len, digits, n, exponent);
    if (n <= exponent + 1) {
        text[len++] = '.';
        text[len++] = '0';
    }
    str_add(b, text, len);
}

void infer_text_write(struct str *b, const char *s, size_t len)
{
    size_t from = 0;
    str_putc(b, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        str_add(b, s + from, i - from);
        if (c < 0x20)
            str_printf(b, "\\u%04x", c);
        else
            str_printf(b, "\\%c", c);
        from = i + 1;
    }
    if (len > from)
        str_add(b, s + from, len - from);
    str_putc(b, '"');
}

/* ---- tensors ---- */

struct out_tensor {
    schema_output kind;
    bool is_binary;
};

struct answer {
    const struct model_schema *s;
    const float *out;
    size_t rows;
    struct str *ret;
};

static bool is_labels(const struct answer *a, schema_output kind)
{
    return kind == SCHEMA_OUT_PREDICTIONS && a->s->info->task == DATASET_CLASSIFICATION;
}

static const char *label_of(const struct answer *a, size_t row)
{
    const float *p = a->out + row * a->s->outputs;
    return a->s->info->classes[model_combine_class(a->s->combine, p, a->s->outputs)];
}

static size_t binary_size(const struct answer *a, schema_output kind)
{
    size_t size = 0;
    if (!is_labels(a, kind))
        return a->rows * a->s->outputs * sizeof *a->out;
    for (size_t i = 0; i < a->rows; i++)
        size += sizeof(uint32_t) + strlen(label_of(a, i));
    return size;
}

static void write_bytes(const struct answer *a, schema_output kind)
{
    if (!is_labels(a, kind)) {
        str_add(a->ret, (const char *)a->out, binary_size(a, kind));
        return;
    }
    for (size_t i = 0; i < a->rows; i++) {
        const char *label = label_of(a, i);
        uint32_t len = (uint32_t)strlen(label);
        str_add(a->ret, (const char *)&len, sizeof len);
        str_add(a->ret, label, len);
    }
}

static void write_data(const struct answer *a, schema_output kind)
{
    struct str *b = a->ret;
    str_puts(b, ",\"data\":[");
    if (is_labels(a, kind))
        for (size_t i = 0; i < a->rows; i++) {
            const char *label = label_of(a, i);
            if (i)
                str_putc(b, ',');
            infer_text_write(b, label, strlen(label));
        }
    else
        for (size_t i = 0; i < a->rows * a->s->outputs; i++) {
            if (i)
                str_putc(b, ',');
            infer_float_write(b, a->out[i]);
        }
    str_puts(b, "]}");
}

/* str_printf() would take longer than a prediction. */
static void write_count(struct str *b, size_t n)
{
    char text[24];
    size_t at = sizeof text;
    do
        text[--at] = (char)('0' + n % 10);
    while (n /= 10);
    str_add(b, text + at, sizeof text - at);
}

static void write_tensor(const struct answer *a, struct out_tensor t)
{
    struct str *b = a->ret;
    bool labels = is_labels(a, t.kind);
    bool one = labels || (t.kind == SCHEMA_OUT_PREDICTIONS && a->s->outputs == 1);
    str_puts(b, t.kind == SCHEMA_OUT_PREDICTIONS
                    ? "{\"name\":\"" SCHEMA_PREDICTIONS "\",\"shape\":["
                    : "{\"name\":\"" SCHEMA_PROBABILITIES "\",\"shape\":[");
    write_count(b, a->rows);
    if (!one) {
        str_putc(b, ',');
        write_count(b, a->s->outputs);
    }
    str_puts(b, labels ? "],\"datatype\":\"BYTES\"" : "],\"datatype\":\"FP32\"");
    if (!t.is_binary) {
        write_data(a, t.kind);
        return;
    }
    str_puts(b, ",\"parameters\":{\"binary_data_size\":");
    write_count(b, binary_size(a, t.kind));
    str_puts(b, "}}");
}

/* The tensors of the answer: those that were asked for, or all. */
static size_t list_tensors(const struct model_schema *s, const struct infer_request *q,
                           struct out_tensor *ret)
{
    size_t n = 0;
    for (; n < q->n_wishes; n++) {
        ret[n].is_binary = q->wishes[n].is_binary;
        (void)model_schema_output(s, q->wishes[n].name, &ret[n].kind);
    }
    if (q->n_wishes)
        return n;
    ret[n++] = (struct out_tensor){SCHEMA_OUT_PREDICTIONS, q->is_binary};
    if (s->info->task == DATASET_CLASSIFICATION)
        ret[n++] = (struct out_tensor){SCHEMA_OUT_PROBABILITIES, q->is_binary};
    return n;
}

as_status infer_answer_write(const struct model_schema *s, const char *model, const char *version,
                             const struct infer_request *q, const float *out, size_t rows,
                             struct str *ret, size_t *ret_json_len, struct as_err *err)
{
    const struct answer a = {s, out, rows, ret};
    struct out_tensor tensors[INFER_MAX_OUTPUTS];
    size_t n = list_tensors(s, q, tensors), begin = ret->len;
    str_puts(ret, "{\"model_name\":");
    infer_text_write(ret, model, strlen(model));
    str_puts(ret, ",\"model_version\":");
    infer_text_write(ret, version, strlen(version));
    if (q->has_id) {
        str_puts(ret, ",\"id\":");
        infer_text_write(ret, q->id.s, q->id.len);
    }
    str_puts(ret, ",\"outputs\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_putc(ret, ',');
        write_tensor(&a, tensors[i]);
    }
    str_puts(ret, "]}");
    *ret_json_len = ret->len - begin;
    for (size_t i = 0; i < n; i++)
        if (tensors[i].is_binary)
            write_bytes(&a, tensors[i].kind);
    return str_check(ret, err);
}
