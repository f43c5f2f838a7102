/* The section `model` of a train document. The form of `layers` depends on the kind, so the kind is
 * read first; if it is wrong, the form is not checked and one mistake has one message (decision
 * 5006). Fields of other kinds are checked and unused, because a sweep may search over kinds
 * (decision 2001). */
#include <string.h>

#include "model/document/train_spec_priv.h"

#define MAX_DEPTH 256
#define MAX_HEADS 1024
#define MAX_EMBEDDING 1024

/* "logistic", which is a linear model, comes behind the last kind: -Woverride-init finds a kind
 * with the same place. */
#define LOGISTIC (TRAIN_KMEANS + 1)
static const char *const model_words[] = {[TRAIN_MLP] = "mlp",
                                          [TRAIN_LINEAR] = "linear",
                                          [TRAIN_CNN] = "cnn",
                                          [TRAIN_TRANSFORMER] = "transformer",
                                          [TRAIN_BOOSTED_TREES] = "boosted_trees",
                                          [TRAIN_RANDOM_FOREST] = "random_forest",
                                          [TRAIN_EXTRA_TREES] = "extra_trees",
                                          [TRAIN_KNN] = "knn",
                                          [TRAIN_NAIVE_BAYES] = "naive_bayes",
                                          [TRAIN_KMEANS] = "kmeans",
                                          [LOGISTIC] = "logistic",
                                          [LOGISTIC + 1] = NULL};
const char *const train_activation_words[] = {"relu", "tanh", "gelu", NULL};

bool train_model_is_trees(const struct train_model_spec *m)
{
    switch (m->kind) {
    case TRAIN_BOOSTED_TREES:
    case TRAIN_RANDOM_FOREST:
    case TRAIN_EXTRA_TREES:
        return true;
    case TRAIN_MLP:
    case TRAIN_LINEAR:
    case TRAIN_CNN:
    case TRAIN_TRANSFORMER:
    case TRAIN_KNN:
    case TRAIN_NAIVE_BAYES:
    case TRAIN_KMEANS:
        break;
    }
    return false;
}

bool train_model_sees_cells(const struct train_model_spec *m)
{
    return train_model_is_trees(m) || m->kind == TRAIN_NAIVE_BAYES;
}

bool train_model_is_network(const struct train_model_spec *m)
{
    return !train_model_sees_cells(m) && m->kind != TRAIN_KNN && m->kind != TRAIN_KMEANS;
}

bool train_model_takes_ranks(const struct train_model_spec *m)
{
    return train_model_is_network(m) || train_model_is_kmeans(m);
}

const char *train_model_name(const struct train_model_spec *m)
{
    return model_words[m->logistic ? LOGISTIC : (int)m->kind];
}

static as_status parse_widths(const json_t *list, const char *pointer, struct faults *faults,
                              struct train_model_spec *m, struct as_err *err)
{
    size_t n = json_array_size(list);
    if (n > TRAIN_MAX_LAYERS)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %zu layers, expected at most %d",
                          pointer, n, TRAIN_MAX_LAYERS);
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, i);
        json_int_t width = json_integer_value(j);
        if (!json_is_integer(j) || width < 1 || width > TRAIN_MAX_WIDTH) {
            char item[AS_ERR_POINTER_MAX];
            AS_AUTO(as_freep) char *found = json_format(j);
            json_pointer_index(pointer, i, item);
            as_status st = as_fail_at(err, AS_E_INVAL, item,
                                      "%s: found %.80s, expected a whole number from 1 to %d", item,
                                      found ? found : json_type_name(j), TRAIN_MAX_WIDTH);
            if ((st = faults_note(faults, st, err)) != AS_OK)
                return st;
        }
        m->layers[i] = width;
    }
    m->n_layers = n;
    return AS_OK;
}

/* Read `layers` and `preset`, whose form depends on the kind. */
static as_status parse_layers(struct json_fields *f, int64_t width, struct train_model_spec *m,
                              struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_t *layers = NULL;
    int preset = 0;
    as_status st = json_fields_array(f, "layers", JSON_OPTIONAL, &layers, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "preset", JSON_OPTIONAL, train_preset_words, &preset, err);
    if (st != AS_OK)
        return st;
    if (f->is_faulty)
        return AS_OK; /* the kind may be at fault, and the form depends on it */
    json_pointer_child(f->pointer, "layers", at);
    if (m->kind != TRAIN_CNN)
        return layers ? parse_widths(layers, at, f->faults, m, err) : AS_OK;
    if (layers && json_is_string(json_object_get(f->obj, "preset")))
        return as_fail_at(err, AS_E_INVAL, at, "%s: found a preset too, expected one of the two",
                          at);
    if (layers)
        return train_spec_parse_blocks(layers, at, f->faults, m, err);
    m->preset = train_preset_words[preset];
    train_spec_preset(m->preset, width, m);
    return AS_OK;
}

static as_status parse_batch_norm(struct json_fields *f, struct train_model_spec *m,
                                  struct as_err *err)
{
    static const char *const norms[] = {"none", "batch", NULL};
    int norm = 0;
    as_status st = json_fields_word(f, "norm", JSON_OPTIONAL, norms, &norm, err);
    m->batch_norm = norm == 1;
    return st;
}

static as_status parse_sizes(struct json_fields *f, struct train_model_spec *m, struct as_err *err)
{
    const struct train_integer sizes[] = {
        {"width", 1, TRAIN_MAX_WIDTH, &m->width},
        {"depth", 1, MAX_DEPTH, &m->depth},
        {"heads", 1, MAX_HEADS, &m->heads},
        {"context", 1, TRAIN_MAX_CONTEXT, &m->context},
        {"embedding", 0, MAX_EMBEDDING, &m->embedding},
    };
    m->width = 0;
    return train_spec_integers(f, sizes, AS_ARRAY_LEN(sizes), err);
}

static as_status parse_neighbours(struct json_fields *f, struct train_model_spec *m,
                                  struct as_err *err)
{
    static const char *const weights[] = {"uniform", "distance", NULL};
    const struct train_integer k = {"neighbours", 1, TRAIN_MAX_NEIGHBOURS, &m->neighbours};
    int how = 0;
    as_status st = train_spec_integers(f, &k, 1, err);
    if (st == AS_OK)
        st = json_fields_word(f, "weights", JSON_OPTIONAL, weights, &how, err);
    m->by_distance = how == 1;
    return st;
}

static as_status parse_bayes(struct json_fields *f, struct train_model_spec *m, struct as_err *err)
{
    static const char *const words[] = {"complement", "multinomial", NULL};
    const struct train_number numbers[] = {{"smoothing", 1e-10, 1e6, &m->smoothing},
                                           {"var_smoothing", 1e-12, 1e6, &m->var_smoothing}};
    int how = 0;
    as_status st = train_spec_numbers(f, numbers, AS_ARRAY_LEN(numbers), err);
    if (st == AS_OK)
        st = json_fields_word(f, "words", JSON_OPTIONAL, words, &how, err);
    m->multinomial = how == 1;
    return st;
}

static as_status parse_fields(struct json_fields *f, struct train_model_spec *m, struct as_err *err)
{
    static const char *const solvers[] = {"sgd", "cocoa", NULL};
    int kind = m->kind, activation = m->activation, solver = 0;
    const struct train_number dropout = {"dropout", 0, TRAIN_BELOW_ONE, &m->dropout};
    as_status st = json_fields_word(f, "kind", JSON_OPTIONAL, model_words, &kind, err);
    m->logistic = kind == LOGISTIC;
    m->kind = m->logistic ? TRAIN_LINEAR : (train_model_kind)kind;
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "activation", JSON_OPTIONAL, train_activation_words, &activation, err);
    m->activation = (train_activation)activation;
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "solver", JSON_OPTIONAL, solvers, &solver, err);
    m->cocoa = solver == 1;
    if (st != AS_OK)
        return st;
    st = parse_sizes(f, m, err);
    if (st != AS_OK)
        return st;
    st = json_fields_note(f, parse_layers(f, m->width, m, err), err);
    if (st != AS_OK)
        return st;
    st = parse_batch_norm(f, m, err);
    if (st != AS_OK)
        return st;
    st = train_spec_numbers(f, &dropout, 1, err);
    m->dropping = json_is_number(json_object_get(f->obj, "dropout"));
    if (st != AS_OK)
        return st;
    st = train_spec_parse_kmeans(f, m, err);
    if (st != AS_OK)
        return st;
    st = train_spec_parse_trees(f, m, err);
    if (st != AS_OK)
        return st;
    st = parse_neighbours(f, m, err);
    if (st == AS_OK)
        st = parse_bayes(f, m, err);
    if (st != AS_OK)
        return st;
    return json_fields_end(f, err);
}

as_status train_spec_parse_model(struct json_fields *doc, struct train_model_spec *m,
                                 struct as_err *err)
{
    struct json_fields f;
    bool there;
    as_status st = train_spec_section(doc, "model", &f, &there, err);
    if (st < 0 || !there)
        return st;
    st = parse_fields(&f, m, err);
    if (st < 0)
        return st;
    if (m->kind == TRAIN_LINEAR)
        m->n_layers = 0;
    if (m->kind == TRAIN_TRANSFORMER)
        m->activation = TRAIN_GELU;
    if (m->width == 0)
        m->width = 128;
    if (m->kind == TRAIN_TRANSFORMER && m->width % m->heads != 0) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f.pointer, "heads", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %d, expected a divisor of the width %d",
                          at, (int)m->heads, (int)m->width);
    }
    return AS_OK;
}
