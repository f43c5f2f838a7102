/* Slurm, by its own programs: whoever may submit jobs has them, with the site's way to sign in. */
#include <string.h>

#include "base/mem.h"
#include "cli/fleet/command.h"
#include "cli/fleet/engine.h"
#include "cli/fleet/slurm_script.h"

#define PATIENCE_MS 60000
#define STOPPED_AT_ONCE 200 /* ids in one command line */

static as_status print(const struct fleet_spec *s, int64_t n, struct str *b, struct as_err *err)
{
    slurm_script(s, n, b);
    return str_check(b, err);
}

static as_status submit(const struct fleet_spec *s, int64_t n, const char *token,
                        struct as_err *err)
{
    AS_AUTO(str_done) struct str script = {0};
    AS_AUTO(str_done) struct str out = {0};
    const char *const argv[] = {"sbatch", "--parsable", NULL};
    (void)token; /* the script names its file */
    slurm_script(s, n, &script);
    as_status st = str_check(&script, err);
    return st < 0 ? st : command_run(argv, script.s, PATIENCE_MS, &out, err);
}

static unit_state state_of(const char *word)
{
    static const char *const pending[] = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD",
                                          "SUSPENDED"};
    if (strcmp(word, "COMPLETING") == 0)
        return UNIT_ENDING;
    for (size_t i = 0; i < AS_ARRAY_LEN(pending); i++)
        if (strcmp(word, pending[i]) == 0)
            return UNIT_PENDING;
    return UNIT_RUNNING;
}

/* Lines of ID|STATE|REASON. */
static as_status read_queue(char *text, struct fleet_units *ret, struct as_err *err)
{
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        const char *id = strsep(&line, "|"), *state = line ? strsep(&line, "|") : NULL;
        if (!state || !*id)
            continue;
        unit_state is = state_of(state);
        bool waits = is == UNIT_PENDING && line && strcmp(line, "None") != 0;
        as_status st = fleet_units_add(ret, id, is, waits ? line : "", err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status list(const struct fleet_spec *s, struct fleet_units *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str out = {0};
    AS_AUTO(str_done) struct str name = {0};
    str_printf(&name, "--name=" SLURM_JOB_PREFIX "%s", s->name);
    const char *const argv[] = {
        "squeue", "--me", "--noheader", "--array", "--format=%i|%T|%r", str_cstr(&name), NULL};
    as_status st = str_check(&name, err);
    if (st == AS_OK)
        st = command_run(argv, NULL, PATIENCE_MS, &out, err);
    return st < 0 || out.len == 0 ? st : read_queue(out.s, ret, err);
}

static as_status stop(const struct fleet_spec *s, const char *const *ids, size_t n,
                      struct as_err *err)
{
    as_status st = AS_OK;
    (void)s;
    for (size_t from = 0; st == AS_OK && from < n; from += STOPPED_AT_ONCE) {
        AS_AUTO(str_done) struct str out = {0};
        const char *argv[STOPPED_AT_ONCE + 3] = {"scancel", "--quiet"};
        size_t k = n - from < STOPPED_AT_ONCE ? n - from : STOPPED_AT_ONCE;
        for (size_t i = 0; i < k; i++)
            argv[2 + i] = ids[from + i];
        argv[2 + k] = NULL;
        st = command_run(argv, NULL, PATIENCE_MS, &out, err);
    }
    return st;
}

static bool is_of(const char *job, const struct fleet_spec *s, const char *unit)
{
    (void)s;
    return as_starts_with(job, "slurm/") && strcmp(job + strlen("slurm/"), unit) == 0;
}

const struct engine_ops engine_slurm = {print, submit, list, stop, is_of, .needs_token = false};
