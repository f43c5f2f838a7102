/* assay best SWEEP --pareto: the table of the front, a picture of it, and its hypervolume.
 *
 * The server computes the front. It is sorted here, because the API returns it in the order of
 * trial numbers and people read a front from one end to the other. The picture needs the other
 * completed trials, too; they are fetched only on a terminal and only for two objectives. */
#include "cli/commands/pareto_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/objectives.h"
#include "cli/view/say.h"
#include "cli/view/scatter.h"
#include "cli/view/trial_table.h"

#define PLANE_HEIGHT 14
#define PLANE_MAX_WIDTH 72
#define MAX_BEHIND 5000 /* at most so many trials are drawn behind the front */

static double value_of(const json_t *trial, const json_t *objective)
{
    double v;
    const char *name = json_string_value(json_object_get(objective, "name"));
    const json_t *metrics = json_object_get(trial, "metrics");
    return name && json_number_get(json_object_get(metrics, name), &v) ? v : NAN;
}

/* A trial and its sort key; the smallest key comes first. */
struct ranked {
    json_t *trial; /* borrowed */
    double key;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Sort the items by the first objective, best first. *ret is a new array. */
static as_status sort_by_first(const json_t *items, const json_t *sweep, json_t **ret,
                               struct as_err *err)
{
    const json_t *objective = objectives_at(sweep, 0);
    double sign = objectives_maximizes(objective) ? -1 : 1;
    size_t n = json_array_size(items);
    AS_AUTO(as_freep) char *memory = as_calloc(n ? n : 1, sizeof(struct ranked));
    struct ranked *list = (void *)memory;
    JSON_AUTO out = json_array();
    if (!list || !out)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        json_t *trial = json_array_get(items, i);
        list[i] = (struct ranked){.trial = trial, .key = sign * value_of(trial, objective)};
    }
    qsort(list, n, sizeof *list, compare_ranked);
    for (size_t i = 0; i < n; i++)
        if (json_array_append(out, list[i].trial) != 0)
            return as_fail_nomem(err);
    *ret = as_steal(out);
    return AS_OK;
}

static void add_points(const json_t *items, const json_t *sweep, bool is_front,
                       struct scatter_point *points, size_t *n)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)items, i, trial)
    {
        points[(*n)++] = (struct scatter_point){
            .x = value_of(trial, objectives_at(sweep, 0)),
            .y = value_of(trial, objectives_at(sweep, 1)),
            .is_front = is_front,
        };
    }
}

/* Draw the front and, behind it, the completed trials. */
static as_status draw_front(const struct session *s, const struct trial_ref *ref,
                            const json_t *sweep, const json_t *front, struct as_err *err)
{
    JSON_AUTO behind = NULL;
    AS_AUTO(str_done) struct str path = {0}, b = {0};
    request_path(&path, ref, "trials");
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    st = request_list(s->client, path.s, "state=completed", MAX_BEHIND, &behind, err);
    if (st < 0)
        return st;
    size_t n = 0, most = json_array_size(behind) + json_array_size(front);
    AS_AUTO(as_freep) char *memory = as_calloc(most ? most : 1, sizeof(struct scatter_point));
    struct scatter_point *points = (void *)memory;
    if (!points)
        return as_fail_nomem(err);
    add_points(behind, sweep, false, points, &n);
    add_points(front, sweep, true, points, &n);
    const char *x = json_string_value(json_object_get(objectives_at(sweep, 0), "name"));
    const char *y = json_string_value(json_object_get(objectives_at(sweep, 1), "name"));
    size_t room = s->terminal.width > 30 ? s->terminal.width - 16 : 14;
    const struct scatter_opts opts = {.x_name = x ? x : "?",
                                      .y_name = y ? y : "?",
                                      .width = room < PLANE_MAX_WIDTH ? room : PLANE_MAX_WIDTH,
                                      .height = PLANE_HEIGHT};
    str_putc(&b, '\n');
    scatter_draw(points, n, &opts, &s->terminal, &b);
    return session_print_text(&b, err);
}

static void say_volume(const json_t *pareto)
{
    struct str b = {0};
    const json_t *volume = json_object_get(pareto, "hypervolume");
    size_t i;
    json_t *v;
    double d;
    if (!json_number_get(volume, &d))
        return;
    json_array_foreach(json_object_get(pareto, "reference"), i, v)
    {
        str_puts(&b, i ? ", " : "");
        format_value(&b, v, FORMAT_SHORT);
    }
    say("Hypervolume %.6g, seen from %s", d, str_cstr(&b));
    str_done(&b);
}

static as_status print_front(const struct session *s, const struct trial_ref *ref,
                             const json_t *pareto, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    JSON_AUTO items = NULL;
    AS_AUTO(table_freep) struct table *t = NULL;
    as_status st = request_get(s->client, ref, NULL, NULL, &sweep, err);
    if (st < 0)
        return st;
    st = sort_by_first(json_object_get(pareto, "items"), sweep, &items, err);
    if (st < 0)
        return st;
    st = trial_table_create(items, TRIAL_TABLE_FRONT, sweep, &s->terminal, &t, err);
    if (st < 0)
        return st;
    st = session_print_table(s, t, err);
    if (st < 0)
        return st;
    if (table_rows(t) > 0 && s->terminal.tty && objectives_count(sweep) == 2)
        st = draw_front(s, ref, sweep, items, err);
    if (st < 0)
        return st;
    say_volume(pareto);
    return AS_OK;
}

as_status pareto_report_print(const struct session *s, const struct trial_ref *sweep,
                              struct as_err *err)
{
    JSON_AUTO pareto = NULL;
    as_status st = request_items(s->client, sweep, "pareto", NULL, INT64_MAX, &pareto, err);
    if (st < 0)
        return st;
    st = s->json ? session_print_json(pareto, err) : print_front(s, sweep, pareto, err);
    if (st == AS_OK && json_array_size(json_object_get(pareto, "items")) == 0)
        return as_fail(err, AS_E_NOT_FOUND,
                       "no trial of %s has completed yet that keeps the constraints", sweep->sweep);
    return st;
}
