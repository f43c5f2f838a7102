/* Adds trials to a sweep: one from the command line, or many from a file.
 *
 * Each row of a file is one request. If one fails, the rows before it are added and the command
 * ends; adding the file again then continues, because the idempotency keys of the rows are computed
 * from their contents. A single trial from the command line has a random key: typing the same
 * command twice adds two trials. */
#include "cli/commands/trials_add.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "cli/files/param_args.h"
#include "cli/files/known_results.h"
#include "cli/session/list.h"
#include "cli/session/request.h"
#include "cli/view/say.h"

#define RETRY_MS 60000

static as_status post_trial(const struct session *s, const struct trial_ref *ref,
                            const json_t *body, const char *key, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = RETRY_MS};
    request_path(&path, ref, "trials");
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    st = client_call(s->client, "POST", path.s, NULL, body, &opts, ret, NULL, err);
    if (st < 0)
        return st;
    if (!json_is_object(*ret))
        return as_fail(err, AS_E_INTERNAL, "the server returned no trial");
    return AS_OK;
}

/* Adding one trial from the command line. */

static as_status make_body(const struct trials_add *a, json_t **ret, struct as_err *err)
{
    JSON_AUTO params = NULL;
    JSON_AUTO metrics = NULL;
    as_status st = param_args_read("--param", a->params.values, a->params.n, param_args_add_param,
                                   &params, err);
    if (st < 0)
        return st;
    st = param_args_read("--metric", a->metrics.values, a->metrics.n, param_args_add_metric,
                         &metrics, err);
    if (st < 0)
        return st;
    JSON_AUTO body = json_pack("{s:O}", "params", params);
    int bad = body ? 0 : 1;
    if (!bad && a->metrics.n > 0)
        bad |= json_object_set(body, "metrics", metrics);
    if (!bad && a->failed)
        bad |= json_object_set_new(body, "state", json_string("failed"));
    if (!bad && a->reason)
        bad |= json_object_set_new(body, "reason", json_string(a->reason));
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(body);
    return AS_OK;
}

static as_status add_one(const struct session *s, const struct trial_ref *ref,
                         const struct trials_add *a, struct as_err *err)
{
    char key[CLIENT_KEY_SIZE];
    JSON_AUTO body = NULL;
    JSON_AUTO trial = NULL;
    client_key_new(key);
    as_status st = make_body(a, &body, err);
    if (st < 0)
        return st;
    st = post_trial(s, ref, body, key, &trial, err);
    if (st < 0)
        return st;
    if (s->json)
        return session_print_json(trial, err);
    const char *state = json_string_value(json_object_get(trial, "state"));
    const char *origin = json_string_value(json_object_get(trial, "origin"));
    say("%s/%" JSON_INTEGER_FORMAT " is %s (%s)", ref->sweep,
        json_integer_value(json_object_get(trial, "number")), state ? state : "?",
        origin ? origin : "?");
    return AS_OK;
}

/* Adding the trials of a file. */

/* The idempotency key of a row: a digest of the sweep, the row, and the number of equal rows before
 * it. The same file has the same keys, so that adding it again adds no row twice, and equal rows of
 * one file are still separate trials. */
static as_status key_of_row(const char *sweep, const json_t *body, json_t *counts,
                            char ret[CLIENT_KEY_SIZE], struct as_err *err)
{
    char digest[SHA256_HEX_SIZE];
    AS_AUTO(str_done) struct str b = {0};
    AS_AUTO(as_freep) char *text = json_format(body);
    if (!text)
        return as_fail_nomem(err);
    as_status st = sha256_of(text, strlen(text), digest, err);
    if (st < 0)
        return st;
    json_int_t n = json_integer_value(json_object_get(counts, digest));
    if (json_object_set_new(counts, digest, json_integer(n + 1)) != 0)
        return as_fail_nomem(err);
    str_printf(&b, "%s %" JSON_INTEGER_FORMAT " %s", sweep, n, text);
    st = str_check(&b, err);
    if (st < 0)
        return st;
    st = sha256_of(b.s, b.len, digest, err);
    if (st < 0)
        return st;
    (void)snprintf(ret, CLIENT_KEY_SIZE, "%.32s", digest);
    return AS_OK;
}

static as_status send_all(const struct session *s, const struct trial_ref *ref,
                          const struct known_results *f, json_t *ret, struct as_err *err)
{
    JSON_AUTO counts = json_object();
    if (!counts)
        return as_fail_nomem(err);
    for (size_t i = 0; i < f->n; i++) {
        char key[CLIENT_KEY_SIZE];
        json_t *trial = NULL;
        as_status st = key_of_row(ref->sweep, f->trials[i].body, counts, key, err);
        if (st == AS_OK)
            st = post_trial(s, ref, f->trials[i].body, key, &trial, err);
        if (st < 0) {
            json_decref(trial);
            st = known_results_explain(f, i, st, err);
            if (i > 0)
                say("%zu of %zu trials were added; add the file again to continue from here", i,
                    f->n);
            return st;
        }
        if (json_array_append_new(ret, trial) != 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

static void say_counts(const struct trial_ref *ref, const json_t *trials,
                       const struct known_results *f)
{
    size_t i, completed = 0, failed = 0;
    json_t *trial;
    json_array_foreach((json_t *)trials, i, trial)
    {
        const char *state = json_string_value(json_object_get(trial, "state"));
        completed += as_streq(state, "completed");
        failed += as_streq(state, "failed");
    }
    say("%s: %zu trials from %s: %zu completed, %zu failed, %zu enqueued", ref->sweep, i, f->name,
        completed, failed, i - completed - failed);
    if (f->n_skipped > 0)
        say("%zu rows without a result (queued, running, cancelled) were skipped", f->n_skipped);
}

static as_status add_file(const struct session *s, const struct trial_ref *ref, const char *path,
                          struct as_err *err)
{
    AS_AUTO(known_results_done) struct known_results f = {0};
    JSON_AUTO sweep = NULL;
    JSON_AUTO trials = json_array();
    if (!trials)
        return as_fail_nomem(err);
    as_status st = request_get(s->client, ref, NULL, NULL, &sweep, err);
    if (st < 0)
        return st;
    st = known_results_read(path, sweep, &f, err);
    if (st < 0)
        return st;
    st = send_all(s, ref, &f, trials, err);
    if (st < 0)
        return st;
    if (s->json)
        return list_print_json(trials, err);
    say_counts(ref, trials, &f);
    return AS_OK;
}

as_status trials_add(const struct session *s, const char *sweep, const struct trials_add *a,
                     struct as_err *err)
{
    struct trial_ref ref;
    as_status st = request_parse_sweep(sweep, &ref, err);
    if (st < 0)
        return st;
    return a->file ? add_file(s, &ref, a->file, err) : add_one(s, &ref, a, err);
}
