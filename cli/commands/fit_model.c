/* The end of `assay fit`: the model is chosen among what the sweep left (fit_choice.h), kept as a
 * version, fetched and measured, and reported. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_file.h"
#include "cli/commands/fit_choice.h"
#include "cli/commands/fit_report.h"
#include "cli/commands/fit_run.h"
#include "cli/predict/row_time.h"
#include "cli/session/fetch.h"
#include "cli/session/interrupt.h"
#include "cli/view/say.h"

#define SMALLER_TRIES 3 /* of a model that takes too long for a row */

/* A model that is kept. */
struct kept {
    struct fit_choice choice;
    json_t *version; /* owned */
    double row_ms;
    size_t models; /* in its file: of each fold, of each layer */
};

/* The trials of the chosen model with their parameters. */
static as_status trials_of(const struct fit *f, const struct fit_choice *c, json_t **ret,
                           struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    const json_t *members = json_object_get(c->ensemble, "members");
    const json_t *number = json_object_get(json_object_get(c->ensemble, "best_single"), "number");
    JSON_AUTO trial = NULL;
    char rest[48];
    if (!c->single) {
        *ret = json_incref((json_t *)members);
        return AS_OK;
    }
    struct trial_ref of = f->sweep;
    (void)snprintf(of.sweep, sizeof of.sweep, "%s", fit_choice_sweep(c, &f->sweep));
    as_status st = number ? AS_OK : request_get(f->session.client, &of, NULL, NULL, &sweep, err);
    if (!number)
        number = json_object_get(json_object_get(sweep, "best"), "number");
    (void)snprintf(rest, sizeof rest, "trials/%" JSON_INTEGER_FORMAT, json_integer_value(number));
    if (st == AS_OK)
        st = request_get(f->session.client, &of, rest, NULL, &trial, err);
    if (st < 0)
        return st;
    *ret = json_pack("[{s:O, s:O?, s:O?}]", "number", json_object_get(trial, "number"), "params",
                     json_object_get(trial, "params"), "test", json_object_get(trial, "test"));
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* Fetch the model to `path`, count its parts, and measure it. */
static as_status fetch_model(const struct fit *f, const json_t *version, const char *path,
                             struct kept *k, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *model = NULL;
    const struct fetch what = {.sha256 = json_string_value(json_object_get(version, "sha256")),
                               .size = json_integer_value(json_object_get(version, "size")),
                               .name = f->model,
                               .dest = path};
    as_status st = fetch_content(&f->session, &what, err);
    if (st == AS_OK)
        st = model_file_read(path, MODEL_FILE_MAX_BYTES, &model, err);
    if (st != AS_OK)
        return st;
    k->models = model_file_n_members(model);
    return predict_row_time(model, &k->row_ms, err);
}

/* The file that was asked for, or a temporary one. */
static as_status measure_model(const struct fit *f, struct kept *k, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    char path[256];
    if (f->output)
        return fetch_model(f, k->version, f->output, k, err);
    as_status st = temp_file_create(path, sizeof path, &fd, err);
    if (st < 0)
        return st;
    st = fetch_model(f, k->version, path, k, err);
    (void)unlink(path);
    return st;
}

static bool exports_to_onnx(const struct table_look *look, const struct fit_columns *c)
{
    for (size_t i = 0; i < look->n_columns; i++) {
        bool text = look->columns[i].kind == LOOK_TEXT && !look->columns[i].stray;
        if (look->columns[i].kind == LOOK_DATE || text)
            return false;
    }
    return c->text.len == 0;
}

static void kept_done(struct kept *k)
{
    fit_choice_done(&k->choice);
    json_decref(k->version);
    k->version = NULL;
}

static void slower_done(struct fit_slower *s)
{
    json_decref(s->version);
}

static as_status report(struct fit *f, const struct kept *k, const struct fit_slower *slower,
                        struct as_err *err)
{
    const struct fit_choice *c = &k->choice;
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO sweep = NULL;
    JSON_AUTO trials = NULL;
    as_status st = request_get(f->session.client, &f->sweep, NULL, NULL, &sweep, err);
    if (st == AS_OK)
        st = trials_of(f, c, &trials, err);
    if (st < 0)
        return st;
    const struct fit_result r = {.choice = c,
                                 .sweep = sweep,
                                 .version = k->version,
                                 .trials = trials,
                                 .narrow = f->narrow.sweep[0] ? f->narrow.sweep : NULL,
                                 .layer = f->layer.sweep[0] ? f->layer.sweep : NULL,
                                 .metric = f->plan.metric,
                                 .remarks = f->remarks,
                                 .doubts = f->doubts,
                                 .output = f->output,
                                 .data = f->data.test ? f->data.test : f->data.file,
                                 .row_ms = k->row_ms,
                                 .models = k->models,
                                 .row_time_ms = f->row_time_ms,
                                 .slower = slower,
                                 .size_bytes = f->wishes.size_bytes,
                                 .exports = exports_to_onnx(&f->look, &f->columns)};
    if (f->session.json) {
        JSON_AUTO j = fit_report_json(&r);
        return j ? session_print_json_line(j, err) : as_fail_nomem(err);
    }
    str_puts(&b, f->session.terminal.tty ? "\n" : "");
    fit_report_format(&r, &b);
    return session_print_text(&b, err);
}

static as_status fail_untrained(const struct fit *f, struct as_err *err)
{
    JSON_AUTO page = NULL;
    const json_t *first = NULL;
    if (request_get(f->session.client, &f->sweep, "trials", "state=failed&page_size=1", &page,
                    NULL) == AS_OK)
        first = json_array_get(json_object_get(page, "items"), 0);
    const char *reason = json_string_value(json_object_get(first, "reason"));
    if (reason)
        return as_fail(err, AS_E_INTERNAL,
                       "no training succeeded; one of them: %.150s (assay logs "
                       "%s/%" JSON_INTEGER_FORMAT ")",
                       reason, f->sweep.sweep,
                       json_integer_value(json_object_get(first, "number")));
    return as_fail(err, AS_E_TIMEOUT,
                   "no training ended in time: give more with --time; %s has what there is",
                   f->sweep.sweep);
}

static struct fit_trained trained_by(const struct fit *f)
{
    struct fit_trained of = {.sweep = &f->sweep};
    if (f->narrow.sweep[0])
        of.also[of.n_also++] = f->narrow.sweep;
    if (!f->layer.sweep[0])
        return of;
    of.layer = of.also[of.n_also++] = f->layer.sweep;
    of.stack = f->stack;
    return of;
}

/* Of all sweeps; without the wider one where nothing of it has ended. */
static as_status choose(struct fit *f, int64_t size, int64_t until_ns, struct fit_choice *ret,
                        struct as_err *err)
{
    struct fit_trained of = trained_by(f);
    as_status st = fit_choice_make(&f->session, &of, size, until_ns, ret, err);
    if (st != AS_E_NOT_FOUND || !f->narrow.sweep[0])
        return st;
    f->sweep = f->narrow;
    f->narrow.sweep[0] = '\0';
    of = trained_by(f);
    return fit_choice_make(&f->session, &of, size, until_ns, ret, err);
}

/* Its file could not be written: the search is not lost. */
static void say_kept(const struct kept *k)
{
    const char *name = json_string_value(json_object_get(k->version, "model"));
    json_int_t n = json_integer_value(json_object_get(k->version, "version"));
    say("The model is kept as %s@%" JSON_INTEGER_FORMAT
        ": `assay models get %s@%" JSON_INTEGER_FORMAT " FILE` writes it",
        name, n, name, n);
}

/* Choose, keep and measure a model. Of `size` bytes at most, if it has to be: else *ret stays as it
 * is. */
static as_status keep(struct fit *f, int64_t size, bool has_to, int64_t until_ns, struct kept *ret,
                      struct as_err *err)
{
    AS_AUTO(kept_done) struct kept k = {.row_ms = NAN};
    as_status st = choose(f, size, until_ns, &k.choice, err);
    if (st == AS_OK && has_to && k.choice.bytes > size)
        return AS_OK;
    if (st == AS_OK)
        st = fit_choice_keep(&f->session, &f->sweep, &k.choice, f->model, &k.version, err);
    if (st != AS_OK)
        return st;
    f->kept = true;
    struct as_err why = {0};
    st = measure_model(f, &k, &why);
    if (st < 0 && !f->output && !interrupt_seen()) { /* such as a full folder of temporary files */
        say("The time of a row is not known: %s", why.msg);
        st = AS_OK;
    }
    if (st < 0) {
        say_kept(&k);
        return as_fail(err, st, "%s", why.msg);
    }
    kept_done(ret);
    *ret = k;
    k = (struct kept){0};
    return AS_OK;
}

/* Where a row takes too long, smaller models take its place, as long as there are any: what a row
 * costs goes with the bytes that it has to look at. The first one stays, as an earlier version. */
static as_status keep_fast_enough(struct fit *f, int64_t until_ns, struct kept *k,
                                  struct fit_slower *slower, struct as_err *err)
{
    double limit = (double)f->row_time_ms;
    as_status st = keep(f, f->wishes.size_bytes, false, until_ns, k, err);
    for (int i = 0; st == AS_OK && k->row_ms > limit && i < SMALLER_TRIES; i++) {
        AS_AUTO(kept_done) struct kept next = {0};
        double bytes = (double)k->choice.bytes * limit / k->row_ms;
        st = keep(f, bytes < 1 ? 1 : (int64_t)bytes, true, until_ns, &next, err);
        if (st != AS_OK || !next.version)
            return st; /* no candidate is so small */
        if (!slower->version)
            *slower = (struct fit_slower){json_incref(k->version), k->choice.value, k->row_ms};
        kept_done(k);
        *k = next;
        next = (struct kept){0};
    }
    return st;
}

as_status fit_model_keep(struct fit *f, struct as_err *err)
{
    AS_AUTO(kept_done) struct kept k = {0};
    AS_AUTO(slower_done) struct fit_slower slower = {0};
    int64_t until_ns = f->start_ns + (f->time_ms - fit_kept_back_ms(f) * 2 / 3) * NS_PER_MS;
    as_status st = keep_fast_enough(f, until_ns, &k, &slower, err);
    if (st == AS_E_NOT_FOUND && !f->kept)
        return fail_untrained(f, err);
    return st == AS_OK ? report(f, &k, &slower, err) : st;
}
