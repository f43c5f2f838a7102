/* What the built-in trainer would refuse of a sweep document, found before a trial runs.
 *
 * The product of all values is too large to try. So each parameter is tried alone: at each of its
 * choices or at both ends, while the others have their first value. If the space forbids that
 * combination, the others are drawn at random, up to SAMPLE_ROUNDS times. An error that needs two
 * values together is not found here; such a trial fails with the trainer's message. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/template.h"
#include "scheduler/sweep/sweep_resources_priv.h"
#include "scheduler/sweep/sweep_trial_priv.h"

#define TRAIN_AT "/trial/train"
#define SAMPLE_ROUNDS 200

/* A configuration that was tried. */
struct sample {
    char *value; /* of the parameter that was tried, JSON; owned; NULL without a parameter */
    struct faults found;
};

/* The samples of one parameter. */
struct samples {
    int varied; /* the parameter; -1: none */
    struct sample *list;
    size_t n;
    struct faults common; /* what all of them have */
};

/* Those of all parameters that the document may depend on. */
struct trying {
    struct sweep_doc *d;
    struct faults *faults; /* of the document */
    struct samples *list;
    size_t n, n_samples;
};

static void trying_done(struct trying *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct samples *l = &t->list[i];
        for (size_t k = 0; k < l->n; k++) {
            free(l->list[k].value);
            faults_done(&l->list[k].found);
        }
        free(l->list);
        faults_done(&l->common);
    }
    free(t->list);
}

static struct samples *add_samples(struct trying *t, int varied, struct as_err *err)
{
    if (as_grow(&t->list, t->n + 1, sizeof *t->list, err) != AS_OK)
        return NULL;
    t->list[t->n] = (struct samples){.varied = varied};
    return &t->list[t->n++];
}

static bool has_fault(const struct faults *f, const struct as_err *fault)
{
    size_t i = faults_find(f, fault->pointer);
    return i < f->n && as_streq(f->list[i].msg, fault->msg);
}

static as_status keep_common(struct samples *l, const struct faults *found, struct as_err *err)
{
    struct faults *c = &l->common;
    if (l->n > 1) {
        size_t kept = 0;
        for (size_t i = 0; i < c->n; i++)
            if (has_fault(found, &c->list[i]))
                c->list[kept++] = c->list[i];
        c->n = kept;
        return AS_OK;
    }
    as_status st = as_grow(&c->list, found->n, sizeof *c->list, err);
    for (; st == AS_OK && c->n < found->n; c->n++)
        c->list[c->n] = found->list[c->n];
    return st;
}

/* Try a configuration. Faults of the sweep's metrics are noted. */
static as_status add_sample(struct trying *t, const struct config *c, struct samples *l,
                            struct as_err *err)
{
    struct sweep_doc *d = t->d;
    JSON_AUTO params = config_to_json(d->space, c);
    JSON_AUTO train = NULL;
    if (!params)
        return sweep_doc_no_memory(err);
    as_status st = template_apply(d->trial.train, params, &train, err);
    if (st == AS_OK)
        st = as_grow(&l->list, l->n + 1, sizeof *l->list, err);
    if (st < 0)
        return st;
    struct sample *s = &l->list[l->n++];
    *s = (struct sample){0};
    t->n_samples++;
    if (l->varied >= 0) {
        s->value = json_format(json_object_get(params, d->space->params[l->varied].name));
        if (!s->value)
            return sweep_doc_no_memory(err);
    }
    st = sweep_train_parse(d, train, sweep_resources_ranks(d, c), &s->found, t->faults, err);
    bool is_found = s->found.n > 0 && st != AS_E_NOMEM; /* then it is noted later */
    return st == AS_OK || is_found ? keep_common(l, &s->found, err) : st;
}

/* What a fault of a sample says of the document. */
enum saying {
    OF_ANY_VALUE, /* every sample has it: no value is the reason */
    OF_ITS_VALUE, /* some values of this parameter have it, and others do not */
    OF_ANOTHER    /* all values of this parameter have it, but not those of another one */
};

static enum saying saying_of(const struct trying *t, const struct samples *l,
                             const struct as_err *fault)
{
    bool is_general = t->n_samples > 1;
    for (size_t i = 0; i < t->n && is_general; i++)
        is_general = t->list[i].n == 0 || has_fault(&t->list[i].common, fault);
    if (is_general)
        return OF_ANY_VALUE;
    return l->n > 1 && has_fault(&l->common, fault) ? OF_ANOTHER : OF_ITS_VALUE;
}

/* Note a fault, with the value that was tried if it is one of values. */
static as_status note_fault(const struct trying *t, const struct samples *l, const struct sample *s,
                            const struct as_err *fault, bool is_general, struct as_err *err)
{
    *err = *fault;
    as_status st = err->code;
    if (!is_general && l->varied >= 0)
        st = as_err_prefix(err, st, "when %s is %.60s", t->d->space->params[l->varied].name,
                           s->value);
    return faults_note(t->faults, st, err);
}

/* Note the faults of which this is said. */
static as_status note_samples(const struct trying *t, enum saying what, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < t->n; i++) {
        const struct samples *l = &t->list[i];
        for (size_t k = 0; k < l->n; k++) {
            const struct sample *s = &l->list[k];
            for (size_t f = 0; f < s->found.n && st == AS_OK; f++)
                if (saying_of(t, l, &s->found.list[f]) == what)
                    st = note_fault(t, l, s, &s->found.list[f], what == OF_ANY_VALUE, err);
            if (st != AS_OK)
                return st;
        }
    }
    return AS_OK;
}

static union param_value value_at(const struct space_param *p, uint64_t k)
{
    if (param_is_choice(p))
        return (union param_value){.choice = (size_t)k};
    return param_decode(p, k ? 1 : 0);
}

/* Set parameter i to its k-th sample and activate it. The others get their first value, or, if
 * round > 0, a random one. */
static void set_sample(const struct space *s, size_t i, uint64_t k, uint64_t round,
                       struct config *c)
{
    struct rng r;
    rng_init(&r, 0, round);
    for (size_t j = 0; j < s->n; j++)
        c->entries[j].value =
            round ? param_decode(&s->params[j], rng_uniform(&r)) : value_at(&s->params[j], 0);
    c->entries[i].value = value_at(&s->params[i], k);
    space_activate(s, i, c);
    config_settle(s, c);
}

/* Try parameter i at each of its choices, or at both ends, in combinations that the space allows. A
 * sample is skipped if no draw finds an allowed combination: it may never run. */
static as_status try_parameter(struct trying *t, size_t i, struct as_err *err)
{
    const struct space *space = t->d->space;
    const struct space_param *p = &space->params[i];
    uint64_t n = param_is_choice(p) ? p->n_values : 2;
    struct samples *l = add_samples(t, (int)i, err);
    AS_AUTO(config_freep) struct config *c = l ? config_create(space) : NULL;
    if (!c)
        return sweep_doc_no_memory(err);
    for (uint64_t k = 0; k < n; k++) {
        uint64_t round = 0;
        do
            set_sample(space, i, k, round, c);
        while (!space_allows(space, c) && ++round < SAMPLE_ROUNDS);
        if (round == SAMPLE_ROUNDS)
            continue;
        as_status st = add_sample(t, c, l, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* Can the value of parameter i change the document, by its name or through a condition, or the
 * ranks? */
static bool reaches_document(const struct sweep_doc *d, const json_t *names, size_t i)
{
    const struct space *s = d->space;
    if (s->params[i].is_parent || (d->searches_ranks && d->ranks_param == i))
        return true;
    for (size_t k = 0; k < json_array_size(names); k++)
        if (strcmp(json_string_value(json_array_get(names, k)), s->params[i].name) == 0)
            return true;
    return false;
}

/* Does a string of the tree name a parameter that the space lacks? */
static bool names_lacking(const struct sweep_doc *d, const json_t *tree)
{
    JSON_AUTO names = NULL;
    if (template_names(tree, &names, NULL) != AS_OK)
        return true; /* a wrong reference, which was noted */
    for (size_t i = 0; i < json_array_size(names); i++)
        if (!d->space || space_find(d->space, json_string_value(json_array_get(names, i))) < 0)
            return true;
    return false;
}

/* Remove the fields, and the fields of sections, whose value needs a parameter that the space
 * lacks. *ret: were there any? */
static as_status remove_lacking(const struct sweep_doc *d, json_t *tree, int depth, bool *ret,
                                struct as_err *err)
{
    JSON_AUTO keys = json_array();
    for (void *it = json_object_iter(tree); it; it = json_object_iter_next(tree, it))
        if (json_array_append_new(keys, json_string(json_object_iter_key(it))) < 0)
            return sweep_doc_no_memory(err);
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        json_t *value = json_object_get(tree, key);
        if (!names_lacking(d, value))
            continue;
        *ret = true;
        as_status st = AS_OK;
        if (depth == 0 && json_is_object(value))
            st = remove_lacking(d, value, 1, ret, err);
        else
            (void)json_object_del(tree, key);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* The first value of every parameter of the space, as if all were active. */
static json_t *first_values(const struct space *s)
{
    JSON_AUTO params = json_object();
    int bad = 0;
    for (size_t i = 0; s && i < s->n; i++)
        bad |= json_object_set_new(params, s->params[i].name,
                                   param_value_to_json(&s->params[i], value_at(&s->params[i], 0)));
    return bad ? NULL : as_steal(params);
}

/* Was `pointer` removed from the template, or can the fault there follow from what was removed? The
 * bounds of `schedule` are those of other sections. */
static bool is_doubtful(const json_t *whole, const json_t *left, const char *pointer)
{
    static const char schedule[] = TRAIN_AT "/schedule/";
    if (as_starts_with(pointer, schedule))
        return true;
    const char *part = pointer + strlen(TRAIN_AT);
    while (*part == '/' && json_is_object(whole)) {
        char key[AS_ERR_POINTER_MAX];
        size_t n = strcspn(++part, "/");
        (void)snprintf(key, sizeof key, "%.*s", (int)n, part);
        whole = json_object_get(whole, key);
        left = json_object_get(left, key);
        if (whole && !left)
            return true;
        part += n;
    }
    return false;
}

/* Check the fields that no parameter at fault touches, with one value of the other parameters. */
static as_status check_partly(struct sweep_doc *d, struct faults *faults, struct as_err *err)
{
    JSON_AUTO left = json_clone(d->trial.train);
    JSON_AUTO params = first_values(d->space);
    JSON_AUTO train = NULL;
    AS_AUTO(faults_done) struct faults found = {0};
    bool removed = false;
    if (!left || !params)
        return sweep_doc_no_memory(err);
    as_status st = remove_lacking(d, left, 0, &removed, err);
    if (st != AS_OK)
        return st;
    if ((st = template_apply(left, params, &train, err)) != AS_OK)
        return st;
    st = sweep_train_parse(d, train, d->least_ranks, &found, faults, err);
    if (found.n == 0)
        return st;
    for (size_t i = 0; i < found.n; i++) {
        if (removed && is_doubtful(d->trial.train, left, found.list[i].pointer))
            continue;
        *err = found.list[i];
        if ((st = faults_note(faults, err->code, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

/* Every parameter that the document may depend on; without one, any configuration. */
static as_status try_all(struct trying *t, struct as_err *err)
{
    struct sweep_doc *d = t->d;
    JSON_AUTO names = NULL;
    as_status st = template_names(d->trial.train, &names, err);
    for (size_t i = 0; i < d->space->n && st == AS_OK; i++)
        if (reaches_document(d, names, i))
            st = try_parameter(t, i, err);
    if (st != AS_OK || d->n_datasets)
        return st;
    AS_AUTO(config_freep) struct config *c = NULL;
    struct search_spec search;
    sweep_doc_search_spec(d, &search);
    if ((st = search_sample(&search, &c, err)) < 0)
        return st;
    struct samples *l = add_samples(t, -1, err);
    return l ? add_sample(t, c, l, err) : sweep_doc_no_memory(err);
}

/* The first fault of a field is the one that is noted: that of any value before that of one. */
static as_status check_samples(struct sweep_doc *d, struct faults *faults, struct as_err *err)
{
    AS_AUTO(trying_done) struct trying t = {.d = d, .faults = faults};
    as_status st = try_all(&t, err);
    for (int what = OF_ANY_VALUE; what <= OF_ANOTHER && st == AS_OK; what++)
        st = note_samples(&t, (enum saying)what, err);
    return st;
}

as_status sweep_trial_check_train(struct sweep_doc *d, const struct json_fields *doc,
                                  struct as_err *err)
{
    if (d->trial.kind != TRIAL_TRAIN)
        return AS_OK;
    if (d->is_searchable && !names_lacking(d, d->trial.train))
        return check_samples(d, doc->faults, err);
    return check_partly(d, doc->faults, err);
}
