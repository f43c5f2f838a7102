/* One run of `assay fit`, in the order of its steps: look at the table, plan, find a server,
 * register the table, search, keep a model. Each step is a function here, in a file of its own
 * name; what it decided stays in the struct for those after it. */
#ifndef ASSAY_CLI_COMMANDS_FIT_RUN_H
#define ASSAY_CLI_COMMANDS_FIT_RUN_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/commands/data_add.h"
#include "cli/fit/fit_facts.h"
#include "cli/fit/fit_plan.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "data/table_look.h"

#define FIT_RETRY_MS 30000
#define FIT_NAME_MAX 40
#define FIT_WARM 3  /* earlier fits that a search begins with, at most */
#define FIT_FRONT 9 /* trials in front: of earlier fits, and good on public tables */

struct fit {
    struct session session;
    struct data_add data; /* the table; `file`, `target` and options of reading it */
    struct fit_wishes wishes;
    int64_t time_ms;     /* of the whole command but the start of a server */
    int64_t row_time_ms; /* of the model for one row, at most */
    const char *size, *output, *name;
    bool print, no_warm;
    int64_t start_ns; /* later by what the start of a server took */
    int64_t begun_ms; /* when the search began, since the start; 0: before it */
    bool kept;        /* the server has a model */
    /* what was decided */
    struct table_look look;
    struct fit_columns columns;
    struct fit_facts facts;
    struct fit_plan plan;
    struct str command, document;
    struct str drop, numeric, text; /* lists of names: the user's and ours */
    struct str target_numeric; /* the user's list with the target, which is written with signs … */
    struct str target_written; /* … and what was said of it */
    char dataset[FIT_NAME_MAX + 8], model[FIT_NAME_MAX + 8];
    char sample[256]; /* a temporary file with a part of the rows; "": none */
    struct trial_ref sweep;
    struct trial_ref
        narrow; /* the one before the ranges became wider; its sweep "": there is none */
    struct trial_ref layer; /* the further layer; its sweep "": there is none */
    json_t *stack;          /* the trials that it sees, as of its document; owned */
    json_t *tree;           /* the document, as it is sent; owned */
    int64_t first_ms;       /* when the search of the first layer ends, since the start */
    json_t *remarks;        /* a list of texts; owned … */
    json_t *doubts;         /* … and those by which figures may be too good; owned */
    char warm[FIT_WARM][FIT_NAME_MAX + 48]; /* sweeps of earlier fits on similar tables … */
    json_t *warm_trials;  /* … the best configuration of each; owned. NULL: not looked for */
    struct str warm_from; /* … and what they are, for people */
    json_t *defaults;     /* configurations that were good on public tables; owned … */
    struct str first;     /* … and those of them that run, a line for each */
    json_t *first_trials; /* that are queued before the search begins; owned */
};

/* fit_time.c */
int64_t fit_elapsed_ms(const struct fit *f);
int64_t fit_kept_back_ms(const struct fit *f); /* for what comes after the search */

/* fit_table.c: look at the table, say what there is to say of it, and decide about its columns:
 * f->look, f->columns, f->facts. */
AS_MUST_CHECK as_status fit_table_look(struct fit *f, struct as_err *err);
/* Look at the test rows, after the columns are known: a file that cannot be used is refused before
 * anything is sent, and rows that are learned from, too, are a doubt. */
AS_MUST_CHECK as_status fit_table_test(struct fit *f, struct as_err *err);
/* Register it. A name that other content has is given a number: f->dataset. */
AS_MUST_CHECK as_status fit_table_add(struct fit *f, struct as_err *err);

/* fit_server.c: connect; where no server is known and none was named, start one, which goes on
 * afterwards. Says so where it has no runners. */
AS_MUST_CHECK as_status fit_server_find(struct fit *f, struct as_err *err);

/* fit_warm.c: find earlier fits on similar tables, unless f->no_warm: f->plan.priors. Says so. */
AS_MUST_CHECK as_status fit_warm_find(struct fit *f, struct as_err *err);
/* The same for --print: where no server answers, there are none. */
void fit_warm_look(struct fit *f);
/* f->defaults: what was good on public tables; none with f->no_warm. */
AS_MUST_CHECK as_status fit_warm_defaults(struct fit *f, struct as_err *err);

/* fit_search.c: f->document, of the plan, and f->tree, the same as it is sent; f->first_trials. */
AS_MUST_CHECK as_status fit_search_write(struct fit *f, struct as_err *err);
/* Create the sweep, with the time that is left, and start it: f->sweep. */
AS_MUST_CHECK as_status fit_search_start(struct fit *f, struct as_err *err);
/* Look at a sweep that has run for a part of its time. Where its best trial stands at the end of a
 * range, no more trials of it begin, and one with wider ranges that knows its results takes the
 * rest of the time: f->narrow is the first one then, and f->sweep the other. Says so. */
AS_MUST_CHECK as_status fit_search_widen(struct fit *f, struct as_err *err);

/* fit_layer.c: train the further layer that was asked for (wishes.layers), in the time that is
 * left: f->layer, unless there is no time or nothing to build on, which is said. *ret_code: the
 * exit code, if the user ended it. */
AS_MUST_CHECK as_status fit_layer_train(struct fit *f, int *ret_code, struct as_err *err);

/* fit_model.c: choose a model of the ended sweep, keep it, measure it, and print the report. */
AS_MUST_CHECK as_status fit_model_keep(struct fit *f, struct as_err *err);

#endif
