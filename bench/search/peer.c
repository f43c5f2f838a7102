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

#define SCRIPT BENCH_SEARCH_DIR "/peer_optuna.py"
#define NO_PEER "no interpreter imports Optuna: install python3-optuna, or name one in ASSAY_PYTHON"

static struct {
    struct peer_process child;
    char version[64];
    bool has_gp;
    bool looked; /* not found: do not look again */
} peer;

void peer_set_path(const char *path)
{
    if (path != NULL)
        (void)setenv("OPTUNA_PATH", path, 1);
}

const char *peer_version(void)
{
    return peer.version[0] != '\0' ? peer.version : NULL;
}

void peer_close(void)
{
    peer_process_end(&peer.child);
}

static as_status try_start(const char *python, struct as_err *err)
{
    JSON_AUTO hello = NULL;
    char *argv[] = {(char *)python, (char *)SCRIPT, NULL};
    as_status st = peer_process_start(argv, false, &peer.child, err);
    if (st < 0)
        return st;
    st = answer_read(peer.child.from, "Optuna", &hello, err);
    if (st < 0) {
        peer_close();
        return st;
    }
    (void)snprintf(peer.version, sizeof peer.version, "Optuna %s",
                   json_string_value(json_object_get(hello, "optuna")));
    peer.has_gp = json_is_true(json_object_get(hello, "gp"));
    return AS_OK;
}

static as_status start(struct as_err *err)
{
    const char *pythons[] = {getenv("ASSAY_PYTHON"), "/usr/bin/python3", "python3"};
    if (peer.child.pid != 0)
        return AS_OK;
    (void)setenv("OMP_NUM_THREADS", "1", 0);
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(pythons) && !peer.looked; i++)
        if (pythons[i] != NULL && try_start(pythons[i], err) == AS_OK)
            return AS_OK;
    peer.looked = true;
    return as_fail(err, AS_E_UNAVAILABLE, NO_PEER);
}

as_status peer_has(const char *sampler, struct as_err *err)
{
    as_status st = start(err);
    if (st == AS_OK && as_streq(sampler, "gp") && !peer.has_gp)
        return as_fail(err, AS_E_UNAVAILABLE, "%s has no GPSampler (there is one since 3.6)",
                       peer.version);
    return st;
}

as_status peer_request(json_t *request, json_t **ret, struct as_err *err)
{
    JSON_AUTO owned = request;
    as_status st = start(err);
    if (st < 0)
        return st;
    AS_AUTO(as_freep) char *text = owned != NULL ? json_format_ordered(owned) : NULL;
    if (text == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    st = file_write_all(peer.child.to, text, strlen(text), err);
    if (st == AS_OK) /* any failure closes the peer */
        st = file_write_all(peer.child.to, "\n", 1, err);
    if (st == AS_OK)
        st = answer_read(peer.child.from, "Optuna", ret, err);
    if (st < 0)
        peer_close();
    return st;
}
