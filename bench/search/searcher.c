/* Search methods behind one interface: ours, and those of peers in child processes.
 *
 * Our methods get the same inputs as in the service, with state and cache, so that the benchmark
 * measures what users get. A peer keeps its own history, so every result and every added trial is
 * sent to it. A peer receives the problem's parameters once, when the sweep begins. Times exclude
 * the pipe, because it is no cost of the peer. */
#include "bench/search/searcher.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "bench/search/peer.h"

static const struct {
    const char *name;
    const char *sampler;  /* the peer's sampler; NULL: our method, with this name in documents */
    peer_program program; /* that has the sampler */
} methods[] = {
    {"random", NULL, 0},
    {"sobol", NULL, 0},
    {"gp", NULL, 0},
    {"tpe", NULL, 0},
    {"forest", NULL, 0},
    {"cmaes", NULL, 0},
    {"evolution", NULL, 0},
    {"coordinate", NULL, 0},
    {"mcmc", NULL, 0},
    {"auto", NULL, 0},
    {"optuna-gp", "gp", PEER_OPTUNA},
    {"optuna-tpe", "tpe", PEER_OPTUNA},
    {"optuna-cmaes", "cmaes", PEER_OPTUNA},
    {"hebo", "hebo", PEER_RECIPES},
    {"botorch", "botorch", PEER_RECIPES},
};

static bool time_cpu;

void searcher_time_cpu(bool on)
{
    time_cpu = on;
}

int64_t searcher_clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(time_cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

struct searcher {
    const struct problem *problem;
    bool is_peer;
    peer_program program; /* of a peer */
    struct search_spec spec;
    struct search_cache *cache;
    json_t *state, *reason;
};

void searcher_free(struct searcher *s)
{
    if (s == NULL)
        return;
    search_cache_free(s->cache);
    json_decref(s->state);
    json_decref(s->reason);
    free(s);
}

const struct search_spec *searcher_spec(const struct searcher *s)
{
    return &s->spec;
}

const json_t *searcher_reason(const struct searcher *s)
{
    return s->reason;
}

size_t searcher_cache_bytes(const struct searcher *s)
{
    return s->cache != NULL ? search_cache_bytes(s->cache) : 0;
}

const char *searcher_peer(const char *method)
{
    for (size_t m = 0; m < AS_ARRAY_LEN(methods); m++)
        if (methods[m].sampler != NULL && methods[m].program == PEER_OPTUNA &&
            as_streq(methods[m].name, method))
            return peer_version(PEER_OPTUNA);
    return NULL;
}

static as_status open_peer(const struct searcher *s, const char *sampler, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    as_status st = peer_has(s->program, sampler, err);
    if (st < 0)
        return st;
    return peer_request(s->program,
                        json_pack("{s:s, s:s, s:I, s:b, s:O}", "op", "begin", "sampler", sampler,
                                  "seed", (json_int_t)s->spec.seed, "deterministic",
                                  !(s->problem->def->noise > 0), "parameters",
                                  s->problem->parameters),
                        &answer, err);
}

static as_status open_own(struct searcher *s, const char *method, struct as_err *err)
{
    s->cache = search_cache_create();
    if (s->cache == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return search_method_parse(method, "method", &s->spec.method, err);
}

as_status searcher_open(const char *method, const struct problem *p, uint64_t seed,
                        struct searcher **ret, struct as_err *err)
{
    AS_AUTO(searcher_freep) struct searcher *s = as_calloc(1, sizeof *s);
    size_t m = 0;
    while (m < AS_ARRAY_LEN(methods) && !as_streq(methods[m].name, method))
        m++;
    if (m == AS_ARRAY_LEN(methods))
        return as_fail(err, AS_E_NOT_FOUND,
                       "no method '%s'; there are random, sobol, gp, tpe, forest, cmaes, "
                       "evolution, coordinate, "
                       "mcmc, auto, optuna-gp, optuna-tpe, optuna-cmaes, hebo, botorch",
                       method);
    if (s == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    s->problem = p;
    s->spec = (struct search_spec){.space = p->space, .seed = seed, .n_objectives = 1};
    s->is_peer = methods[m].sampler != NULL;
    s->program = methods[m].program;
    as_status st = s->is_peer ? open_peer(s, methods[m].sampler, err) : open_own(s, method, err);
    if (st < 0)
        return st;
    *ret = as_steal(s);
    return AS_OK;
}

static as_status ask_peer(const struct searcher *s, uint64_t number, struct config **ret,
                          double *ret_ms, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    as_status st =
        peer_request(s->program, json_pack("{s:s, s:I}", "op", "ask", "trial", (json_int_t)number),
                     &answer, err);
    if (st != AS_OK)
        return st;
    st =
        config_from_json(s->problem->space, json_object_get(answer, "params"), "/params", ret, err);
    if (st != AS_OK)
        return st;
    *ret_ms = json_number_value(json_object_get(answer, time_cpu ? "cpu_ms" : "ms"));
    return AS_OK;
}

as_status searcher_ask(struct searcher *s, const struct history *h, uint64_t number,
                       struct config **ret, double *ret_ms, struct as_err *err)
{
    if (s->is_peer)
        return ask_peer(s, number, ret, ret_ms, err);
    struct suggestion made = {0};
    uint64_t index = 0; /* how many suggestions the method has made */
    for (size_t i = 0; i < h->n; i++)
        index += h->trials[i].is_suggested;
    int64_t from = searcher_clock_ns();
    as_status st = suggest(&s->spec, h, s->state, number, index, s->cache, &made, err);
    if (st < 0)
        return st;
    *ret_ms = (double)(searcher_clock_ns() - from) / (double)NS_PER_MS;
    *ret = made.config;
    json_decref(s->state);
    json_decref(s->reason);
    s->state = made.state;
    s->reason = made.reason;
    return AS_OK;
}

as_status searcher_tell(struct searcher *s, uint64_t number, double value, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    if (!s->is_peer)
        return AS_OK;
    return peer_request(s->program,
                        json_pack("{s:s, s:I, s:o}", "op", "tell", "trial", (json_int_t)number,
                                  "value", isfinite(value) ? json_real(value) : json_null()),
                        &answer, err);
}

as_status searcher_add(struct searcher *s, const struct config *c, double value, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    if (!s->is_peer)
        return AS_OK;
    return peer_request(s->program,
                        json_pack("{s:s, s:o, s:f}", "op", "add", "params",
                                  config_to_json(s->problem->space, c), "value", value),
                        &answer, err);
}
