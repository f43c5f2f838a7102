/* The folder of a fleet on a host has the token (mode 0600), the number of the runner's process,
 * its log and its work folder. A number may be another process's by now, so its name is compared
 * too. */
#include "cli/fleet/ssh_script.h"

#include <string.h>

#include "base/shell_text.h"

static void put_folder(const struct fleet_spec *s, struct str *b)
{
    str_puts(b, "set -eu\numask 077\n");
    if (s->work) {
        str_puts(b, "base=");
        shell_quote(b, s->work);
        str_putc(b, '\n');
    } else {
        str_puts(b, "base=${XDG_STATE_HOME:-$HOME/.local/state}/assay/fleets\n");
    }
    str_printf(b,
               "dir=$base/%s\n"
               "pid=$(cat \"$dir/pid\" 2>/dev/null || true)\n"
               "runs() { [ -n \"$pid\" ] && tr '\\0' ' ' < \"/proc/$pid/cmdline\" 2>/dev/null | "
               "grep -qF -- \"--work $dir/work \"; }\n",
               s->name);
}

const char *ssh_host_of(const char *host)
{
    const char *at = strrchr(host, '@');
    return at ? at + 1 : host;
}

static void put_start(const struct fleet_spec *s, const char *host, const char *token,
                      struct str *b)
{
    str_puts(b, "if runs; then echo running; exit 0; fi\nmkdir -p \"$dir\"\n");
    if (token)
        str_printf(b, "cat > \"$dir/token\" <<'END_OF_TOKEN'\n%s\nEND_OF_TOKEN\n", token);
    shell_export(b, "ASSAY_SERVER", s->server);
    shell_export(b, "ASSAY_RUNNER_FLEET", s->name);
    str_puts(b, "export ASSAY_TOKEN_FILE=\"$dir/token\"\n"
                "host=$(uname -n | tr 'A-Z' 'a-z' | tr -cd 'a-z0-9-' | cut -c 1-20)\n"
                "export ASSAY_RUNNER_JOB=ssh/");
    if (host)
        shell_quote(b, ssh_host_of(host));
    else
        str_puts(b, "\"$host\"");
    str_puts(b, "\nnohup setsid ");
    shell_quote(b, s->program ? s->program : "assay-runner");
    str_printf(b, " --name \"%s-$host\" --work \"$dir/work\"", s->name);
    shell_number(b, "--slots", s->slots, "");
    shell_number(b, "--cpus", s->cpus, "");
    shell_number(b, "--memory", s->memory_bytes, "");
    shell_number(b, "--idle-exit", s->idle_exit_ms, "ms");
    shell_number(b, "--until", s->time_ms, "ms");
    str_puts(b, " >> \"$dir/log\" 2>&1 < /dev/null &\n"
                "echo $! > \"$dir/pid\"\n"
                "echo started\n");
}

void ssh_script(const struct fleet_spec *s, ssh_verb verb, const char *host, const char *token,
                struct str *b)
{
    put_folder(s, b);
    switch (verb) {
    case SSH_START:
        put_start(s, host, token, b);
        return;
    case SSH_STATUS:
        str_puts(b, "if runs; then echo running; else echo stopped; fi\n");
        return;
    case SSH_STOP:
        str_puts(b, "if runs; then kill -TERM \"$pid\"; fi\necho stopped\n");
        return;
    }
}
