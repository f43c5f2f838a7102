/* The trial's document is formed, parsed, checked and planned as the trainer will do it, and the
 * plan gives signature and memory (decision 2001). A document that cannot be planned has no shape:
 * it begins alone, and the trainer says what is wrong. Models of trees, folds and stages of
 * boosting have no shape, because each has a process of its own. */
#include "scheduler/assign/shape.h"

#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "model/plan/plan_check.h"
#include "model/plan/memory.h"
#include "model/plan/pad.h"
#include "model/plan/plan.h"
#include "model/plan/signature.h"
#include "base/template.h"
#include "model/document/train_spec.h"
#include "base/str.h"

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

static const struct dataset_info *find_dataset(const struct shaper *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->sources[i].name && as_streq(s->sources[i].name, name))
            return &s->sources[i].info;
    return NULL;
}

/* Memory of a member of a group of that shape, with the most padding that it may need. */
static as_status member_bytes(const struct train_spec *spec, const struct net_data *data,
                              int64_t *ret, struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *own = NULL, *widest = NULL;
    struct net_bytes bytes;
    as_status st = net_plan_create(spec, data, "/trial/train", &own, err);
    if (st != AS_OK)
        return st;
    st = net_plan_widest(own, &widest, err);
    if (st != AS_OK)
        return st;
    net_plan_bytes(widest, spec, data, widest->buffer_rows, &bytes);
    *ret = (int64_t)bytes.member;
    return AS_OK;
}

/* Shorten a text that is too long for the table: its end becomes a digest of the whole text. */
static as_status shorten_text(struct str *text, struct as_err *err)
{
    char hex[SHA256_HEX_SIZE];
    as_status st = str_check(text, err);
    if (st != AS_OK || text->len <= SHAPE_MAX)
        return st;
    st = sha256_of(text->s, text->len, hex, err);
    if (st != AS_OK)
        return st;
    text->len = SHAPE_MAX - sizeof hex - 8;
    text->s[text->len] = 0;
    str_printf(text, "... #%s", hex);
    return str_check(text, err);
}

/* AS_E_INVAL and similar errors: the trainer would refuse the document. */
static as_status describe_shape(const struct shaper *s, const json_t *train, struct str *text,
                                int64_t *ret_bytes, struct as_err *err)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    as_status st = train_spec_parse(train, "/trial/train", &spec, err);
    if (st != AS_OK)
        return st;
    const struct dataset_info *info = find_dataset(s, spec.dataset);
    if (!info)
        return as_fail(err, AS_E_NOT_FOUND, "there is no data set '%s'", spec.dataset);
    st = train_spec_check(&spec, info, "/trial/train", err);
    if (st != AS_OK)
        return st;
    if (!train_model_is_network(&spec.model)) /* each round uses every thread: nothing to share */
        return as_fail(err, AS_E_UNSUPPORTED, "models of trees have no shape");
    const struct net_data data = net_data_for(info, &spec);
    st = member_bytes(&spec, &data, ret_bytes, err);
    if (st != AS_OK)
        return st;
    if (spec.folds > 0 || spec.boost.given)
        return AS_OK; /* no shape: its trainings have a process of their own */
    net_signature(&spec, &data, text);
    return shorten_text(text, err);
}

as_status shaper_shape(const struct shaper *s, struct arena *a, const json_t *params,
                       struct trial_shape *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str text = {0};
    JSON_AUTO train = NULL;
    struct as_err why = {0};
    int64_t bytes = 0;
    *ret = (struct trial_shape){0};
    if (!s)
        return AS_OK;
    as_status st = template_apply(s->train, params, &train, &why);
    if (st == AS_OK)
        st = describe_shape(s, train, &text, &bytes, &why);
    if (st == AS_E_NOMEM)
        return as_fail(err, st, "%s", why.msg);
    if (st != AS_OK)
        return AS_OK;
    if (text.len == 0)
        return AS_OK; /* bytes belong to a shape */
    ret->bytes_per_member = bytes;
    ret->text = arena_strdup(a, str_cstr(&text));
    return ret->text ? AS_OK : as_fail_nomem(err);
}
