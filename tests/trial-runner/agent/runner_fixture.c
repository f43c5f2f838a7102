/* The server of the runner's tests: an HTTP server in this process that answers the runner
 * protocol.
 *
 * It hands out the trials that a test has put on offer and records what the runner sends. It knows
 * only what the protocol needs and no database, so a test can make it answer late, refuse, or
 * forget an epoch at an exact moment. The server's thread and the test share `fx` under one
 * recursive lock. */
#include "tests/trial-runner/agent/runner_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "tests/api/client/http_server.h"
#include "tests/support/temp_folder.h"
#include "tests/support/roots.h"

struct fixture fx;

void fx_lock(void)
{
    pthread_mutex_lock(&fx.lock);
}

void fx_unlock(void)
{
    pthread_mutex_unlock(&fx.lock);
}

static void answer_blob(const struct server_request *q, struct server_answer *a)
{
    const char *sha = q->path + strlen("/v1/blobs/");
    struct blob *b = NULL;
    for (size_t i = 0; i < fx.n_blobs; i++)
        if (strcmp(fx.blobs[i].sha, sha) == 0)
            b = &fx.blobs[i];
    if (strcmp(q->method, "PUT") == 0) {
        char got[SHA256_HEX_SIZE];
        ck_assert(sha256_of(q->body, q->body_len, got, NULL) == AS_OK);
        ck_assert_str_eq(got, sha);
        b = &fx.blobs[fx.n_blobs++];
        memcpy(b->sha, got, sizeof got);
        b->bytes = malloc(q->body_len + 1);
        memcpy(b->bytes, q->body, q->body_len);
        b->len = q->body_len;
        a->status = 201;
    } else if (!b) {
        answer_problem(a, 404, "not_found", "no such blob");
    } else {
        a->content_type = "application/octet-stream";
        a->body = malloc(b->len + 1);
        memcpy(a->body, b->bytes, b->len);
        a->body_len = b->len;
    }
}

static json_t *directive(const struct trial *t, const char *action, const char *reason)
{
    return json_pack("{s:s,s:i,s:i,s:s,s:s}", "sweep", "s", "number", (int)(t - fx.trials),
                     "attempt", 1, "action", action, "reason", reason);
}

static void add_stops(json_t *list)
{
    for (int i = 0; i < MAX_TRIALS; i++) {
        const struct trial *t = &fx.trials[i];
        if (t->stop)
            json_array_append_new(list, directive(t, "stop", "cancelled"));
        if (t->is_decided)
            json_array_append_new(list, directive(t, t->decision, DECISION_REASON));
    }
}

/* The answer to measurements: what early stopping has decided now or before. */
static void answer_items(struct trial *t, const json_t *items, struct server_answer *a)
{
    size_t i;
    json_t *item;
    JSON_AUTO list = json_array();
    json_array_foreach(items, i,
                       item) if (t->decision && json_integer_value(json_object_get(item, "step")) >=
                                                    t->decides_at) t->is_decided = true;
    if (t->is_decided && !t->is_quiet)
        json_array_append_new(list, directive(t, t->decision, DECISION_REASON));
    AS_AUTO(as_freep) char *text = json_format(list);
    answer_json(a, 200, "{\"recorded\":1,\"directives\":%s}", text);
}

static void keep(json_t **where, json_t *j)
{
    json_decref(*where);
    *where = json_incref(j);
}

/* Is it a claim ahead that gets no trials? */
static bool gets_nothing_ahead(const json_t *body)
{
    if (!json_is_true(json_object_get(body, "ahead")))
        return false;
    fx.ahead_claims++;
    keep(&fx.ahead_ending, json_object_get(body, "ending"));
    return fx.no_ahead;
}

static void answer_claim(const json_t *body, struct server_answer *a)
{
    json_t *trials = json_array(), *fit = json_object_get(body, "fit");
    const char *group = json_string_value(json_object_get(fit, "group"));
    json_int_t most =
        json_integer_value(json_object_get(fit ? fit : body, fit ? "members" : "max_trials"));
    if (gets_nothing_ahead(body))
        most = 0;
    for (int i = 0; i < MAX_TRIALS && most > 0; i++) {
        struct trial *t = &fx.trials[i];
        if (!t->claim || t->handed_out ||
            !as_streq(t->refills ? t->refills : "", group ? group : ""))
            continue;
        t->handed_out = true;
        json_array_append(trials, t->claim);
        most -= fit || !json_object_get(t->claim, "group"); /* one claim takes a whole group */
    }
    bool none = json_array_size(trials) == 0;
    fx.refill_claims += fit != NULL;
    if (!fit) {
        fx.claim_seats = json_integer_value(json_object_get(body, "seats"));
        fx.claim_gpus = json_integer_value(json_object_get(body, "gpus"));
        fx.claim_gpu_bytes = json_integer_value(json_object_get(body, "gpu_memory_bytes"));
    }
    fx.empty_refills += fit && none;
    if (json_array_size(json_object_get(body, "measured")) > 0)
        keep(&fx.measured, json_object_get(body, "measured"));
    fx.ending_claims += json_array_size(json_object_get(body, "ending")) > 0;
    char *text = json_format(trials);
    answer_json(a, 200, "{\"trials\":%s,\"pending\":%s}", text,
                none && fx.pending ? "true" : "false");
    free(text);
    json_decref(trials);
    if (none) { /* the long-poll, made short */
        fx_unlock();
        clock_sleep_ms(20);
        fx_lock();
    }
}

/* Keep what the runner says about its processes. */
static void keep_sayings(const json_t *attempts)
{
    size_t i;
    json_t *said;
    json_array_foreach(attempts, i,
                       said) if (json_object_get(said, "phase") || json_object_get(said, "step"))
        keep(&fx.trials[json_integer_value(json_object_get(said, "number"))].said, said);
}

static void answer_runner(const char *verb, const json_t *body, struct server_answer *a)
{
    if (strcmp(verb, "leave") == 0) {
        fx.leaves++;
        a->status = 204;
        return;
    }
    if (json_integer_value(json_object_get(body, "epoch")) != fx.epoch) {
        answer_problem(a, 409, "stale_epoch", "register again");
        return;
    }
    if (strcmp(verb, "claim") == 0 && json_object_get(body, "ahead") && fx.refuses_ahead > 0) {
        fx.refuses_ahead--;
        answer_problem(a, 400, "invalid", "/ahead: unknown field");
        return;
    }
    if (strcmp(verb, "claim") == 0) {
        answer_claim(body, a);
        return;
    }
    if (json_object_get(body, "gpu_faults"))
        keep(&fx.faults, json_object_get(body, "gpu_faults"));
    keep_sayings(json_object_get(body, "attempts"));
    json_t *stops = json_array();
    add_stops(stops);
    char *text = json_format(stops);
    answer_json(a, 200, "{\"lease_ms\":60000,\"directives\":%s}", text);
    free(text);
    json_decref(stops);
    fx.heartbeats++;
}

static void answer_attempt(struct trial *t, const char *verb, json_t *body, struct server_answer *a)
{
    a->status = 204;
    if (strcmp(verb, "measurements") == 0 && fx.hold_items) {
        fx.held_items++;
        answer_problem(a, 503, "unavailable", "not now");
    } else if (strcmp(verb, "measurements") == 0) {
        if (!t->items)
            t->items = json_array();
        if (!t->notes)
            t->notes = json_object();
        json_array_extend(t->items, json_object_get(body, "items"));
        if (json_object_get(body, "notes"))
            json_object_update(t->notes, json_object_get(body, "notes"));
        answer_items(t, json_object_get(body, "items"), a);
    } else if (strcmp(verb, "log") == 0) {
        free(t->log);
        t->log = as_strdup(json_string_value(json_object_get(body, "text")));
    } else if (strcmp(verb, "files") == 0) {
        bool artifact = as_streq(json_string_value(json_object_get(body, "kind")), "artifact");
        keep(artifact ? &t->artifacts : &t->checkpoints, json_object_get(body, "files"));
        if (json_object_get(body, "lost"))
            keep(&t->lost, json_object_get(body, "lost"));
    } else if (strcmp(verb, "usage") == 0) {
        answer_json(a, 200, "{}"); /* of a trial that ran for a second, as on a busy machine */
    } else if (fx.hold_results) {
        answer_problem(a, 503, "unavailable", "not now");
    } else if (t->lacks_metric &&
               as_streq(json_string_value(json_object_get(body, "outcome")), "completed")) {
        t->refusals++;
        answer_json(
            a, 422,
            "{\"type\":\"about:blank\",\"title\":\"t\",\"status\":422,\"code\":\"unprocessable\","
            "\"detail\":\"no m.x\",\"errors\":[{\"pointer\":\"/metrics/m.x\",\"detail\":\"no\"}]}");
        a->content_type = "application/problem+json";
    } else if (json_object_get(body, "waited_ms") && fx.refuses_waited > 0) {
        fx.refuses_waited--;
        answer_json(a, 400,
                    "{\"type\":\"about:blank\",\"title\":\"t\",\"status\":400,\"code\":\"invalid\","
                    "\"detail\":\"unknown\",\"errors\":[{\"pointer\":\"/"
                    "waited_ms\",\"detail\":\"unknown\"}]}");
        a->content_type = "application/problem+json";
    } else {
        keep(&t->completion, body);
        answer_json(a, 200, "{}");
    }
}

static void handle_request(const struct server_request *q, struct server_answer *a);

/* The answer to one part of a batch, as its single request is answered. Takes `part`. */
static json_t *answer_part(const struct server_request *q, json_t *part, const char *verb)
{
    struct server_answer a = {0};
    AS_AUTO(str_done) struct str path = {0}, seat = {0}, epoch = {0};
    str_printf(&path, "/v1/sweeps/%s/trials/%lld/attempts/%lld/%s",
               json_string_value(json_object_get(part, "sweep")),
               (long long)json_integer_value(json_object_get(part, "number")),
               (long long)json_integer_value(json_object_get(part, "attempt")), verb);
    if (json_object_get(part, "seat")) {
        str_printf(&seat, "%lld", (long long)json_integer_value(json_object_get(part, "seat")));
        str_printf(&epoch, "%lld",
                   (long long)json_integer_value(json_object_get(part, "world_epoch")));
    }
    static const char *const names[] = {"sweep", "number", "attempt", "seat", "world_epoch"};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        json_object_del(part, names[i]);
    AS_AUTO(as_freep) char *text = json_format(part);
    json_decref(part);
    struct server_request one = *q;
    one.path = path.s;
    one.body = text;
    one.body_len = strlen(text);
    one.seat = str_cstr(&seat);
    one.world_epoch = str_cstr(&epoch);
    handle_request(&one, &a);
    int status = a.status ? a.status : 200;
    json_t *said = a.body ? json_loads(a.body, 0, NULL) : NULL;
    free(a.body);
    if (status >= 400)
        return json_pack("{s:i,s:o}", "status", status, "problem", said);
    json_t *answer = said ? said : json_object();
    json_object_set_new(answer, "status", json_integer(200));
    return answer;
}

static json_t *answer_parts(const struct server_request *q, json_t *parts, const char *verb)
{
    size_t i;
    json_t *part, *answers = json_array();
    json_array_foreach(parts, i, part)
    {
        fx.batch_parts++;
        json_array_append_new(answers, answer_part(q, json_incref(part), verb));
    }
    return answers;
}

/* Many parts in one request: measurements first, then ends. */
static void answer_batch(const struct server_request *q, json_t *body, struct server_answer *a)
{
    if (fx.no_batches) {
        fx.batches_refused++;
        answer_problem(a, fx.no_batches, "not_found", "no such path");
        return;
    }
    fx.batches++;
    json_t *reports = answer_parts(q, json_object_get(body, "measurements"), "measurements");
    JSON_AUTO answer =
        json_pack("{s:o,s:o,s:n}", "measurements", reports, "ends",
                  answer_parts(q, json_object_get(body, "ends"), "complete"), "claim");
    AS_AUTO(as_freep) char *text = json_format(answer);
    answer_json(a, 200, "%s", text);
    a->cut = fx.cut_batches > 0;
    fx.cut_batches -= a->cut;
}

static void handle_locked(const struct server_request *q, struct server_answer *a)
{
    if (fx.down) {
        fx.answers_down++;
        answer_problem(a, 503, "unavailable", "down");
        return;
    }
    if (fx.denied) {
        fx.answers_denied++;
        answer_problem(a, 401, "denied", "not a valid token");
        return;
    }
    if (!fx.secret[0])
        (void)snprintf(fx.secret, sizeof fx.secret, "%s", q->runner_secret);
    ck_assert_uint_ge(strlen(fx.secret), 32);
    ck_assert_str_eq(q->runner_secret, fx.secret);
    fx.singles += as_ends_with(q->path, "/complete") || as_ends_with(q->path, "/measurements");
    handle_request(q, a);
}

static void handle_request(const struct server_request *q, struct server_answer *a)
{
    int number = 0, attempt = 0;
    char verb[32] = "";
    if (strncmp(q->path, "/v1/blobs/", 10) == 0) {
        if (fx.on_blob)
            fx.on_blob(q);
        answer_blob(q, a);
        return;
    }
    if (fx.more && strncmp(q->path, "/v1/sweeps/", 11) == 0 && fx.more(q, a))
        return;
    json_t *body = json_loadb(q->body, q->body_len, 0, NULL);
    ck_assert_ptr_nonnull(body);
    ck_assert_str_eq(q->authorization, "Bearer runner-token");
    if (strcmp(q->path, "/v1/runners") == 0 && fx.taken > 0) {
        fx.taken--;
        answer_problem(a, 409, "conflict", "another runner has the name");
    } else if (strcmp(q->path, "/v1/runners") == 0) {
        keep(&fx.registration, body);
        keep_sayings(json_object_get(body, "resume"));
        fx.registrations++;
        fx.epoch++;
        answer_json(a, 200,
                    "{\"name\":\"r\",\"epoch\":%lld,\"lease_ms\":%d,"
                    "\"heartbeat_ms\":50,\"directives\":[]}",
                    (long long)fx.epoch, fx.lease_ms > 0 ? fx.lease_ms : 60000);
    } else if (sscanf(q->path, "/v1/sweeps/s/trials/%d/attempts/%d/%31s", &number, &attempt,
                      verb) == 3 &&
               fx.not_holder) {
        answer_problem(a, 403, "not_holder", "it is another runner's");
    } else if (sscanf(q->path, "/v1/sweeps/s/trials/%d/attempts/%d/%31s", &number, &attempt,
                      verb) == 3) {
        answer_attempt(&fx.trials[number], verb, body, a);
    } else if (strcmp(q->path, "/v1/runners/r/batch") == 0) {
        answer_batch(q, body, a);
    } else if (sscanf(q->path, "/v1/runners/r/%31s", verb) == 1) {
        answer_runner(verb, body, a);
    } else {
        answer_problem(a, 404, "not_found", "no such path");
    }
    json_decref(body);
}

static void handle(void *arg, const struct server_request *q, struct server_answer *a)
{
    (void)arg;
    fx_lock();
    handle_locked(q, a);
    fx_unlock();
}

void start_runner(const char *more_name, const char *more_value)
{
    char program[400];
    snprintf(program, sizeof program, "%s/trial-runner/agent/assay-runner", build_root());
    fx.runner = fork();
    if (fx.runner == 0) {
        char cache[100];
        snprintf(cache, sizeof cache, "%s/cache", fx.dir);
        setenv("ASSAY_TOKEN", "runner-token", 1);
        setenv("SLURM_JOB_ID", "77", 1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program, program, "--server", http_server_url(fx.server), "--name", "r", "--slots",
              "4", "--work", fx.work, "--cache", cache, "--log-level",
              getenv("ASSAY_TEST_LOG") ? getenv("ASSAY_TEST_LOG") : "warn", "--gpus", "5,7",
              more_name, more_value, NULL);
        _exit(99);
    }
    ck_assert_int_gt(fx.runner, 0);
}

int end_runner(int sig)
{
    int status = 0;
    kill(fx.runner, sig);
    while (waitpid(fx.runner, &status, 0) < 0 && errno == EINTR)
        ;
    fx.runner = 0;
    return status;
}

void fx_setup(void)
{
    pthread_mutexattr_t again;
    memset(&fx, 0, sizeof fx);
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&fx.lock, &again);
    pthread_mutexattr_destroy(&again);
    temp_folder_make(fx.dir);
    snprintf(fx.work, sizeof fx.work, "%s/work", fx.dir);
    fx.server = http_server_start(0, handle, NULL);
}

void fx_teardown(void)
{
    if (fx.runner > 0)
        end_runner(SIGKILL);
    http_server_stop(fx.server);
    for (int i = 0; i < MAX_TRIALS; i++) {
        struct trial *t = &fx.trials[i];
        json_decref(t->claim);
        json_decref(t->completion);
        json_decref(t->said);
        json_decref(t->artifacts);
        json_decref(t->checkpoints);
        json_decref(t->lost);
        json_decref(t->items);
        json_decref(t->notes);
        free(t->log);
    }
    for (size_t i = 0; i < fx.n_blobs; i++)
        free(fx.blobs[i].bytes);
    json_decref(fx.registration);
    json_decref(fx.measured);
    json_decref(fx.ahead_ending);
    json_decref(fx.faults);
    temp_folder_remove(fx.dir);
}

struct trial *offer(int number, const char *trial, int grace_ms, int timeout_ms, int gpus)
{
    struct trial *t = &fx.trials[number];
    json_error_t at;
    json_t *doc = json_loads(trial, 0, &at);
    ck_assert_msg(doc != NULL, "%s: %s", at.text, trial);
    fx_lock();
    t->claim =
        json_pack("{s:s,s:i,s:i,s:s,s:{s:f,s:s},s:o,s:{s:s,s:s},s:[],s:i,s:i,s:i,s:n}", "sweep",
                  "s", "number", number, "attempt", 1, "seed", "9", "params", "lr", 0.1, "kind",
                  "a b", "trial", doc, "metric", "name", "loss", "goal", "minimize", "files",
                  "grace_ms", grace_ms, "timeout_ms", timeout_ms, "gpus", gpus, "dataset");
    fx_unlock();
    ck_assert_ptr_nonnull(t->claim);
    return t;
}

struct trial *offer_member(int number, const char *train, const char *group)
{
    AS_AUTO(str_done) struct str doc = {0};
    static const char table[] = "x,y\n1,2\n";
    str_printf(&doc, "{\"train\":%s}", train);
    fx_lock(); /* a runner that runs would claim what is not whole yet */
    struct trial *t = offer(number, str_cstr(&doc), PATIENCE_MS, 0, 1);
    if (fx.n_blobs == 0) {
        struct blob *b = &fx.blobs[fx.n_blobs++];
        b->bytes = as_strdup(table);
        b->len = strlen(table);
        ck_assert(sha256_of(b->bytes, b->len, b->sha, NULL) == AS_OK);
    }
    json_object_set_new(t->claim, "dataset",
                        json_pack("{s:s,s:s,s:[{s:s,s:s,s:i}]}", "name", "d", "format", "csv",
                                  "files", "role", "table", "sha256", fx.blobs[0].sha, "size",
                                  (int)fx.blobs[0].len));
    json_object_set_new(t->claim, "group",
                        json_pack("{s:s,s:s,s:i,s:i}", "id", group, "shape", "mlp 1-2",
                                  "bytes_per_member", 1000, "max_members", 4));
    fx_unlock();
    return t;
}

struct trial *offer_sh(int number, const char *script)
{
    JSON_AUTO doc = json_pack("{s:[s,s,s]}", "command", "sh", "-c", script);
    AS_AUTO(as_freep) char *text = json_format(doc);
    return offer(number, text, PATIENCE_MS, 0, 0);
}

static const char *completion_of(const struct trial *t, const char *field, char ret[1024])
{
    fx_lock();
    const char *s = json_string_value(json_object_get(t->completion, field));
    (void)snprintf(ret, 1024, "%s", s ? s : "");
    fx_unlock();
    return ret;
}

const char *outcome_of(const struct trial *t)
{
    static char outcome[1024];
    return completion_of(t, "outcome", outcome);
}

const char *reason_of(const struct trial *t)
{
    static char reason[1024];
    return completion_of(t, "reason", reason);
}

bool log_has(const struct trial *t, const char *part)
{
    fx_lock();
    bool has = t->log && strstr(t->log, part);
    fx_unlock();
    return has;
}
