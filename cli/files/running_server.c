/* One file for each running `assay up`. A note counts while its pid has the start time that it
 * names, because pids are used again (decision 9001); a note of a dead process is removed by
 * whoever finds it. With ASSAY_DATA only the note with that folder counts. */
#include "cli/files/running_server.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/files/process.h"
#include "cli/files/user_folder.h"

static as_status notes_folder(char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *state = NULL;
    as_status st = user_folder_find("XDG_STATE_HOME", ".local/state", &state, err);
    if (st < 0)
        return st;
    *ret = file_join(state, "up");
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* FOLDER/PID.json, owned by the caller. */
static as_status note_path(const char *folder, char **ret, struct as_err *err)
{
    char name[40];
    (void)snprintf(name, sizeof name, "%d.json", (int)getpid());
    *ret = file_join(folder, name);
    return *ret ? AS_OK : as_fail_nomem(err);
}

void running_server_done(struct running_server *s)
{
    free(s->url);
    free(s->token_file);
    *s = (struct running_server){0};
}

static bool is_live(const json_t *note)
{
    pid_t pid = (pid_t)json_integer_value(json_object_get(note, "pid"));
    json_int_t start = json_integer_value(json_object_get(note, "start"));
    return pid > 0 && start > 0 && (json_int_t)process_start_ticks(pid) == start;
}

/* What a note must have; NULL: anything. */
struct wanted {
    const char *url, *data;
};

static bool is_wanted(const json_t *note, const struct wanted *w)
{
    const char *url = json_string_value(json_object_get(note, "url"));
    const char *data = json_string_value(json_object_get(note, "data"));
    return (!w->url || as_streq(w->url, url)) && (!w->data || as_streq(w->data, data));
}

/* Store the note in `best` when its process is alive, it is wanted, and it is newer than `best`;
 * count it. Remove the note of a dead process. */
static void keep_if_newer(const char *path, const struct wanted *w, json_t **best, size_t *n)
{
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO note = NULL;
    size_t len;
    if (file_read(path, 65536, &text, &len, NULL) < 0 || json_parse(text, len, &note, NULL) < 0)
        return;
    bool live = is_live(note);
    if (!live)
        (void)unlink(path);
    if (!live || !is_wanted(note, w))
        return;
    ++*n;
    if (!*best || json_integer_value(json_object_get(note, "since")) >
                      json_integer_value(json_object_get(*best, "since"))) {
        json_decref(*best);
        *best = as_steal(note);
    }
}

static void find_newest_note(const char *folder, const struct wanted *w, json_t **best, size_t *n)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        AS_AUTO(as_freep) char *path = file_join(folder, e->d_name);
        if (path && as_ends_with(e->d_name, ".json"))
            keep_if_newer(path, w, best, n);
    }
    if (dir)
        (void)closedir(dir);
}

as_status running_server_read(const char *url, const char *data, struct running_server *ret,
                              struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    AS_AUTO(as_freep) char *real = data ? realpath(data, NULL) : NULL;
    JSON_AUTO best = NULL;
    as_status st = notes_folder(&folder, err);
    if (st < 0)
        return st;
    size_t n = 0;
    if (!data || real) /* nothing runs in a folder that does not exist */
        find_newest_note(folder, &(struct wanted){url, real}, &best, &n);
    url = json_string_value(json_object_get(best, "url"));
    const char *token_file = json_string_value(json_object_get(best, "token_file"));
    if (!url || !token_file)
        return as_fail(err, AS_E_NOT_FOUND, "no assay up is running");
    struct running_server c = {
        .url = as_strdup(url), .token_file = as_strdup(token_file), .n_running = n};
    if (!c.url || !c.token_file) {
        running_server_done(&c);
        return as_fail_nomem(err);
    }
    *ret = c;
    return AS_OK;
}

as_status running_server_write(const char *url, const char *token_file, const char *data,
                               struct as_err *err)
{
    AS_AUTO(as_freep) char *folder = NULL;
    AS_AUTO(as_freep) char *path = NULL;
    as_status st = notes_folder(&folder, err);
    if (st < 0)
        return st;
    st = file_mkdirs(folder, 0700, err);
    if (st < 0)
        return st;
    st = note_path(folder, &path, err);
    if (st < 0)
        return st;
    JSON_AUTO j =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "url", url, "token_file", token_file, "data",
                  data, "pid", (json_int_t)getpid(), "start",
                  (json_int_t)process_start_ticks(getpid()), "since", (json_int_t)clock_wall_ms());
    AS_AUTO(as_freep) char *text = j ? json_format_pretty(j) : NULL;
    if (!text)
        return as_fail_nomem(err);
    return file_replace(path, text, strlen(text), 0600, err);
}

void running_server_remove(void)
{
    AS_AUTO(as_freep) char *folder = NULL;
    AS_AUTO(as_freep) char *path = NULL;
    if (notes_folder(&folder, NULL) == AS_OK && note_path(folder, &path, NULL) == AS_OK)
        (void)unlink(path);
}
