/* Hosts that one can sign in to. A unit is a host, which has one runner. Hosts are asked one after
 * the other: a host that is down costs its time-out, and is named. */
#include <string.h>

#include "base/mem.h"
#include "cli/fleet/command.h"
#include "cli/fleet/engine.h"
#include "cli/fleet/ssh_script.h"

#define PATIENCE_MS 30000

/* *ret: the script's last word: started, running, stopped. */
static as_status ask_host(const struct fleet_spec *s, const char *host, ssh_verb verb,
                          const char *token, struct str *out, struct as_err *err)
{
    AS_AUTO(str_done) struct str script = {0};
    const char *const argv[] = {
        "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", host, "sh -s", NULL};
    ssh_script(s, verb, host, token, &script);
    as_status st = str_check(&script, err);
    if (st == AS_OK)
        st = command_run(argv, script.s, PATIENCE_MS, out, err);
    return st < 0 ? as_err_prefix(err, st, "%s", host) : AS_OK;
}

static as_status print(const struct fleet_spec *s, int64_t n, struct str *b, struct as_err *err)
{
    (void)n; /* the same for each host */
    ssh_script(s, SSH_START, NULL, NULL, b);
    return str_check(b, err);
}

static as_status submit(const struct fleet_spec *s, int64_t n, const char *token,
                        struct as_err *err)
{
    for (size_t i = 0; i < s->n_hosts && n > 0; i++) {
        AS_AUTO(str_done) struct str out = {0};
        as_status st = ask_host(s, s->hosts[i], SSH_START, token, &out, err);
        if (st < 0)
            return st;
        n -= strstr(str_cstr(&out), "started") != NULL;
    }
    return n == 0 ? AS_OK
                  : as_fail(err, AS_E_CONFLICT,
                            "%lld runners more than there are hosts without one", (long long)n);
}

static as_status list(const struct fleet_spec *s, struct fleet_units *ret, struct as_err *err)
{
    for (size_t i = 0; i < s->n_hosts; i++) {
        AS_AUTO(str_done) struct str out = {0};
        as_status st = ask_host(s, s->hosts[i], SSH_STATUS, NULL, &out, err);
        if (st == AS_OK && strstr(str_cstr(&out), "running"))
            st = fleet_units_add(ret, s->hosts[i], UNIT_RUNNING, "", err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status stop(const struct fleet_spec *s, const char *const *ids, size_t n,
                      struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        AS_AUTO(str_done) struct str out = {0};
        as_status st = ask_host(s, ids[i], SSH_STOP, NULL, &out, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static bool is_of(const char *job, const struct fleet_spec *s, const char *unit)
{
    (void)s;
    return as_starts_with(job, "ssh/") && strcmp(job + strlen("ssh/"), ssh_host_of(unit)) == 0;
}

const struct engine_ops engine_ssh = {print, submit, list, stop, is_of, .needs_token = true};
