/* The text is written here, and the sweep that runs is this text, read: what --print shows is
 * what runs. Ranges are those that studies of tuning search (P. Probst et al., "Tunability",
 * JMLR 20, 2019; L. Grinsztajn et al., "Why do tree-based models still outperform deep learning
 * on tabular data?", 2022); the plan cuts them to the table.
 */
#include "cli/fit/fit_sweep.h"

#include <math.h>

#include "base/json.h"
#include "cli/fit/fit_similar.h"

#define TEXT_MAX_BYTES 512

/* ---- values ---- */

/* A text as YAML takes it: JSON is a part of YAML. */
static void add_text(struct str *b, const char *text)
{
    JSON_AUTO j = json_string(text);
    AS_AUTO(as_freep) char *quoted = j ? json_format(j) : NULL;
    if (quoted)
        str_puts(b, quoted);
    b->failed = b->failed || !quoted;
}

/* Text without a line's end, for a comment. */
static void add_comment(struct str *b, const char *text)
{
    for (size_t i = 0; text[i] && i < TEXT_MAX_BYTES; i++)
        str_putc(b, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
}

/* ---- the document ---- */

static void write_head(const struct fit_plan *p, const struct fit_facts *f, const char *name,
                       const char *command, struct str *b)
{
    str_puts(b, "# Made by: ");
    add_comment(b, command);
    str_printf(b, "\n# %zu rows, %zu columns, ", f->rows, f->columns);
    if (f->classes)
        str_printf(b, "%zu classes, of which the rarest has %zu rows.\n", f->classes, f->rarest);
    else
        str_printf(b, "%zu number%s to predict.\n", f->targets, f->targets == 1 ? "" : "s");
    str_puts(b, "# Change what you like, and run it: assay run FILE --watch\n");
    str_printf(b, "name: %s\ntags: ", name);
    const struct fit_figures figures = fit_figures_of(f, p->row_share);
    fit_figures_write(&figures, b);
    str_printf(b, "\nmetric: {name: %s, goal: %s}\n", p->metric,
               p->maximize ? "maximize" : "minimize");
}

/* Append `first` and the kinds of forests that are searched over, as a list. */
static void add_forests(const struct fit_plan *p, const char *first, struct str *b)
{
    const char *const names[] = {first, p->forest ? "random_forest" : NULL,
                                 p->extra ? "extra_trees" : NULL};
    const char *between = "[";
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if (names[i]) {
            str_printf(b, "%s%s", between, names[i]);
            between = ", ";
        }
    str_putc(b, ']');
}

static void write_kinds(const struct fit_plan *p, const struct fit_facts *f, struct str *b)
{
    str_printf(b, "  kind: {type: categorical, values: [boosted_trees%s%s%s%s%s, %s]}\n",
               p->forest ? ", random_forest" : "", p->extra ? ", extra_trees" : "",
               p->neighbours ? ", knn" : "", p->bayes ? ", naive_bayes" : "",
               p->network ? ", mlp" : "", f->classes ? "logistic" : "linear");
}

/* A range, and the kind that has it. */
static void write_range(const struct fit_plan *p, fit_parameter which, const char *kind,
                        struct str *b)
{
    fit_range_write(which, &p->ranges[which], b);
    str_printf(b, ", when: {kind: %s}}\n", kind);
}

static void write_forest_parameters(const struct fit_plan *p, struct str *b)
{
    if (!p->forest && !p->extra)
        return;
    if (p->forest)
        str_printf(b,
                   "  # random forests: how many trees (of extra trees, whose leaves are smaller, "
                   "%zu)\n"
                   "  trees: {type: constant, value: %zu, when: {kind: random_forest}}\n",
                   p->trees, p->forest_trees);
    str_puts(b, "  # forests: the share of the columns that a split may choose from\n");
    fit_range_write(FIT_PER_SPLIT, &p->ranges[FIT_PER_SPLIT], b);
    str_puts(b, ", when: {kind: ");
    add_forests(p, NULL, b);
    str_puts(b, "}}\n");
}

static void write_neighbours(const struct fit_plan *p, struct str *b)
{
    if (p->neighbours)
        str_printf(b,
                   "  # nearest neighbours: how many, and what they count\n"
                   "  neighbours: {type: int, min: 1, max: %zu, scale: log, when: {kind: knn}}\n"
                   "  nearness: {type: categorical, values: [uniform, distance], when: {kind: "
                   "knn}}\n",
                   p->most_neighbours);
}

static void write_bayes(const struct fit_plan *p, struct str *b)
{
    if (p->bayes)
        str_puts(b, "  # naive Bayes: what is added to counts and to variances\n"
                    "  smoothing: {type: float, min: 0.01, max: 10, scale: log, when: {kind: "
                    "naive_bayes}}\n"
                    "  spread: {type: float, min: 0.000001, max: 1, scale: log, when: {kind: "
                    "naive_bayes}}\n");
    if (p->bayes && p->words)
        str_puts(b, "  words: {type: categorical, values: [complement, multinomial], when: {kind: "
                    "naive_bayes}}\n");
}

static bool has_refitted(const struct fit_plan *p)
{
    return p->refit && (p->forest || p->extra || p->neighbours);
}

static void write_refit(const struct fit_plan *p, struct str *b)
{
    const char *const names[] = {p->forest ? "random_forest" : NULL,
                                 p->extra ? "extra_trees" : NULL, p->neighbours ? "knn" : NULL};
    const char *between = "";
    if (!has_refitted(p))
        return;
    str_puts(b, "  # one model on all rows in place of one for each fold: as good, and as small\n"
                "  refit: {type: constant, value: true, when: {kind: [");
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if (names[i]) {
            str_printf(b, "%s%s", between, names[i]);
            between = ", ";
        }
    str_puts(b, "]}}\n");
}

static void write_boosting(const struct fit_plan *p, struct str *b)
{
    str_printf(b,
               "  # boosted trees: early stopping decides how many, within each fold\n"
               "  rounds: {type: constant, value: %zu, when: {kind: boosted_trees}}\n",
               p->rounds);
    write_range(p, FIT_RATE, "boosted_trees", b);
    write_range(p, FIT_LEAVES, "boosted_trees", b);
    write_range(p, FIT_ROWS, "boosted_trees", b);
    if (p->ranges[FIT_COLUMNS].max < 1)
        str_puts(b, "  # many columns: each tree sees a part of them, drawn anew\n");
    write_range(p, FIT_COLUMNS, "boosted_trees", b);
    fit_range_write(FIT_LEAF_WEIGHT, &p->ranges[FIT_LEAF_WEIGHT], b);
    str_puts(b, ", when: {kind: ");
    add_forests(p, "boosted_trees", b);
    str_puts(b, "}}\n");
}

static void write_network(const struct fit_plan *p, struct str *b)
{
    if (!p->network)
        return;
    str_puts(b, "  # networks: two hidden layers\n");
    write_range(p, FIT_WIDTH, "mlp", b);
    write_range(p, FIT_DROPOUT, "mlp", b);
    if (!p->embedding)
        return;
    str_puts(b, "  # learned numbers that stand for a category; 0: one-hot\n  embedding: ");
    if (p->one_hot)
        str_printf(b, "{type: categorical, values: [0, %zu]", p->embedding);
    else
        str_printf(b, "{type: constant, value: %zu", p->embedding);
    str_puts(b, ", when: {kind: mlp}}\n");
}

static void write_parameters(const struct fit_plan *p, const struct fit_facts *f, struct str *b)
{
    AS_AUTO(str_done) struct str descent = {0}; /* kinds that are trained by gradients */
    AS_AUTO(str_done) struct str seeing = {0};  /* kinds that see numbers as inputs */
    const char *linear = f->classes ? "logistic" : "linear";
    str_printf(&descent, p->network ? "[mlp, %s]" : "%s", linear);
    str_printf(&seeing, "[%s%s%s]", p->neighbours ? "knn, " : "", p->network ? "mlp, " : "",
               linear);
    str_puts(b, "parameters:\n");
    write_kinds(p, f, b);
    write_boosting(p, b);
    write_forest_parameters(p, b);
    write_neighbours(p, b);
    write_bayes(p, b);
    write_refit(p, b);
    write_network(p, b);
    write_range(p, FIT_LR, str_cstr(&descent), b);
    if (p->bins)
        str_printf(b,
                   "  # do they see numbers in bins? A linear model on them is a spline\n"
                   "  numbers: {type: categorical, values: [none, piecewise_linear], when: {kind: "
                   "%s}}\n",
                   str_cstr(&seeing));
    if (p->transform != TARGET_AS_IS)
        str_printf(
            b,
            "  # the target is skewed: is its logarithm learned? Predictions and figures are in "
            "its own unit\n"
            "  transform: {type: categorical, values: [none, %s]}\n",
            target_transform_names[p->transform]);
    if (p->class_weights)
        str_puts(b, "  # a class is rare: do its rows count more? (null: all rows alike)\n"
                    "  weights: {type: categorical, values: [null, balanced]}\n");
    b->failed = b->failed || descent.failed || seeing.failed;
}

/* The limit of a forest's size is one of its leaves. */
static void write_constraints(const struct fit_plan *p, struct str *b)
{
    const struct {
        const char *kind;
        bool there;
        double weight;
    } least[] = {{"random_forest", p->forest, p->least_weight},
                 {"extra_trees", p->extra, p->least_extra_weight}};
    const char *before =
        "# larger leaves keep a forest within the size of the model and the time of a trial\n"
        "parameter_constraints:\n";
    for (size_t i = 0; i < AS_ARRAY_LEN(least); i++)
        if (least[i].there && least[i].weight > 1) {
            str_printf(b, "%s  - \"kind != '%s' or leaf_weight >= %.0f\"\n", before, least[i].kind,
                       least[i].weight);
            before = "";
        }
}

static void write_limits(const struct fit_plan *p, struct str *b)
{
    str_puts(b, "search: {method: gp, seed: 1");
    for (size_t i = 0; i < p->n_priors; i++)
        str_printf(b, "%s%s", i ? ", " : ", prior: [", p->priors[i]);
    if (p->n_priors)
        str_putc(b, ']');
    str_printf(b,
               "}\n"
               "limits: {max_trials: %zu, max_failed_trials: 50, max_restarts: 1, wall_time: "
               "%llds, trial_timeout: %llds, "
               "grace: 1s}\n"
               "resources: {cpus: %zu}\n",
               p->max_trials, (long long)p->search_ms / 1000, (long long)p->trial_ms / 1000,
               p->cpus);
}

static void write_model(const struct fit_plan *p, struct str *b)
{
    size_t patience = p->rounds / 10 < 10 ? 10 : p->rounds / 10 > 40 ? 40 : p->rounds / 10;
    str_printf(b,
               "    model:\n"
               "      kind: \"${kind}\"\n"
               "      n_estimators: \"${rounds:-%s%zu%s}\"\n"
               "      early_stopping_rounds: %zu\n"
               "      grow_policy: lossguide\n"
               "      max_depth: 0\n"
               "      learning_rate: \"${rate}\"\n"
               "      max_leaves: \"${leaves}\"\n"
               "      min_child_weight: \"${leaf_weight}\"\n"
               "      subsample: \"${rows}\"\n"
               "      colsample_bytree: \"${columns}\"\n",
               p->forest ? "${trees:-" : "", p->trees, p->forest ? "}" : "", patience);
    if (p->tree_bins)
        str_printf(b, "      max_bin: %zu\n", p->tree_bins);
    if (p->forest || p->extra)
        str_puts(b, "      colsample_bynode: \"${per_split}\"\n");
    if (p->neighbours)
        str_puts(b, "      neighbours: \"${neighbours}\"\n"
                    "      weights: \"${nearness}\"\n");
    if (p->bayes)
        str_puts(b, "      smoothing: \"${smoothing}\"\n"
                    "      var_smoothing: \"${spread}\"\n");
    if (p->bayes && p->words)
        str_puts(b, "      words: \"${words}\"\n");
    if (p->network)
        str_puts(b, "      layers: [\"${width}\", \"${width}\"]\n"
                    "      dropout: \"${dropout}\"\n");
    if (p->network && p->embedding)
        str_puts(b, "      embedding: \"${embedding}\"\n");
}

static void write_validation(const struct fit_plan *p, struct str *b)
{
    if (p->groups) {
        str_puts(b, "    validation: {groups: ");
        add_text(b, p->groups);
        str_printf(b, ", fraction: %.2g}\n", p->held_out);
    } else if (p->folds) {
        str_printf(b, "    validation: {folds: %zu%s}\n", p->folds,
                   has_refitted(p) ? ", refit: \"${refit}\"" : "");
    } else {
        str_printf(b, "    validation: {fraction: %.2g}\n", p->held_out);
    }
}

void fit_sweep_write(const struct fit_plan *p, const struct fit_facts *f, const char *name,
                     const char *dataset, const char *command, struct str *b)
{
    write_head(p, f, name, command, b);
    write_parameters(p, f, b);
    write_constraints(p, b);
    write_limits(p, b);
    str_printf(b, "trial:\n  train:\n    dataset: %s\n", dataset);
    write_model(p, b);
    if (p->class_weights)
        str_puts(b, "    class_weights: \"${weights}\"\n");
    if (p->transform != TARGET_AS_IS)
        str_puts(b, "    target: {transform: \"${transform}\"}\n");
    if (p->bins)
        str_printf(b, "    numbers: {encode: \"${numbers}\", bins: %zu}\n", p->bins);
    str_printf(b,
               "    optimizer: {kind: adamw, lr: \"${lr}\", weight_decay: 0.01}\n"
               "    schedule: {kind: cosine}\n"
               "    epochs: %zu\n",
               p->epochs);
    if (p->patience)
        str_printf(b, "    patience: %zu\n", p->patience);
    str_printf(b, "    batch_size: %zu\n", p->batch);
    write_validation(p, b);
    str_puts(b, "ensemble: {method: greedy, size: 16}\n");
}
