/* The server is trusted with what to run and not with where to write: names become folders, so
 * anything but plain names is refused here (claimed_name_safe()), as are numbers outside of the
 * ranges that the rest of the runner relies on. The parsed JSON is owned, and texts are views of
 * it. */
#include "trial-runner/attempt/claimed.h"

#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#define NUMBER_MAX INT64_C(2147483647)
#define DEFAULT_GRACE_MS 30000
#define MAX_MEMBERS 64
#define MAX_RANKS 4096

bool claimed_name_safe(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= 80 && s[0] != '.' && s[0] != '_' && s[0] != '-' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

static as_status check_files(const json_t *files, struct as_err *err)
{
    size_t i;
    json_t *f;
    json_array_foreach(files, i, f)
    {
        const char *path = json_string_value(json_object_get(f, "path"));
        const char *sha = json_string_value(json_object_get(f, "sha256"));
        if (!path || !file_path_is_inner(path) || !sha || !sha256_hex_valid(sha))
            return as_fail(err, AS_E_INVAL,
                           "file %zu of the claim is not a relative path with a digest", i);
    }
    return AS_OK;
}

static as_status read_group(struct claimed *c, struct json_fields *parent, struct as_err *err)
{
    struct claimed_group *g = &c->group;
    struct json_fields f;
    json_t *obj = NULL;
    as_status st = json_fields_object(parent, "group", JSON_OPTIONAL, &obj, err);
    if (st != AS_OK || !obj)
        return st;
    st = json_fields_init(&f, obj, "/group", err);
    if (st < 0)
        return st;
    st = json_fields_str(&f, "id", JSON_REQUIRED, &g->id, err);
    if (st < 0)
        return st;
    st = json_fields_str(&f, "shape", JSON_REQUIRED, &g->shape, err);
    if (st < 0)
        return st;
    st = json_fields_i64(&f, "bytes_per_member", JSON_REQUIRED, 0, INT64_MAX, &g->bytes_per_member,
                         err);
    if (st < 0)
        return st;
    st = json_fields_i64(&f, "max_members", JSON_REQUIRED, 1, MAX_MEMBERS, &g->max_members, err);
    if (st < 0)
        return st;
    if (!claimed_name_safe(g->id))
        return as_fail(err, AS_E_INVAL, "the group's id '%.100s' is not a name", g->id);
    return AS_OK;
}

static as_status read_gang(struct claimed *c, struct json_fields *parent, struct as_err *err)
{
    static const char *const launches[] = {"all", "first", NULL};
    struct claimed_gang g = {0};
    struct json_fields f;
    json_t *obj = NULL;
    int launch = 0;
    as_status st = json_fields_object(parent, "gang", JSON_OPTIONAL, &obj, err);
    if (st != AS_OK || !obj)
        return st;
    if ((st = json_fields_init(&f, obj, "/gang", err)) < 0 ||
        (st = json_fields_i64(&f, "seat", JSON_REQUIRED, 0, NUMBER_MAX, &g.seat, err)) < 0 ||
        (st = json_fields_i64(&f, "ranks", JSON_REQUIRED, 1, MAX_RANKS, &g.ranks, err)) < 0 ||
        (st = json_fields_i64(&f, "min_ranks", JSON_REQUIRED, 1, g.ranks, &g.min_ranks, err)) < 0 ||
        (st = json_fields_bool(&f, "elastic", JSON_REQUIRED, &g.elastic, err)) < 0 ||
        (st = json_fields_word(&f, "launch", JSON_OPTIONAL, launches, &launch, err)) < 0)
        return st;
    g.first = launch == 1;
    c->gang = g;
    return AS_OK;
}

static as_status read_forks(struct claimed *c, struct json_fields *parent, struct as_err *err)
{
    struct claimed_forks k = {0};
    struct json_fields f;
    json_t *obj = NULL;
    as_status st = json_fields_object(parent, "forks", JSON_OPTIONAL, &obj, err);
    if (st != AS_OK || !obj)
        return st;
    if ((st = json_fields_init(&f, obj, "/forks", err)) < 0 ||
        (st = json_fields_i64(&f, "every", JSON_REQUIRED, 1, INT64_MAX, &k.every, err)) < 0 ||
        (st = json_fields_i64(&f, "until", JSON_REQUIRED, 1, INT64_MAX, &k.until, err)) < 0)
        return st;
    if (k.until / k.every > CLAIMED_MAX_KEPT)
        return as_fail(err, AS_E_INVAL, "/forks: found more than %d steps to keep",
                       CLAIMED_MAX_KEPT);
    k.json = obj;
    c->forks = k;
    return AS_OK;
}

static as_status read_fields(struct claimed *c, struct json_fields *f, struct as_err *err)
{
    as_status st = json_fields_str(f, "sweep", JSON_REQUIRED, &c->sweep, err);
    if (st < 0)
        return st;
    st = json_fields_i64(f, "number", JSON_REQUIRED, 0, NUMBER_MAX, &c->number, err);
    if (st < 0)
        return st;
    st = json_fields_i64(f, "attempt", JSON_REQUIRED, 1, NUMBER_MAX, &c->attempt, err);
    if (st < 0)
        return st;
    if (!claimed_name_safe(c->sweep)) {
        c->attempt = 0;
        return as_fail(err, AS_E_INVAL, "the sweep's id '%.100s' is not a name", c->sweep);
    }
    st = json_fields_str(f, "seed", JSON_REQUIRED, &c->seed, err);
    if (st < 0)
        return st;
    st = json_fields_object(f, "params", JSON_REQUIRED, &c->params, err);
    if (st < 0)
        return st;
    st = json_fields_object(f, "trial", JSON_REQUIRED, &c->trial, err);
    if (st < 0)
        return st;
    st = json_fields_object(f, "metric", JSON_REQUIRED, &c->metric, err);
    if (st < 0)
        return st;
    st = json_fields_object(f, "dataset", JSON_OPTIONAL, &c->dataset, err);
    if (st < 0)
        return st;
    st = json_fields_array(f, "files", JSON_REQUIRED, &c->files, err);
    if (st < 0)
        return st;
    st = json_fields_str(f, "token", JSON_OPTIONAL, &c->token, err);
    if (st < 0)
        return st;
    st = json_fields_i64(f, "gpus", JSON_OPTIONAL, 0, 1024, &c->gpus, err);
    if (st < 0)
        return st;
    st = json_fields_i64(f, "cpus", JSON_OPTIONAL, 0, 4096, &c->cpus, err);
    if (st < 0)
        return st;
    st = json_fields_i64(f, "timeout_ms", JSON_OPTIONAL, 0, INT64_MAX, &c->timeout_ms, err);
    if (st < 0)
        return st;
    st = json_fields_i64(f, "grace_ms", JSON_OPTIONAL, 0, INT64_MAX, &c->grace_ms, err);
    if (st < 0)
        return st;
    st = json_fields_bool(f, "early_stopping", JSON_OPTIONAL, &c->early_stopping, err);
    if (st < 0 ||
        (st = json_fields_bool(f, "gives_ahead", JSON_OPTIONAL, &c->gives_ahead, err)) < 0)
        return st;
    st = read_gang(c, f, err);
    if (st < 0)
        return st;
    st = read_group(c, f, err);
    if (st < 0)
        return st;
    st = read_forks(c, f, err);
    if (st < 0)
        return st;
    return check_files(c->files, err);
}

as_status claimed_parse(json_t *j, struct claimed *c, struct as_err *err)
{
    struct json_fields f;
    *c = (struct claimed){.grace_ms = DEFAULT_GRACE_MS, .early_stopping = true};
    as_status st = json_fields_init(&f, j, "", err);
    if (st < 0)
        return st;
    st = read_fields(c, &f, err);
    if (st < 0)
        return st;
    c->json = json_incref(j);
    return AS_OK;
}

struct attempt_id claimed_id(const struct claimed *c)
{
    return (struct attempt_id){.sweep = c->sweep,
                               .number = c->number,
                               .attempt = c->attempt,
                               .seat = c->gang.ranks ? c->gang.seat : ATTEMPT_NO_SEAT};
}

void claimed_done(struct claimed *c)
{
    json_decref(c->json);
    c->json = NULL;
}
