/* The line servers that evaluate surrogates. A server is started by the process that asks it: a job
 * of search-quality is a fork and must not share a pipe with its parent. */
#include "bench/search/surrogate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "bench/peer_process.h"

#define SCRIPT BENCH_SEARCH_DIR "/../../../shared/bench/surrogate.py"
#define ANSWER_MAX 64

struct surrogate {
    const struct surrogate_def *def;
    const struct space *space;
    struct peer_process child;
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
    peer_process_end(&s->child);
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
    peer_process_end(&s->child); /* of a fork's parent */
    return peer_process_start(argv, false, &s->child, err);
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

as_status surrogate_open(const struct surrogate_def *def, const struct space *space,
                         struct surrogate **ret, struct as_err *err)
{
    AS_AUTO(surrogate_freep) struct surrogate *s = as_calloc(1, sizeof *s);
    JSON_AUTO nothing = json_object();
    double v;
    if (s == NULL || nothing == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *s = (struct surrogate){.def = def, .space = space};
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

double surrogate_value(struct surrogate *s, const double *x)
{
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
    (void)fprintf(stderr, "surrogate %s: %s\n", s->def->instance,
                  err.msg); /* no value of the trial */
    exit(EXIT_FAILURE);
}
