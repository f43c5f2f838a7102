#include "scheduler/shape.h"

#include <string.h>

#include "base/json.h"
#include "base/spec/template.h"
#include "base/spec/train_spec.h"
#include "base/str.h"
#include "scheduler/sweeps_priv.h"

struct source {
    char *name;
    struct dataset_info info;
};

struct shaper {
    json_t *train; /* owned: the template */
    struct source *sources;
    size_t n;
};

void shaper_free(struct shaper *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        free(s->sources[i].name);
        dataset_info_done(&s->sources[i].info);
    }
    free(s->sources);
    json_decref(s->train);
    free(s);
}

as_status shaper_create(const json_t *document, const struct dataset_row *datasets, size_t n,
                        struct shaper **ret, struct as_err *err)
{
    json_t *train = json_object_get(json_object_get(document, "trial"), "train");
    AS_AUTO(shaper_freep) struct shaper *s = NULL;
    *ret = NULL;
    if (!train)
        return AS_OK;
    s = as_calloc(1, sizeof *s);
    if (s)
        s->sources = as_calloc(n ? n : 1, sizeof *s->sources);
    if (!s || !s->sources)
        return as_fail(err, AS_E_NOMEM, "out of memory for the shapes of a sweep");
    s->train = json_incref(train);
    for (size_t i = 0; i < n; i++) {
        struct source *x = &s->sources[s->n++];
        as_status st = dataset_row_info(&datasets[i], &x->info, err);
        x->name = st == AS_OK ? as_strdup(datasets[i].name) : NULL;
        if (st == AS_E_NOMEM || (st == AS_OK && !x->name))
            return as_fail(err, AS_E_NOMEM, "out of memory for the shapes of a sweep");
    }
    *ret = as_steal(s);
    return AS_OK;
}

static const struct dataset_info *find(const struct shaper *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->sources[i].name && as_streq(s->sources[i].name, name))
            return &s->sources[i].info;
    return NULL;
}

/* Multi-layer perceptrons and linear models: the widths, and what a group has in common. */
static int64_t describe(const struct train_spec *spec, const struct dataset_info *data,
                        struct str *out)
{
    const struct train_model_spec *m = &spec->model;
    int64_t in = (int64_t)data->n_features, last = (int64_t)data->n_outputs;
    int64_t rows = spec->batch_size, params = 0, values = in;
    str_printf(out, "%s:mlp:%lld", spec->dataset, (long long)in);
    for (size_t i = 0; i < m->n_layers; i++) {
        str_printf(out, "-%lld", (long long)m->layers[i]);
        params += (in + 1) * m->layers[i];
        in = m->layers[i];
        values += 2 * in;
    }
    params += (in + 1) * last;
    str_printf(out, "-%lld:%d:b%lld:l%d:s%g/%lld:z%d", (long long)last, (int)m->activation,
               (long long)rows, (int)train_spec_loss(spec, data->task), spec->validation_fraction,
               (long long)spec->validation_seed, (int)spec->standardize);
    return 4 * (4 * params + rows * (values + 2 * last));
}

as_status shaper_shape(const struct shaper *s, struct arena *a, const json_t *params,
                       struct trial_shape *ret, struct as_err *err)
{
    struct train_spec spec = {0};
    AS_AUTO(str_done) struct str text = {0};
    JSON_AUTO train = NULL;
    struct as_err why = {0};
    *ret = (struct trial_shape){0};
    if (!s)
        return AS_OK;
    as_status st = template_apply(s->train, params, &train, &why);
    if (st == AS_OK)
        st = train_spec_parse(train, "/trial/train", &spec, &why);
    const struct dataset_info *data = st == AS_OK ? find(s, spec.dataset) : NULL;
    if (data)
        st = train_spec_check(&spec, data, "/trial/train", &why);
    if (st == AS_E_NOMEM)
        return as_fail(err, st, "%s", why.msg);
    if (st != AS_OK || !data)
        return AS_OK;
    ret->bytes_per_member = describe(&spec, data, &text);
    st = str_check(&text, err);
    if (st != AS_OK || text.len > SHAPE_MAX)
        return st;
    ret->text = arena_strdup(a, str_cstr(&text));
    return ret->text ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}
