/* The parser of `train.privacy`, and what does not go with it.
 *
 * What is promised (model/network/privacy_account.h) rests on three things: a row changes nothing
 * but its own gradient, all of a step's noise is in whatever follows from its gradients, and a row
 * counts once in a step. Whatever breaks one of them is refused here, and not left to a warning:
 * the epsilon that is reported would be wrong. */
#include <float.h>
#include <stdio.h>

#include "model/document/train_spec_priv.h"

#define LEAST_NOISE 0.01
#define MOST_NOISE 1000
#define MOST_DELTA 0.1

static bool has_batch_norm(const struct train_model_spec *m)
{
    bool norm = m->kind == TRAIN_MLP && m->batch_norm;
    for (size_t i = 0; m->kind == TRAIN_CNN && i < m->n_blocks; i++)
        norm = norm || m->blocks[i].batch_norm;
    return norm;
}

/* What in the document does not go with it, and why; NULL: nothing. */
static const char *obstacle(const struct train_spec *s, const char **ret_why)
{
    const struct train_clash list[] = {
        {train_model_is_trees(&s->model), "trees", "they have no gradients of rows"},
        {s->model.kind == TRAIN_NAIVE_BAYES, "naive_bayes", "it has no gradients of rows"},
        {s->model.kind == TRAIN_KNN, "knn", "its model is the rows themselves"},
        {has_batch_norm(&s->model), "batch normalisation",
         "there a row changes the gradients of the others"},
        {s->weights != NULL, "weights", "a row's gradient is clipped, whatever its weight"},
        {s->balanced || s->n_class_weights > 0, "class_weights",
         "a row's gradient is clipped, whatever its weight"},
        {s->resample > 0, "resample", "a row may be there several times"},
        {s->boost.given, "boost", "a stage is fitted to what others have learned from the rows"},
        {s->folds > 0, "validation.folds", "a row is in several trainings"},
    };
    const struct train_clash *first = train_spec_find_clash(list, AS_ARRAY_LEN(list));
    if (!first)
        return NULL;
    *ret_why = first->why;
    return first->what;
}

/* Where ranks use a gradient before all of its noise is there, or may use a batch twice. */
static const char *obstacle_of_ranks(const struct distributed_spec *d, const char **ret_why)
{
    *ret_why = "each shard's gradient is used before the noise of the others is added; expected "
               "allreduce, or server with mode sync";
    if (d->strategy == DISTRIBUTED_LOCAL_SGD)
        return "distributed.local_sgd";
    if (d->strategy == DISTRIBUTED_GOSSIP)
        return "distributed.gossip";
    if (d->codec != DISTRIBUTED_PLAIN)
        return "distributed.compress";
    if (d->factors != DISTRIBUTED_FACTORS_NEVER) {
        *ret_why = "factors are of a gradient that is neither clipped nor has noise";
        return "distributed.sufficient_factors";
    }
    if (d->strategy != DISTRIBUTED_SERVER)
        return NULL;
    if (d->mode == DISTRIBUTED_SSP && d->staleness > 0)
        return "distributed.server.mode ssp";
    if (d->backup > 0)
        return "distributed.server.backup";
    *ret_why =
        "a batch counts twice when a rank dies; expected allreduce, or server with mode sync";
    return d->groups > 0                  ? "distributed.groups"
           : d->mode == DISTRIBUTED_ASYNC ? "distributed.server.mode async"
                                          : NULL;
}

static as_status check(const struct json_fields *f, const struct train_spec *s, struct as_err *err)
{
    const char *why = NULL, *what = obstacle(s, &why);
    if (!what)
        what = obstacle_of_ranks(&s->distributed, &why);
    if (!what)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, f->pointer, "%s: found with %s: %s", f->pointer, what, why);
}

as_status train_spec_parse_privacy(struct json_fields *doc, struct train_spec *spec,
                                   struct as_err *err)
{
    struct train_privacy_spec p = {.delta = 1e-5};
    struct json_fields f;
    as_status st = train_spec_section(doc, "privacy", &f, &p.given, err);
    if (st < 0 || !p.given)
        return st;
    const struct train_number delta = {"delta", DBL_MIN, MOST_DELTA, &p.delta};
    if ((st = json_fields_double(&f, "clip", JSON_REQUIRED, FLT_MIN, TRAIN_LARGEST_RATE, &p.clip,
                                 err)) != AS_OK ||
        (st = json_fields_double(&f, "noise", JSON_REQUIRED, LEAST_NOISE, MOST_NOISE, &p.noise,
                                 err)) != AS_OK ||
        (st = train_spec_numbers(&f, &delta, 1, err)) != AS_OK ||
        (st = json_fields_end(&f, err)) != AS_OK)
        return st;
    if (f.faults && f.faults->n > 0)
        return AS_OK; /* a field that the rules read may be at fault */
    if ((st = check(&f, spec, err)) == AS_OK)
        spec->privacy = p;
    return st;
}
