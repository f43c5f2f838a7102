/* `trial` of a sweep document: a command or a train document, and the ${name} in them. */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_TRIAL_PRIV_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_TRIAL_PRIV_H

#include "base/command_line.h"
#include "base/json.h"
#include "scheduler/sweep/sweep_doc.h"

/* AS_E_NOMEM: out of memory for a sweep document. */
as_status sweep_doc_no_memory(struct as_err *err);

/* What `trial` is parsed with. */
struct trial_reader {
    struct sweep_doc *d;
    const json_t *parameters; /* of the document; also those at fault, which the space lacks */
    struct faults *faults;    /* of a document that is sent; NULL: it is stored, and the first fault
                                 is returned */
};

/* The fields of `trial`; NULL: not given. */
struct trial_parts {
    json_t *train, *command, *env, *files, *report;
    json_t *environment;              /* as sweep_environment_read() has them; borrowed */
    const struct json_fields *fields; /* what they are fields of; borrowed */
    const char *directory;
    bool checkpoints;
    int launch; /* an index of sweep_launch_words; -1: not given */
    int folder; /* an index of sweep_folder_words; -1: not given */
};

extern const char *const sweep_launch_words[]; /* all, first; NULL-terminated */
extern const char *const sweep_folder_words[]; /* in the enum's order; NULL-terminated */

/* Check the names in a text of a program. AS_E_INVAL with `pointer`. */
AS_MUST_CHECK as_status sweep_program_check_text(const struct trial_reader *r, const json_t *text,
                                                 const char *pointer, struct as_err *err);

/* Parse those of a program into r->d->trial. Errors as sweep_doc_parse; faults are noted in
 * r->faults. */
AS_MUST_CHECK as_status sweep_program_parse(const struct trial_reader *r,
                                            const struct trial_parts *p, struct as_err *err);

/* What is known of the names in a program's texts; a view of r. */
struct command_rules sweep_program_rules(const struct trial_reader *r);

/* Read `trial.report`. *ret: the sources, a new reference to a list of {"stdout": [pattern, …],
 * "groups": {group: metric}}, {"csv": path, "step": column}, {"json": path, "step": field} and
 * {"tensorboard": folder, "tags": {tag: metric}}; groups, step and tags may be absent. `trial` is
 * what report is a field of. Errors as sweep_doc_parse; faults are noted in r->faults. */
AS_MUST_CHECK as_status sweep_report_parse(const struct trial_reader *r,
                                           const struct json_fields *trial, const json_t *j,
                                           json_t **ret, struct as_err *err);

/* Parse `trial` of `doc` into d->trial. Errors as sweep_doc_parse; faults are noted in
 * doc->faults. */
AS_MUST_CHECK as_status sweep_trial_parse(const struct json_fields *doc, const json_t *trial,
                                          struct sweep_doc *d, struct as_err *err);

/* Parse `train`, a template that was applied, as the trainer does, and check what a sweep allows of
 * it. Adds its data set to d->datasets. Faults of the document are noted in `found`, those of the
 * sweep's metrics in `faults`. */
AS_MUST_CHECK as_status sweep_train_parse(struct sweep_doc *d, const json_t *train, int64_t ranks,
                                          struct faults *found, struct faults *faults,
                                          struct as_err *err);

/* Fill d->datasets, and refuse a train document that the trainer would refuse for some value of a
 * parameter. The document is made and parsed with each parameter at its ends and at each of its
 * choices, active and inactive. Objectives and outcome constraints must be set; those that the
 * trainer never reports are refused. If the space is at fault, only what no parameter at fault
 * touches is checked. Faults are noted in doc->faults; one that only some values of a parameter
 * have names the value. Does nothing for a command. */
AS_MUST_CHECK as_status sweep_trial_check_train(struct sweep_doc *d, const struct json_fields *doc,
                                                struct as_err *err);

/* Free what d->trial and d->datasets own. */
void sweep_trial_done(struct sweep_doc *d);

/* The canonical `trial` object. New reference; NULL when memory is out. */
json_t *sweep_trial_to_json(const struct sweep_trial *t);

#endif
