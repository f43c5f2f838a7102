/* Adds trials to a sweep: one from the command line, or many from a file.
 *
 * The rows of a file are sent in lists, each of which is added as a whole or not at all. Each row
 * has an idempotency key that is computed from its contents. So adding the file again continues
 * where it failed, and adding a file that has grown adds its new rows. A single trial from the
 * command line has a random key: typing the same command twice adds two trials. */
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
/* One request stays below the server's limits, so that an answer takes about a second. */
#define LIST_ROWS 1000
#define LIST_BYTES (512 << 10)

static as_status post_trials(const struct session *s, const struct trial_ref *ref,
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
        return as_fail(err, AS_E_INTERNAL, "the server returned no object");
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
    st = post_trials(s, ref, body, key, &trial, err);
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

/* The key of a row: a digest of the sweep, the row, and the number of equal rows before
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

/* A list of rows that is being collected. */
struct sending {
    const struct session *s;
    const struct trial_ref *ref;
    const struct known_results *file;
    json_t *list; /* owned: rows with their keys */
    size_t first; /* the row of the file that begins the list */
    size_t bytes;
    size_t n_added, n_before; /* rows that were new; that were added earlier */
    json_t *items;            /* borrowed: gets each row with its number */
};

/* The row that the server refused, in the words of the file. */
static as_status explain(const struct sending *x, as_status st, struct as_err *err)
{
    int64_t row = 0;
    char number[24] = "";
    if (err->pointer[0] == '/')
        (void)snprintf(number, sizeof number, "%.*s", (int)strcspn(err->pointer + 1, "/"),
                       err->pointer + 1);
    if (as_parse_i64(number, &row, NULL) == AS_OK && row >= 0 &&
        x->first + (size_t)row < x->file->n)
        st = known_results_explain(x->file, x->first + (size_t)row, st, err);
    if (x->first > 0)
        say("%zu of %zu rows were added; add the file again to continue from here", x->first,
            x->file->n);
    return st;
}

/* Send the list, and begin a new one. */
static as_status send_list(struct sending *x, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    size_t i, n = json_array_size(x->list);
    json_t *row;
    if (n == 0)
        return AS_OK;
    as_status st = post_trials(x->s, x->ref, x->list, NULL, &answer, err);
    if (st < 0)
        return explain(x, st, err);
    const json_t *numbers = json_object_get(answer, "numbers");
    if (json_array_size(numbers) != n)
        return as_fail(err, AS_E_INTERNAL, "the server returned %zu numbers for %zu rows",
                       json_array_size(numbers), n);
    json_array_foreach(x->list, i, row)
    {
        int bad = json_object_del(row, "key");
        bad |= json_object_set(row, "number", json_array_get(numbers, i));
        bad |= json_array_append(x->items, row);
        if (bad)
            return as_fail_nomem(err);
    }
    size_t added = (size_t)json_integer_value(json_object_get(answer, "added"));
    x->n_added += added;
    x->n_before += n - added;
    x->first += n;
    x->bytes = 0;
    return json_array_clear(x->list) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status add_row(struct sending *x, size_t i, json_t *counts, struct as_err *err)
{
    char key[CLIENT_KEY_SIZE];
    as_status st = key_of_row(x->ref->sweep, x->file->trials[i].body, counts, key, err);
    if (st < 0)
        return st;
    JSON_AUTO row = json_copy(x->file->trials[i].body);
    AS_AUTO(as_freep) char *text = row ? json_format(row) : NULL;
    if (!text || json_object_set_new(row, "key", json_string(key)) != 0)
        return as_fail_nomem(err);
    size_t bytes = strlen(text) + CLIENT_KEY_SIZE;
    if (json_array_size(x->list) == LIST_ROWS || x->bytes + bytes > LIST_BYTES)
        st = send_list(x, err);
    if (st < 0)
        return st;
    x->bytes += bytes;
    return json_array_append(x->list, row) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status send_all(struct sending *x, struct as_err *err)
{
    JSON_AUTO counts = json_object();
    JSON_AUTO list = json_array();
    if (!counts || !list)
        return as_fail_nomem(err);
    x->list = list;
    as_status st = AS_OK;
    for (size_t i = 0; i < x->file->n && st == AS_OK; i++)
        st = add_row(x, i, counts, err);
    return st == AS_OK ? send_list(x, err) : st;
}

static void say_counts(const struct sending *x)
{
    size_t i, completed = 0, failed = 0;
    json_t *row;
    json_array_foreach(x->items, i, row)
    {
        bool has_failed = as_streq(json_string_value(json_object_get(row, "state")), "failed");
        failed += has_failed;
        completed +=
            !has_failed && (json_object_get(row, "state") || json_object_get(row, "metrics"));
    }
    say("%s: %zu trials from %s: %zu completed, %zu failed, %zu enqueued", x->ref->sweep, i,
        x->file->name, completed, failed, i - completed - failed);
    if (x->n_before > 0)
        say("%zu of them had been added before, and were not added again", x->n_before);
    if (x->file->n_skipped > 0)
        say("%zu rows without a result (queued, running, paused, pruned, cancelled) were skipped",
            x->file->n_skipped);
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
    struct sending x = {.s = s, .ref = ref, .file = &f, .items = trials};
    st = send_all(&x, err);
    if (st < 0)
        return st;
    if (s->json)
        return list_print_json(trials, err);
    say_counts(&x);
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
