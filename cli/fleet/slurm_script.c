/* The script of a job ends with `exec`, so the runner gets the signals of the batch system itself:
 * one before the time limit, and that of scancel.
 *
 * Values that follow #SBATCH are words of a narrow set (fleet_spec.c), for sbatch reads these lines
 * by rules of its own. Everything else is quoted for the shell. */
#include "cli/fleet/slurm_script.h"

#include "base/shell_text.h"

#define NOTICE_S 120   /* Slurm may send the signal up to a minute earlier than it was asked to */
#define NOTICE_SHARE 4 /* at most this part of a short job */
#define MIN_MS 60000

static void put_word(struct str *b, const char *option, const char *word)
{
    if (word)
        str_printf(b, "#SBATCH --%s=%s\n", option, word);
}

static void put_number(struct str *b, const char *option, int64_t v, const char *unit)
{
    if (v > 0)
        str_printf(b, "#SBATCH --%s=%lld%s\n", option, (long long)v, unit);
}

/* --mem is of a node, so the ranks of a job, which may share one, ask by core. */
static void put_memory(const struct fleet_spec *s, struct str *b)
{
    int64_t mib = (s->memory_bytes + (1 << 20) - 1) >> 20, cpus = s->cpus > 0 ? s->cpus : 1;
    if (s->ranks > 1)
        put_number(b, "mem-per-cpu", (mib + cpus - 1) / cpus, "M");
    else
        put_number(b, "mem", mib, "M");
}

/* The signal before the time limit: of the batch script, which is the runner, or of the steps. */
static void put_signal(const struct fleet_spec *s, struct str *b)
{
    int64_t share_s = s->time_ms / 1000 / NOTICE_SHARE;
    int64_t notice_s = s->time_ms > 0 && share_s < NOTICE_S ? share_s : NOTICE_S;
    str_printf(b, "#SBATCH --signal=%sTERM@%lld\n",
               s->ranks > 1 ? "" : "B:", (long long)(notice_s > 0 ? notice_s : 1));
}

static void put_header(const struct fleet_spec *s, int64_t jobs, struct str *b)
{
    str_printf(b, "#!/bin/sh\n#SBATCH --job-name=" SLURM_JOB_PREFIX "%s\n", s->name);
    str_printf(b, "#SBATCH --array=0-%lld\n", (long long)jobs - 1);
    put_word(b, "partition", s->partition);
    put_word(b, "account", s->account);
    put_word(b, "qos", s->qos);
    put_word(b, "constraint", s->constraint);
    put_number(b, "ntasks", s->ranks, "");
    if (s->ranks == 1)
        str_puts(b, "#SBATCH --nodes=1\n");
    put_number(b, "cpus-per-task", s->cpus, "");
    put_memory(s, b);
    put_number(b, s->ranks > 1 ? "gpus-per-task" : "gpus-per-node", s->gpus, "");
    put_number(b, "time", (s->time_ms + MIN_MS - 1) / MIN_MS, "");
    put_signal(s, b);
    str_printf(b, "#SBATCH --output=%s/%%A_%%a.log\n#SBATCH --open-mode=append\n", s->logs);
}

/* The length of the job, which the runner counts from its own start: Slurm 23 says when it began
 * and ends by the clock of the scheduler, which may be minutes away from that of the node. */
static void put_until(const struct fleet_spec *s, struct str *b)
{
    int64_t minutes = (s->time_ms + MIN_MS - 1) / MIN_MS, seconds = minutes * 60;
    if (s->time_ms > 0)
        str_printf(b,
                   "length=$((${SLURM_JOB_END_TIME:-0} - ${SLURM_JOB_START_TIME:-0}))\n"
                   "[ \"${SLURM_JOB_START_TIME:-0}\" -gt 0 ] && [ $length -gt 0 ] || length=%lld\n"
                   "export ASSAY_RUNNER_UNTIL=${length}s\n",
                   (long long)seconds);
}

static void put_options(const struct fleet_spec *s, struct str *b)
{
    shell_number(b, "--slots", s->slots, "");
    shell_number(b, "--cpus", s->cpus, "");
    shell_number(b, "--memory", s->memory_bytes, "");
    shell_number(b, "--idle-exit", s->idle_exit_ms, "ms");
    if (s->gpus == 0)
        str_puts(b, " --gpus none");
}

void slurm_script(const struct fleet_spec *s, int64_t jobs, struct str *b)
{
    put_header(s, jobs, b);
    shell_export(b, "ASSAY_SERVER", s->server);
    shell_export(b, "ASSAY_TOKEN_FILE", s->token_file);
    shell_export(b, "ASSAY_RUNNER_FLEET", s->name);
    put_until(s, b);
    str_printf(b, "name=%s-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID\n", s->name);
    str_puts(b, "program=");
    shell_quote(b, s->program ? s->program : "assay-runner");
    str_puts(b, "\nwork=");
    shell_quote(b, s->work ? s->work : "");
    str_puts(b, "\nexport name program work\n");
    if (s->ranks > 1) {
        str_puts(b, "exec srun --kill-on-bad-exit=0");
        shell_number(b, "--cpus-per-task", s->cpus, "");
        str_puts(b, " sh -c 'exec \"$program\" --name \"$name-$SLURM_PROCID\" "
                    "${work:+--work \"$work/$name-$SLURM_PROCID\"}");
        put_options(s, b); /* numbers and words without quotes */
        str_puts(b, "'\n");
        return;
    }
    str_puts(b, "exec \"$program\" --name \"$name\" ${work:+--work \"$work/$name\"}");
    put_options(s, b);
    str_putc(b, '\n');
}
