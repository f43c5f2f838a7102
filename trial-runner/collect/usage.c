#include "trial-runner/collect/usage.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static const char *const names[USAGE_KINDS] = {"cpu", "memory_bytes", "gpu", "gpu_memory_bytes"};

static int is_mean(usage_kind k)
{
    return k == USAGE_CPU || k == USAGE_GPU;
}

/* Add `ms` milliseconds of which v is known. */
static void sample_add(struct usage_sample *s, usage_kind k, double ms, double v)
{
    if (ms <= 0)
        return;
    if (is_mean(k))
        s->v[k] = (s->v[k] * s->ms[k] + v * ms) / (s->ms[k] + ms);
    else if (v > s->v[k])
        s->v[k] = v;
    s->ms[k] += ms;
}

/* Each two samples become one. */
static void halve(struct usage *u)
{
    for (size_t i = 0; i < u->n; i += 2) {
        struct usage_sample s = u->samples[i];
        for (usage_kind k = 0; i + 1 < u->n && k < USAGE_KINDS; k++)
            sample_add(&s, k, u->samples[i + 1].ms[k], u->samples[i + 1].v[k]);
        u->samples[i / 2] = s;
    }
    u->n = (u->n + 1) / 2;
    u->every_ms *= 2;
}

void usage_add(struct usage *u, int64_t at_ms, int64_t for_ms, const struct usage_reading *r)
{
    int64_t middle = at_ms - for_ms / 2;
    if (for_ms <= 0 || middle < 0)
        return;
    if (u->every_ms == 0)
        u->every_ms = USAGE_FIRST_MS;
    while (middle / u->every_ms >= USAGE_SAMPLES)
        halve(u);
    size_t at = (size_t)(middle / u->every_ms);
    if (at >= u->n) {
        memset(&u->samples[u->n], 0, (at + 1 - u->n) * sizeof *u->samples);
        u->n = at + 1;
    }
    for (usage_kind k = 0; k < USAGE_KINDS; k++)
        if (r->v[k] >= 0)
            sample_add(&u->samples[at], k, (double)for_ms, r->v[k]);
}

/* Thousandths of cores and GPUs, and whole bytes: more digits cost room and say nothing. */
static json_t *number_of(usage_kind k, double v)
{
    return is_mean(k) ? json_real(round(v * 1000) / 1000) : json_integer((json_int_t)v);
}

json_t *usage_json(const struct usage *u)
{
    json_t *body = json_pack("{s:I}", "every_ms", (json_int_t)u->every_ms);
    for (usage_kind k = 0; k < USAGE_KINDS; k++) {
        JSON_AUTO list = json_array();
        size_t known = 0;
        int bad = list == NULL;
        for (size_t i = 0; i < u->n; i++) {
            const struct usage_sample *s = &u->samples[i];
            known += s->ms[k] > 0;
            bad |= json_array_append_new(list, s->ms[k] > 0 ? number_of(k, s->v[k]) : json_null());
        }
        if (known > 0 || k == USAGE_CPU)
            bad |= json_object_set(body, names[k], list);
        if (bad) {
            json_decref(body);
            return NULL;
        }
    }
    return body;
}
