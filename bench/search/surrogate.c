/* The surrogates' rows, and the line servers that evaluate them.
 *
 * A server is started by the process that asks it: a job of search-quality is a fork and must not
 * share a pipe with its parent. The objective is the error, 1 - accuracy. A row's optimum is the
 * lowest error that surrogate_best.py found, and its median that of random configurations there; an
 * error of 0 is a surrogate's ceiling. `gp` was tuned
 * on the first rows; the others are for reports. */
#include "bench/search/surrogate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "bench/search/child.h"
#include "bench/search/problems_priv.h"

#define SCRIPT BENCH_SEARCH_DIR "/../../../shared/bench/surrogate.py"
#define ANSWER_MAX 64

struct surrogate_def {
    const char *scenario, *instance, *target;
    double one;    /* the target's value without an error */
    double median; /* the median error of random configurations */
};

struct surrogate {
    const struct surrogate_def *def;
    const struct space *space;
    struct child child;
    json_t *asked; /* the last configuration, and its error: a trial's value is wanted twice */
    double value;
};

static const char *script = SCRIPT;

void surrogate_set_path(const char *path)
{
    if (path != NULL)
        script = path;
}

void surrogate_free(struct surrogate *s)
{
    if (s == NULL)
        return;
    child_end(&s->child);
    json_decref(s->asked);
    free(s);
}

static as_status start(struct surrogate *s, struct as_err *err)
{
    const char *python = getenv("ASSAY_PYTHON");
    const struct surrogate_def *d = s->def;
    char *argv[] = {(char *)(python != NULL ? python : "/usr/bin/python3"),
                    (char *)script,
                    (char *)d->scenario,
                    (char *)d->instance,
                    (char *)d->target,
                    NULL};
    if (s->child.pid != 0 && s->child.parent == getpid())
        return AS_OK;
    child_end(&s->child); /* of a fork's parent */
    return child_start(argv, &s->child, err);
}

/* Send a line and read the number that answers it. */
static as_status ask(struct surrogate *s, json_t *request, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = json_format_ordered(request);
    char line[ANSWER_MAX];
    if (text == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = start(s, err);
    if (st == AS_OK)
        st = file_write_all(s->child.to, text, strlen(text), err);
    if (st == AS_OK)
        st = file_write_all(s->child.to, "\n", 1, err);
    if (st < 0)
        return st;
    if (fgets(line, sizeof line, s->child.from) == NULL)
        return as_fail(err, AS_E_IO, "%s ended", script);
    line[strcspn(line, "\n")] = '\0';
    return as_parse_double(line, ret, err);
}

as_status surrogate_open(const void *arg, const struct space *space, struct surrogate **ret,
                         struct as_err *err)
{
    AS_AUTO(surrogate_freep) struct surrogate *s = as_calloc(1, sizeof *s);
    JSON_AUTO nothing = json_object();
    double v;
    if (s == NULL || nothing == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *s = (struct surrogate){.def = arg, .space = space};
    if (access(script, R_OK) != 0)
        return as_fail(err, AS_E_UNAVAILABLE, "there is no %s; --surrogate names one", script);
    if (ask(s, nothing, &v, NULL) < 0)
        return as_fail(err, AS_E_UNAVAILABLE, "%s has no %s %s, or lacks numpy", script,
                       s->def->scenario, s->def->instance);
    *ret = as_steal(s);
    return AS_OK;
}

double surrogate_median(const struct surrogate *s)
{
    return s->def->median;
}

/* The surrogate's name of a parameter; ours has no dots. */
static const char *foreign_name(const char *name)
{
    return as_streq(name, "impute") ? "num.impute.selected.cpo" : name;
}

static json_t *foreign_value(const struct space_param *p, double x)
{
    if (p->kind == PARAM_CATEGORICAL)
        return json_incref(json_array_get(p->values, (size_t)x));
    return p->kind == PARAM_INT ? json_integer((json_int_t)x) : json_real(x);
}

double fn_surrogate(const struct problem *p, const double *x)
{
    struct surrogate *s = p->surrogate;
    struct as_err err = {0};
    JSON_AUTO request = json_object();
    double v = NAN;
    for (size_t i = 0; i < s->space->n; i++) {
        const struct space_param *param = &s->space->params[i];
        if (!isnan(x[i]) && json_object_set_new(request, foreign_name(param->name),
                                                foreign_value(param, x[i])) != 0)
            abort();
    }
    if (s->asked != NULL && json_equal(request, s->asked))
        return s->value;
    if (ask(s, request, &v, &err) == AS_OK) {
        json_decref(s->asked);
        s->asked = as_steal(request);
        return s->value = 1 - v / s->def->one;
    }
    (void)fprintf(stderr, "%s: %s\n", p->def->name, err.msg); /* no value of the trial */
    exit(EXIT_FAILURE);
}

#define TREES "when: {booster: [gbtree, dart]}"
static const char xgboost_space[] =
    "alpha: {type: float, min: 0.0009118819655545162, max: 1096.6331584284585, scale: log}\n"
    "booster: {type: categorical, values: [gblinear, gbtree, dart]}\n"
    "lambda: {type: float, min: 0.0009118819655545162, max: 1096.6331584284585, scale: log}\n"
    "nrounds: {type: int, min: 7, max: 2981, scale: log}\n"
    "impute: {type: categorical, values: [impute.mean, impute.median, impute.hist]}\n"
    "subsample: {type: float, min: 0.1, max: 1}\n"
    "colsample_bylevel: {type: float, min: 0.01, max: 1, " TREES "}\n"
    "colsample_bytree: {type: float, min: 0.01, max: 1, " TREES "}\n"
    "eta: {type: float, min: 0.0009118819655545162, max: 1, scale: log, " TREES "}\n"
    "gamma: {type: float, min: 4.5399929762484854e-05, max: 7.38905609893065, scale: log, " TREES
    "}\n"
    "max_depth: {type: int, min: 1, max: 15, " TREES "}\n"
    "min_child_weight: {type: float, min: 2.718281828459045, max: 148.4131591025766, scale: "
    "log, " TREES "}\n"
    "rate_drop: {type: float, min: 0, max: 1, when: {booster: dart}}\n"
    "skip_drop: {type: float, min: 0, max: 1, when: {booster: dart}}\n";

static const char lcbench_space[] =
    "batch_size: {type: int, min: 16, max: 512, scale: log}\n"
    "learning_rate: {type: float, min: 0.0001, max: 0.1, scale: log}\n"
    "max_dropout: {type: float, min: 0, max: 1}\n"
    "max_units: {type: int, min: 64, max: 1024, scale: log}\n"
    "momentum: {type: float, min: 0.1, max: 0.99}\n"
    "num_layers: {type: int, min: 1, max: 5}\n"
    "weight_decay: {type: float, min: 1.0e-5, max: 0.1, scale: log}\n";

#define SURROGATE(name, space, optimum, ...)                                                       \
    {                                                                                              \
        name, space, fn_surrogate, optimum, NULL, 0, &(const struct surrogate_def){__VA_ARGS__},   \
            NULL                                                                                   \
    }
#define XGBOOST(instance, optimum, median)                                                         \
    SURROGATE("xgboost-" instance, xgboost_space, optimum, "rbv2_xgboost", instance, "acc", 1,     \
              median)
#define LCBENCH(instance, optimum, median)                                                         \
    SURROGATE("lcbench-" instance, lcbench_space, optimum, "lcbench", instance, "val_accuracy",    \
              100, median)

const struct problem_def surrogate_problems[] = {
    /* tuned on */
    XGBOOST("3", 1.34110451e-05, 0.2673),
    XGBOOST("11", 0.00174564123, 0.3664),
    XGBOOST("1464", 0.0994020104, 0.2377),
    LCBENCH("126029", 0.00716209412, 0.1947),
    LCBENCH("167149", 0.00514884949, 0.1636),
    /* for reports */
    XGBOOST("14", 0, 0.6232),
    XGBOOST("15", 0.000257432461, 0.3239),
    XGBOOST("1063", 0.10242188, 0.1864),
    LCBENCH("189354", 0.0434179688, 0.4157),
    LCBENCH("3945", 0.00342063904, 0.1001),
    {0},
};
