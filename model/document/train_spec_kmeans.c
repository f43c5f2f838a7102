/* `model: {kind: kmeans}`: its fields, and what does not go with it. It has no target, no loss to
 * choose, no gradient and no step size: fields about these are refused, because no other kind that
 * a sweep could search over beside it shares a metric with it. */
#include "model/document/train_spec_priv.h"

#define MAX_CLUSTERS 4096
#define EPOCHS 300 /* scikit-learn's max_iter */

static const char *const init_words[] = {"k-means++", "random", NULL};

bool train_model_is_kmeans(const struct train_model_spec *m)
{
    return m->kind == TRAIN_KMEANS;
}

as_status train_spec_parse_kmeans(struct json_fields *f, struct train_model_spec *m,
                                  struct as_err *err)
{
    struct train_kmeans_spec *k = &m->kmeans;
    int init = 0;
    *k = (struct train_kmeans_spec){.clusters = 8, .tolerance = 1e-4};
    const struct train_integer clusters = {"clusters", 2, MAX_CLUSTERS, &k->clusters};
    const struct train_number tolerance = {"tolerance", 0, TRAIN_LARGEST_RATE, &k->tolerance};
    as_status st = train_spec_integers(f, &clusters, 1, err);
    if (st == AS_OK)
        st = train_spec_numbers(f, &tolerance, 1, err);
    if (st == AS_OK)
        st = json_fields_word(f, "init", JSON_OPTIONAL, init_words, &init, err);
    k->random = init == 1;
    return st;
}

/* A field, and why it does not go with k-means. */
struct refused {
    const char *section; /* NULL: a field of the document itself */
    const char *name, *why;
};

static const struct refused refused[] = {
    {NULL, "loss", "it minimises squared distances"},
    {NULL, "label_smoothing", "it has no classes"},
    {NULL, "huber_delta", "it minimises squared distances"},
    {NULL, "class_weights", "it has no classes"},
    {NULL, "weights", "its rows count alike"},
    {NULL, "target", "it has no target"},
    {NULL, "numbers", "its distances are of the numbers themselves"},
    {NULL, "stack", "clusters of different folds are not the same"},
    {NULL, "optimizer", "it has no gradients"},
    {NULL, "schedule", "it has no learning rate"},
    {NULL, "augment", "its rows are the same in each iteration"},
    {NULL, "batch_size", "each iteration is of all rows"},
    {NULL, "micro_batch", "each iteration is of all rows"},
    {NULL, "resample", "its rows count alike"},
    {NULL, "buckets", "clusters of different models are not the same, so no ensemble has them"},
    {NULL, "boost", "a stage fits what others miss of a target"},
    {NULL, "patience", "it ends when its centroids stay (model.tolerance)"},
    {NULL, "privacy", "it has no gradients of rows"},
    {"model", "dropout", "it is no network"},
    {"model", "embedding", "its inputs are one-hot"},
    {"model", "solver", "it is for linear models"},
    {"validation", "folds", "clusters of different folds are not the same"},
    {"validation", "refit", "clusters of different folds are not the same"},
};

static as_status refuse(const char *pointer, const char *name, const json_t *found, const char *why,
                        struct as_err *err)
{
    char expected[160];
    (void)snprintf(expected, sizeof expected, "no such field with the kind kmeans: %s", why);
    return train_spec_wrong(pointer, name, found, expected, err);
}

static as_status check_fields(const struct json_fields *doc, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(refused); i++) {
        const struct refused *r = &refused[i];
        const json_t *in = r->section ? json_object_get(doc->obj, r->section) : doc->obj;
        const json_t *found = json_object_get(in, r->name);
        char at[AS_ERR_POINTER_MAX];
        if (!found || json_is_null(found))
            continue;
        if (!r->section)
            return refuse(doc->pointer, r->name, found, r->why, err);
        json_pointer_child(doc->pointer, r->section, at);
        return refuse(at, r->name, found, r->why, err);
    }
    return AS_OK;
}

/* Of `distributed`, only `encrypt` says something to it. */
static as_status check_distributed(const struct json_fields *doc, struct as_err *err)
{
    const json_t *d = json_object_get(doc->obj, "distributed");
    const char *name;
    json_t *value;
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(doc->pointer, "distributed", at);
    json_object_foreach((json_t *)d, name, value)
    {
        if (!as_streq(name, "encrypt") && !json_is_null(value))
            return refuse(at, name, value, "its ranks add up sums and counts in a way of their own",
                          err);
    }
    return AS_OK;
}

as_status train_spec_check_kmeans(const struct json_fields *doc, struct train_spec *s,
                                  struct as_err *err)
{
    if (!train_model_is_kmeans(&s->model))
        return AS_OK;
    if (json_fields_lack(doc, "epochs"))
        s->epochs = EPOCHS;
    if (s->precision == TRAIN_BFLOAT16)
        return refuse(doc->pointer, "precision", json_object_get(doc->obj, "precision"),
                      "it computes on the host", err);
    as_status st = check_fields(doc, err);
    return st == AS_OK ? check_distributed(doc, err) : st;
}
