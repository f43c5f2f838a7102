/* The table of verbs. A verb's row holds its text and its function; the options of a verb stand in
 * its own file, because each option points at a variable of that verb.
 *
 * `assay help`, the suggestions for mistyped verbs and the manual page (man_page.c) all read this
 * table, so that a new verb needs one row here and one file cmd_<verb>.c. */
#include "cli/commands/verbs.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"

#define LINE_COLUMNS 90 /* of the overview */

/* In the order of the overview. */
static const struct verb table[] = {
    {"up", "up [--data DIR] [--runners N] [--port PORT] [--database URL]",
     "start everything on this machine: a private PostgreSQL, assayd, runners",
     "Runs until Ctrl-C or SIGTERM, then stops all it started. The data folder holds the database, "
     "the\n"
     "stored files, the tokens and the logs; `assay up` on the same folder goes on where it was. "
     "Other\n"
     "commands on this machine find the server by themselves while it runs; if several run, "
     "ASSAY_DATA\n"
     "is the data folder of the one that is meant.",
     cmd_up},
    {"fit", "fit TABLE --target COLUMN [--test FILE] [--time 10m] [--size 50MB] [--metric METRIC]",
     "from a table to a model that can be served, in one command",
     "TABLE is a CSV file. Columns, metric, folds, kinds of model and their ranges are chosen by "
     "the\n"
     "table and the time; the best model is kept as a version, and the commands that predict with "
     "it,\n"
     "serve it and export it are printed. Starts `assay up` if no server runs, and leaves it "
     "running.\n"
     "--print shows the sweep that it would run, a document for `assay run`.",
     cmd_fit},
    {"run", "run FILE [--watch] [--paused] [--set FIELD=VALUE]…",
     "create a sweep from a YAML or JSON document; it starts at once",
     "FILE is a sweep document (docs/sweep.md), or - for standard input. Prints the id of the "
     "sweep.\n"
     "--set may stand several times: --set limits.max_trials=10 --set search.seed=3.",
     cmd_run},
    {"watch", "watch SWEEP", "show the progress of a sweep until it ends",
     "Ends with a table of the best trials. Ctrl-C leaves the sweep running. A restart of the "
     "server\n"
     "does not end it. With --json it prints a line of JSON for each change.",
     cmd_watch},
    {"open", "open [SWEEP] [--no-browser] | open SWEEP/NUMBER",
     "print the dashboard's address, and open it in a browser",
     "A browser is opened where there is a display (DISPLAY or WAYLAND_DISPLAY), by xdg-open. The "
     "address\n"
     "has no token; the dashboard asks for one once.",
     cmd_open},
    {"sweeps", "sweeps [--state STATE] [--tag TAG]", "list sweeps, newest first",
     "--tag takes one tag of the sweep, written exactly as there: --tag team=vision.", cmd_sweeps},
    {"show", "show SWEEP", "one sweep: state, counts, best trial, changes, document", NULL,
     cmd_show},
    {"trials",
     "trials SWEEP [--state STATE] [--group GROUP] [--sort KEY] [--desc] | trials add SWEEP "
     "--param NAME=VALUE…",
     "list the trials of a sweep; add known results and configurations",
     "--sort takes the name of a parameter or metric, or number, value, started_at, finished_at,\n"
     "duration, created_at or state.\n"
     "`trials add` with --metric (or --failed) adds a result that is known already: the search "
     "learns\n"
     "from it, and it uses none of limits.max_trials. Without one the configuration is the next "
     "to\n"
     "run. --file adds many: CSV with columns named by parameters and metrics, or JSON; an export "
     "is\n"
     "such a file, and a file that is added again adds nothing twice.",
     cmd_trials},
    {"trial", "trial [show] SWEEP/NUMBER",
     "one trial: parameters and why, metrics, attempts, files", NULL, cmd_trial},
    {"best", "best SWEEP [--top N] [--pareto]", "the best completed trials",
     "By the first metric. --pareto: the trials that no other one beats in every objective, among\n"
     "those that keep the constraints.",
     cmd_best},
    {"importance", "importance SWEEP [--metric NAME]", "which parameters matter, with intervals",
     "For each parameter: the share of the variance of the metric that it explains together with\n"
     "others, and alone, with intervals of 90 %; and `top`, its share of the difference between "
     "the\n"
     "best tenth of the trials and all trials. The metric is the first objective unless --metric\n"
     "names another one.",
     cmd_importance},
    {"compare", "compare SWEEP/NUMBER SWEEP/NUMBER…",
     "parameters and metrics of trials side by side", "Rows that differ are marked with *.",
     cmd_compare},
    {"ask", "ask SWEEP [--client NAME] [--count N] [--lease 10m] [--wait 30s] [--shell]",
     "get the next trial, when you run the trials yourself",
     "Prints the number and the parameters of a trial, and holds it for you until its lease ends.\n"
     "A trial that you hold already comes first: a shell that asks again gets its unfinished "
     "trial\n"
     "back. Each process that runs `assay ask` (your shell, your script) is a separate client, "
     "unless\n"
     "--client or ASSAY_CLIENT names one. --shell prints lines for eval:\n"
     "    lines=$(assay ask digits --shell) || break; eval \"$lines\"\n"
     "Exit code 8: the sweep is over. Exit code 6: nothing came within --wait.",
     cmd_ask},
    {"tell", "tell SWEEP NUMBER METRIC=VALUE… | --failed REASON | --release | --pruned | --paused",
     "send the result of a trial that was asked for",
     "Every metric of the sweep needs a value, here or in an earlier `assay report`; NaN means "
     "that\n"
     "the trial failed. --release gives the trial back. --pruned and --paused answer early "
     "stopping\n"
     "(`assay report`). Telling the same again changes nothing.",
     cmd_tell},
    {"report", "report SWEEP NUMBER --step N METRIC=VALUE…",
     "send measurements of a trial that was asked for, while it runs",
     "Extends the lease; without metrics it does nothing else. If early stopping ends the trial, "
     "it\n"
     "prints prune or pause: stop the program, and `assay tell` with --pruned or --paused.",
     cmd_report},
    {"logs", "logs SWEEP/NUMBER [--follow] [--attempt N]", "the last lines of output of a trial",
     "Control characters are escaped unless --raw is given.", cmd_logs},
    {"artifacts", "artifacts list SWEEP/NUMBER | artifacts get SWEEP/NUMBER [PATH] [--output PATH]",
     "list and fetch the files that a trial stored",
     "PATH is a file or a folder of the trial. One file is written to --output, or under its own "
     "name\n"
     "into this folder; several go below the folder --output, or SWEEP-NUMBER in this folder. A "
     "file\n"
     "gets its name when its digest is right; before, what was there stays as it was.",
     cmd_artifacts},
    {"files", "files SWEEP/NUMBER [--output DIR]",
     "list or fetch all that a trial left: artifacts, checkpoint, output",
     "With --output they go to DIR/artifacts, DIR/checkpoints and DIR/log.txt. Files that are "
     "there "
     "with\n"
     "the right digest are not fetched again. Nothing is written outside of DIR, and links and "
     "other\n"
     "things that are no regular files are not replaced.",
     cmd_files},
    {"pause", "pause SWEEP", "start no more trials; running ones go on", NULL, cmd_pause},
    {"resume", "resume SWEEP", "go on with a paused or cancelled sweep", NULL, cmd_resume},
    {"set", "set SWEEP LIMIT=VALUE…", "change limits of a sweep, also after it has ended",
     "LIMIT is max_trials, max_concurrent_trials, max_failed_trials, max_restarts, target,\n"
     "trial_timeout, on_timeout, wall_time, max_steps or grace; `none` removes it:\n"
     "    assay set digits max_trials=200 wall_time=6h\n"
     "A sweep that has ended runs on if its new limits leave it work. With a max_trials below the\n"
     "number of trials no more are made, and those that run go on.",
     cmd_set},
    {"priority", "priority SWEEP N", "let a sweep have free slots before others, or after them",
     "N is -100 to 100, and 0 unless the document says otherwise. While a sweep of a higher "
     "priority "
     "has\n"
     "work, those of a lower one begin no trial; trials that run go on. A negative N is written "
     "after "
     "--:\n"
     "    assay priority digits -- -5",
     cmd_priority},
    {"tag", "tag SWEEP TAG… [--remove]", "add tags to a sweep, or remove them",
     "A tag is any text of up to 128 bytes; `assay sweeps --tag` and the dashboard find sweeps by "
     "it.",
     cmd_tag},
    {"remark", "remark SWEEP TEXT", "set the remarks of a sweep",
     "TEXT is Markdown of up to 65,536 characters, such as what the sweep was for; an empty one "
     "removes\n"
     "the remarks.",
     cmd_remark},
    {"retry", "retry SWEEP/NUMBER… | retry SWEEP --failed | --cancelled",
     "try trials again that failed or were cancelled",
     "A trial goes on from its checkpoint if it has one. If the sweep has ended, it runs on; its "
     "limits\n"
     "must allow that (`assay set`).",
     cmd_retry},
    {"cancel", "cancel SWEEP | SWEEP/NUMBER", "stop a sweep or one trial",
     "Trials that run get SIGTERM, and SIGKILL after limits.grace. `assay resume` lets a "
     "cancelled\n"
     "sweep run on, and `assay retry` tries a cancelled trial again.",
     cmd_cancel},
    {"delete", "delete SWEEP [--yes]", "delete a sweep that has ended, with its trials and files",
     "On a terminal it says what will be lost and asks. Without a terminal, or with --yes, it does "
     "not\n"
     "ask. Exit code 2: the answer was not yes.",
     cmd_delete},
    {"ensemble",
     "ensemble SWEEP… [--method METHOD] [--size N] [--layers N] [--non-negative] [--by COLUMN] "
     "[--metric METRIC] | ensemble SWEEP --list",
     "the ensemble of the best trials, with its held-out metric",
     "Without options: the one that was made when the sweep ended. With --method, --size or "
     "several\n"
     "sweeps (of one metric, on the same held-out rows, all ended) another one is made and kept, "
     "and\n"
     "shown; the same again shows the one that is kept. --list shows those that were asked for.\n"
     "--method bagging trains the best configuration of a sweep of the built-in trainer again, on "
     "N\n"
     "bootstrap samples in one process, as a sweep of its own, and follows it. --method snapshot\n"
     "trains it once, with N cycles of the learning rate, and keeps the weights at their ends. "
     "--method\n"
     "boosting trains N stages, each on what those before miss, and finds after how many to stop.\n"
     "--method stacking --layers 2 trains the best configurations of a sweep with folds again, "
     "beside\n"
     "what they predicted of the rows that they held out, and shows the ensemble of both layers.",
     cmd_ensemble},
    {"export", "export SWEEP --csv | --json [--output FILE]", "all trials, for other programs",
     "One row per trial: number, state, value, parameters (param.NAME), metrics (metric.NAME), "
     "times.\n"
     "In CSV, a text that a spreadsheet would take for a formula gets a ' before it.",
     cmd_export},
    {"replay", "replay SWEEP | replay --file EXPORT",
     "compute every suggestion again and compare it bit for bit",
     "From the document, the trials and the order in which their results came. Prints how many "
     "are\n"
     "the same, and the first that are not: exit code 1 then. EXPORT is what `assay export "
     "--json`\n"
     "wrote; no server is needed for it. The same bits are promised on the same machine.",
     cmd_replay},
    {"data",
     "data add NAME FILE [--target COLUMN] [--targets FILE] [--test FILE] | data list | data show "
     "NAME | data preview NAME [--rows] | data delete NAME",
     "register data sets for the built-in trainer, and look at them",
     "A table (CSV) needs --target: the name of a column, or its number from 0 (negative: from "
     "the\n"
     "end). Features in .npy and images in IDX need --targets: a file with as many rows.\n"
     "CIFAR, text, token files, .npz and .safetensors are one file that holds all of it. FILE is "
     "a\n"
     "regular file, or - for standard input; or a folder with a folder of PNG and JPEG images for\n"
     "each class.",
     cmd_data},
    {"predict", "predict MODEL --data FILE [--output FILE] [--proba] [--strict]",
     "the predictions of a model for the rows of a file",
     "MODEL is a model file, the model.safetensors of a trial, or NAME, NAME@VERSION or NAME@ALIAS "
     "on the\n"
     "server (a file of that name comes first). The columns of a table are found by their names, "
     "in "
     "any\n"
     "order; others are left out. Memory does not grow with the file. The output is a column "
     "`prediction`,\n"
     "the class or the number; an output that ends with .npy is an array of float32: "
     "probabilities, "
     "or\n"
     "numbers.",
     cmd_predict},
    {"models",
     "models list | models show MODEL | models add SWEEP MODEL | models add SWEEP/NUMBER MODEL | "
     "models add SWEEP --ensemble N MODEL | "
     "models alias MODEL ALIAS VERSION | models get MODEL [FILE] [--format onnx] | models delete "
     "MODEL",
     "keep what sweeps found as versions of models, and fetch them",
     "`add` makes the next version of MODEL from a completed trial, or from what a sweep "
     "recommends "
     "that\n"
     "has ended: its ensemble or its best trial (--use), or from an ensemble that was asked for "
     "after\n"
     "the end (--ensemble N, the number in `assay ensemble SWEEP --list`). A version goes on to "
     "exist\n"
     "when the sweep is deleted. show, get and delete also take MODEL@VERSION, where VERSION is a\n"
     "number or an alias; the name alone is MODEL@champion, or the newest version. get writes one\n"
     "file with all that predicting needs, to FILE or MODEL-VERSION.safetensors, under its name "
     "when\n"
     "its digest is right; - is standard output. With --format onnx it is one ONNX graph from raw\n"
     "columns to predictions; --from converts a model file of this machine.\n"
     "`alias MODEL ALIAS --remove` removes an alias.",
     cmd_models},
    {"serve", "serve MODEL… [--dir DIR] [--listen HOST:PORT]",
     "answer predictions over HTTP, in the Open Inference Protocol",
     "Starts assay-serve (docs/serving.md). MODEL is a model of the server's registry, NAME or\n"
     "NAME@ALIAS, or a file: a path with a slash, or one that ends in .safetensors. NAME=MODEL "
     "serves it\n"
     "under another name. Runs until Ctrl-C or SIGTERM.",
     cmd_serve},
    {"launch", "launch slurm | kubernetes | ssh HOST… --name NAME [--runners N]",
     "start runners as jobs of a cluster; show, scale and stop them",
     "Submits with the programs of the cluster: sbatch, kubectl, ssh. --print prints the script or "
     "the\n"
     "manifests instead. A fleet that was launched is known by its name: --status, --scale N, "
     "--stop.",
     cmd_launch},
    {"autoscale", "autoscale NAME [--min N] [--max N] [--dry-run]",
     "keep a fleet as large as the slots that wait need it",
     "NAME was launched before (with --runners 0, if it begins empty). Prints a line with the "
     "reason\n"
     "for each decision. Runners that are idle are ended; jobs that end before their runner "
     "registers\n"
     "are asked for less and less often.",
     cmd_autoscale},
    {"demand", "demand", "how many slots wait for runners, of which kind, and for how long",
     "What sweeps could run now, less what fits in the free slots of the live runners.",
     cmd_demand},
    {"runners", "runners | runners drain NAME | runners remove NAME [--yes]",
     "list runners, tell one to leave, or forget one",
     "A runner that is drained takes no more trials, hands those that run back to the queue, and\n"
     "leaves. A runner that is removed loses its trials to the queue, and its name is free: for "
     "one\n"
     "whose machine or work folder is lost. Both need an admin's token.",
     cmd_runners},
    {"token", "token create ROLE [--name NAME] [--ttl 30d] | token list | token revoke ID",
     "make, list and revoke tokens",
     "ROLE is viewer, user, runner or admin. The token is shown once; --output writes it into a "
     "file\n"
     "that only you can read instead.",
     cmd_token},
    {"completion", "completion bash | completion zsh | completion fish",
     "print a completion script for a shell",
     "`meson install` puts the scripts where the shells find them. By hand:\n"
     "    source <(assay completion bash)\n"
     "    source <(assay completion zsh)\n"
     "    assay completion fish | source\n"
     "Verbs, options, their values, and the names of sweeps, trials, models and data sets are\n"
     "completed. The names come from the server, which has two seconds.",
     cmd_completion},
    {"version", "version", "print the version", NULL, cmd_version},
    {"help", "help [VERB]", "show this, or the help of a verb", NULL, cmd_help},
};

const struct verbs_variable verbs_environment[] = {
    {"ASSAY_SERVER, ASSAY_TOKEN, ASSAY_TOKEN_FILE", "where to, and with which token"},
    {"ASSAY_PROFILE", "a server of the configuration file"},
    {"ASSAY_DATA", "the data folder of the `assay up` that is meant"},
    {"NO_COLOR, COLUMNS", "no colours; the width of tables"},
    {.names = NULL},
};

const struct verb *verbs_at(size_t i)
{
    return i < AS_ARRAY_LEN(table) ? &table[i] : NULL;
}

const struct verb *verbs_find(const char *name)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(table); i++)
        if (as_streq(table[i].name, name))
            return &table[i];
    return NULL;
}

bool verbs_read_table(const struct verb *v, verb_reader_fn fn, void *arg)
{
    char name[40], *args[] = {name, name, NULL};
    (void)snprintf(name, sizeof name, "%s", v->name);
    verb_set_reader(fn, arg);
    int code = cmd_help(v, 2, args); /* runs the verb with --help */
    verb_set_reader(NULL, NULL);
    return code == EXIT_OK;
}

const char *verbs_suggest(const char *name)
{
    static const struct {
        const char *said, *meant;
    } words[] = {
        {"ls", "sweeps"},       {"list", "sweeps"},     {"status", "show"},   {"start", "run"},
        {"create", "run"},      {"stop", "cancel"},     {"kill", "cancel"},   {"rm", "delete"},
        {"remove", "delete"},   {"log", "logs"},        {"diff", "compare"},  {"dataset", "data"},
        {"suggest", "ask"},     {"complete", "tell"},   {"add", "trials"},    {"front", "best"},
        {"download", "files"},  {"tail", "logs"},       {"datasets", "data"}, {"model", "models"},
        {"register", "models"}, {"continue", "resume"}, {"score", "predict"}, {"infer", "predict"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(words); i++)
        if (as_streq(words[i].said, name))
            return words[i].meant;
    struct as_nearest near = {.given = name};
    for (size_t i = 0; i < AS_ARRAY_LEN(table); i++)
        as_nearest_offer(&near, table[i].name);
    return near.name;
}

/* The exit codes, as many on a line as fit. */
static void print_exit_codes(FILE *out)
{
    int used = LINE_COLUMNS;
    for (const struct exit_meaning *e = exit_meanings; e->meaning; e++) {
        char text[100];
        int len = snprintf(text, sizeof text, "%d %s", e->code, e->meaning);
        bool fits = used + 3 + len <= LINE_COLUMNS;
        if (fits)
            used += fprintf(out, "   %s", text);
        else
            used = fprintf(out, "%s  %s", e == exit_meanings ? "" : "\n", text);
    }
    (void)fputc('\n', out);
}

void verbs_print_overview(FILE *out)
{
    (void)fprintf(out, "assay VERB …: distributed hyperparameter search\n\n");
    for (size_t i = 0; i < AS_ARRAY_LEN(table); i++)
        (void)fprintf(out, "  %-10s %s\n", table[i].name, table[i].summary);
    (void)fputs(
        "\n`assay help VERB` shows its options. All verbs that talk to a server take --server "
        "URL,\n"
        "--token-file PATH and --json; while `assay up` runs on this machine none is needed.\n"
        "\n"
        "Environment\n",
        out);
    for (const struct verbs_variable *v = verbs_environment; v->names; v++)
        (void)fprintf(out, "  %-45s %s\n", v->names, v->meaning);
    (void)fputs("\nExit codes\n", out);
    print_exit_codes(out);
}
