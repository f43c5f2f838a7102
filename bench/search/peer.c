#include "bench/search/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/answer.h"
#include "bench/peer_process.h"

static struct peer {
    const char *who, *script;
    const char *hello;  /* the field of its first line that has the version */
    const char *prefix; /* of the version */
    const char *absent; /* what to say where no interpreter has it */
    struct peer_process child;
    char version[64];
    bool has_gp;
    bool looked; /* not found: do not look again */
} peers[PEER_PROGRAMS] = {
    [PEER_OPTUNA] = {.who = "Optuna",
                     .script = BENCH_SEARCH_DIR "/peer_optuna.py",
                     .hello = "optuna",
                     .prefix = "Optuna ",
                     .absent = "no interpreter imports Optuna: install python3-optuna, or name one "
                               "in ASSAY_PYTHON"},
    [PEER_RECIPES] = {.who = "the recipes",
                      .script = BENCH_SEARCH_DIR "/peer_recipes.py",
                      .hello = "recipes",
                      .prefix = "",
                      .absent = "no interpreter imports numpy and scipy: install python3-scipy, or "
                                "name one in ASSAY_PYTHON"},
};

void peer_set_path(const char *path)
{
    if (path != NULL)
        (void)setenv("OPTUNA_PATH", path, 1);
}

const char *peer_version(peer_program program)
{
    return peers[program].version[0] != '\0' ? peers[program].version : NULL;
}

void peer_close(void)
{
    for (size_t i = 0; i < PEER_PROGRAMS; i++)
        peer_process_end(&peers[i].child);
}

static as_status try_start(struct peer *p, const char *python, struct as_err *err)
{
    JSON_AUTO hello = NULL;
    char *argv[] = {(char *)python, (char *)p->script, NULL};
    as_status st = peer_process_start(argv, false, &p->child, err);
    if (st < 0)
        return st;
    st = answer_read(p->child.from, p->who, &hello, err);
    const char *version = json_string_value(json_object_get(hello, p->hello));
    if (st == AS_OK && version == NULL)
        st = as_fail(err, AS_E_UNAVAILABLE, "%s: its first line has no '%s'", p->who, p->hello);
    if (st < 0) {
        peer_process_end(&p->child);
        return st;
    }
    (void)snprintf(p->version, sizeof p->version, "%s%s", p->prefix, version);
    p->has_gp = json_is_true(json_object_get(hello, "gp"));
    return AS_OK;
}

static as_status start(struct peer *p, struct as_err *err)
{
    const char *pythons[] = {getenv("ASSAY_PYTHON"), "/usr/bin/python3", "python3"};
    if (p->child.pid != 0)
        return AS_OK;
    (void)setenv("OMP_NUM_THREADS", "1", 0);
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(pythons) && !p->looked; i++)
        if (pythons[i] != NULL && try_start(p, pythons[i], err) == AS_OK)
            return AS_OK;
    p->looked = true;
    return as_fail(err, AS_E_UNAVAILABLE, "%s", p->absent);
}

as_status peer_has(peer_program program, const char *sampler, struct as_err *err)
{
    struct peer *p = &peers[program];
    as_status st = start(p, err);
    if (st == AS_OK && program == PEER_OPTUNA && as_streq(sampler, "gp") && !p->has_gp)
        return as_fail(err, AS_E_UNAVAILABLE, "%s has no GPSampler (there is one since 3.6)",
                       p->version);
    return st;
}

as_status peer_request(peer_program program, json_t *request, json_t **ret, struct as_err *err)
{
    JSON_AUTO owned = request;
    struct peer *p = &peers[program];
    as_status st = start(p, err);
    if (st < 0)
        return st;
    AS_AUTO(as_freep) char *text = owned != NULL ? json_format_ordered(owned) : NULL;
    if (text == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    st = file_write_all(p->child.to, text, strlen(text), err);
    if (st == AS_OK) /* any failure closes the peer */
        st = file_write_all(p->child.to, "\n", 1, err);
    if (st == AS_OK)
        st = answer_read(p->child.from, p->who, ret, err);
    if (st < 0)
        peer_process_end(&p->child);
    return st;
}
