/* The problems that are surrogates of real runs (surrogate.h, and at the end learners.h). The
 * objective is the error, 1 - accuracy. A row's optimum is the lowest error that surrogate_best.py
 * found, and its median that of random configurations there; an error of 0 is a surrogate's
 * ceiling. `gp` was tuned on the first rows; the others are for reports. */
#include "bench/search/learners.h"
#include "bench/search/problems_priv.h"
#include "bench/search/surrogate.h"

double fn_surrogate(const struct problem *p, const double *x)
{
    return surrogate_value(p->surrogate, x);
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
    XGBOOST("11", 0.00174182653, 0.3664),
    XGBOOST("1464", 0.0994020104, 0.2377),
    XGBOOST("18", 0, 0.5462),
    LCBENCH("126029", 0.00716209412, 0.1947),
    LCBENCH("167149", 0.00514884949, 0.1636),
    LCBENCH("167104", 0.0479503632, 0.17),
    LCBENCH("167181", 0.057144928, 0.2639),
    /* for reports */
    XGBOOST("14", 0, 0.6232),
    XGBOOST("15", 0.000257432461, 0.3239),
    XGBOOST("1063", 0.0885635018, 0.1864),
    XGBOOST("1049", 0.0106016397, 0.1185),
    XGBOOST("1462", 0, 0.1646),
    LCBENCH("189354", 0.0434179688, 0.4157),
    LCBENCH("3945", 0.00342063904, 0.1001),
    LCBENCH("167190", 0.0443152618, 0.2666),
    LCBENCH("189865", 0.0096774292, 0.1505),
    {0},
};

double fn_learners(const struct problem *p, const double *x)
{
    return learners_value(p->learners, x);
}

static void best_learners(const struct problem *p, double *x)
{
    learners_best(p->learners, x);
}

#define RUNS(of)                                                                                   \
    {                                                                                              \
        .name = of, .fn = fn_learners, .fn_best = best_learners                                    \
    }

/* `gp` was tuned on the first seven, and on their flat ones (flat.c). */
const struct problem_def learners_problems[] = {
    RUNS("learners-adult"),
    RUNS("learners-letter"),
    RUNS("optimisers-letter"),
    RUNS("optimisers-adult"),
    RUNS("pipelines-adult"),
    RUNS("pipelines-letter"),
    RUNS("texts-licences"),
    /* for reports */
    RUNS("learners-california"),
    RUNS("learners-digits"),
    RUNS("optimisers-california"),
    RUNS("pipelines-california"),
    RUNS("pipelines-digits"),
    RUNS("texts-versions"),
    {0},
};
