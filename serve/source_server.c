/* One thread looks up each name in turn and downloads what has changed into a memfd, checked
 * against its digest by the client. A digest that was refused is remembered, so a bad version is
 * fetched once. The same problem is logged once, until it changes. Stopping interrupts the request
 * that is under way. */
#include "serve/source_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/client/client.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

#define LOOK_TIMEOUT_MS 10000
#define FETCH_TIMEOUT_MS (15 * 60 * 1000)

struct followed {
    char *name, *model, *version; /* served as; in the registry; alias, number or "default" */
    char sha256[SHA256_HEX_SIZE]; /* that was loaded, or refused, last */
    char problem[160];            /* that was logged last: each is logged once */
};

struct source_server {
    struct model_cache *cache;
    struct client *client;
    struct followed *models;
    size_t n, cap;
    int64_t poll_ms;
    atomic_bool is_stopping;
    bool has_thread;
    pthread_t thread;
};

as_status source_server_create(struct model_cache *cache, const char *url, const char *token,
                               struct source_server **ret, struct as_err *err)
{
    struct source_server *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->cache = cache;
    as_status st = client_create(url, token, "assay-serve", &s->client, err);
    if (st < 0) {
        free(s);
        return st;
    }
    *ret = s;
    return AS_OK;
}

static void followed_done(struct followed *f)
{
    free(f->name);
    free(f->model);
    free(f->version);
}

as_status source_server_add(struct source_server *s, const char *name, const char *reference,
                            struct as_err *err)
{
    struct followed f = {0};
    const char *at = strchr(reference, '@');
    size_t len = at ? (size_t)(at - reference) : strlen(reference);
    if (len == 0 || (at && (!at[1] || strchr(at + 1, '@'))))
        return as_fail(err, AS_E_INVAL,
                       "'%.100s' is no model: expected NAME, NAME@ALIAS or "
                       "NAME@NUMBER",
                       reference);
    as_status st = as_reserve_one(&s->models, s->n, &s->cap, sizeof *s->models, err);
    if (st < 0)
        return st;
    f.model = strndup(reference, len);
    f.version = as_strdup(at ? at + 1 : "default");
    f.name = name ? as_strdup(name) : f.model ? as_strdup(f.model) : NULL;
    st = f.model && f.version && f.name ? model_cache_expect(s->cache, f.name, err)
                                        : as_fail_nomem(err);
    if (st < 0) {
        followed_done(&f);
        return st;
    }
    s->models[s->n++] = f;
    return AS_OK;
}

/* A file of the registry; its digest was checked by the client. */
static as_status fetch(struct source_server *s, const char *sha256, struct file_image *ret,
                       struct as_err *err)
{
    const struct client_opts opts = {.timeout_ms = FETCH_TIMEOUT_MS};
    AS_AUTO(file_closep) int fd = memfd_create("assay-model", MFD_CLOEXEC);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "cannot make a file in memory: %m");
    as_status st = client_download_fd(s->client, sha256, fd, &opts, err);
    if (st < 0)
        return st;
    int whole = fd;
    fd = -1;
    return file_image_map(whole, MODEL_FILE_MAX_BYTES, ret, err);
}

static as_status look_up(struct source_server *s, const struct followed *f, int64_t *ret_version,
                         char ret_sha256[SHA256_HEX_SIZE], struct as_err *err)
{
    const struct client_opts opts = {.timeout_ms = LOOK_TIMEOUT_MS};
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO answer = NULL;
    str_puts(&path, "/v1/models");
    client_path_add(&path, f->model);
    str_puts(&path, "/versions");
    client_path_add(&path, f->version);
    as_status st = str_check(&path, err);
    if (st == AS_OK)
        st = client_call(s->client, "GET", path.s, NULL, NULL, &opts, &answer, NULL, err);
    if (st < 0)
        return st;
    const json_t *version = json_object_get(answer, "version");
    const char *sha256 = json_string_value(json_object_get(answer, "sha256"));
    if (!json_is_integer(version) || !sha256 || !sha256_hex_valid(sha256))
        return as_fail(err, AS_E_INTERNAL, "the server's answer for %s has no version and sha256",
                       f->model);
    *ret_version = json_integer_value(version);
    memcpy(ret_sha256, sha256, SHA256_HEX_SIZE);
    return AS_OK;
}

static as_status update(struct source_server *s, struct followed *f, struct as_err *err)
{
    struct file_image image = {0};
    char sha256[SHA256_HEX_SIZE], version[SERVED_VERSION_SIZE];
    int64_t number = 0;
    as_status st = look_up(s, f, &number, sha256, err);
    if (st < 0 || strcmp(sha256, f->sha256) == 0)
        return st;
    st = fetch(s, sha256, &image, err);
    if (st < 0)
        return st;
    memcpy(f->sha256, sha256, sizeof sha256); /* a file that is refused is not fetched again */
    (void)snprintf(version, sizeof version, "%lld", (long long)number);
    return model_cache_load(s->cache, f->name, version, &image, err);
}

static void look_at(struct source_server *s, struct followed *f)
{
    struct as_err err = {0};
    if (update(s, f, &err) == AS_OK) {
        f->problem[0] = '\0';
        return;
    }
    if (atomic_load(&s->is_stopping) || strncmp(f->problem, err.msg, sizeof f->problem - 1) == 0)
        return;
    (void)snprintf(f->problem, sizeof f->problem, "%s", err.msg);
    model_cache_failed(s->cache, f->name, f->model, &err);
}

static void *run(void *arg)
{
    struct source_server *s = arg;
    do {
        for (size_t i = 0; i < s->n && !atomic_load(&s->is_stopping); i++)
            look_at(s, &s->models[i]);
    } while (client_wait(s->client, s->poll_ms));
    return NULL;
}

as_status source_server_start(struct source_server *s, int64_t poll_ms, struct as_err *err)
{
    s->poll_ms = poll_ms;
    s->has_thread = pthread_create(&s->thread, NULL, run, s) == 0;
    return s->has_thread ? AS_OK : as_fail(err, AS_E_NOMEM, "cannot start the watcher of models");
}

void source_server_free(struct source_server *s)
{
    if (!s)
        return;
    atomic_store(&s->is_stopping, true);
    client_interrupt(s->client);
    if (s->has_thread)
        (void)pthread_join(s->thread, NULL);
    for (size_t i = 0; i < s->n; i++)
        followed_done(&s->models[i]);
    free(s->models);
    client_free(s->client);
    free(s);
}
