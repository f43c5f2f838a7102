/* Figures are tags, which are part of a document and by which sweeps are listed, so that nothing
 * of the server and no record of a data set is needed (decision 9015). The list is short, so that
 * the nearest are kept by moving the others. */
#include "cli/fit/fit_similar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct fit_figures fit_figures_of(const struct fit_facts *f, double row_share)
{
    return (struct fit_figures){.rows = round((double)f->rows * row_share),
                                .columns = (double)f->columns,
                                .classes = (double)f->classes,
                                .categories =
                                    (double)f->categories / (double)(f->columns ? f->columns : 1)};
}

void fit_figures_write(const struct fit_figures *figures, struct str *b)
{
    str_printf(b, "[" FIT_TAG ", rows=%.0f, columns=%.0f, classes=%.0f, categories=%.2f]",
               figures->rows, figures->columns, figures->classes, figures->categories);
}

/* The number of a tag NAME=NUMBER. */
static bool read_tag(const json_t *tags, const char *name, double *ret)
{
    size_t i, n = strlen(name);
    json_t *tag;
    json_array_foreach((json_t *)tags, i, tag)
    {
        const char *text = json_string_value(tag);
        if (!text || strncmp(text, name, n) != 0 || text[n] != '=')
            continue;
        char *end;
        *ret = strtod(text + n + 1, &end);
        return end != text + n + 1 && *end == '\0' && isfinite(*ret) && *ret >= 0;
    }
    return false;
}

static bool has_tag(const json_t *tags, const char *name)
{
    size_t i;
    json_t *tag;
    json_array_foreach((json_t *)tags, i,
                       tag) if (as_streq(json_string_value(tag), name)) return true;
    return false;
}

bool fit_figures_read(const json_t *tags, struct fit_figures *ret)
{
    struct fit_figures f;
    bool there = has_tag(tags, FIT_TAG) && read_tag(tags, "rows", &f.rows) &&
                 read_tag(tags, "columns", &f.columns) && read_tag(tags, "classes", &f.classes) &&
                 read_tag(tags, "categories", &f.categories);
    if (!there || f.rows < 1 || f.columns < 1)
        return false;
    *ret = f;
    return true;
}

static int task_of(const struct fit_figures *f)
{
    return f->classes > 2 ? 2 : f->classes > 0;
}

double fit_distance(const struct fit_figures *a, const struct fit_figures *b)
{
    if (task_of(a) != task_of(b))
        return INFINITY;
    double rows = log2(a->rows / b->rows) / 2, columns = log2(a->columns / b->columns);
    double classes = a->classes > 0 ? log2(a->classes / b->classes) : 0;
    double categories = 4 * (a->categories - b->categories);
    return sqrt(rows * rows + columns * columns + classes * classes + categories * categories);
}

static const json_t *train_of(const json_t *sweep)
{
    const json_t *trial = json_object_get(json_object_get(sweep, "document"), "trial");
    return json_object_get(trial, "train");
}

/* Sweeps that were made of another one have its tags and learn something else: further layers,
 * samples of the rows, stages of boosting. */
static bool is_made_of_another(const json_t *train)
{
    return json_object_get(train, "stack") || json_object_get(train, "resample") ||
           json_object_get(train, "boost");
}

static bool read_sweep(const struct fit_figures *own, const json_t *sweep, struct fit_similar *ret)
{
    const json_t *document = json_object_get(sweep, "document");
    json_int_t completed =
        json_integer_value(json_object_get(json_object_get(sweep, "counts"), "completed"));
    ret->sweep = json_string_value(json_object_get(sweep, "id"));
    ret->dataset = json_string_value(json_object_get(train_of(sweep), "dataset"));
    ret->best = json_object_get(json_object_get(sweep, "best"), "params");
    if (!ret->sweep || !ret->dataset || !json_is_object(ret->best) ||
        completed < FIT_LEAST_COMPLETED || is_made_of_another(train_of(sweep)) ||
        !fit_figures_read(json_object_get(document, "tags"), &ret->figures))
        return false;
    ret->distance = fit_distance(own, &ret->figures);
    return ret->distance < FIT_FAR;
}

/* Is a newer sweep of the data set among those that were found? */
static bool is_repeated(const struct fit_similar *found, size_t n, const char *dataset)
{
    for (size_t i = 0; i < n; i++)
        if (as_streq(found[i].dataset, dataset))
            return true;
    return false;
}

size_t fit_similar_find(const struct fit_figures *own, const json_t *sweeps, size_t most,
                        struct fit_similar *ret)
{
    size_t n = 0, i;
    json_t *sweep;
    json_array_foreach((json_t *)sweeps, i, sweep)
    {
        struct fit_similar found;
        if (!read_sweep(own, sweep, &found) || is_repeated(ret, n, found.dataset))
            continue;
        size_t at = n < most ? n++ : n;
        for (; at > 0 && ret[at - 1].distance > found.distance; at--)
            if (at < most)
                ret[at] = ret[at - 1];
        if (at < most)
            ret[at] = found;
    }
    return n;
}
