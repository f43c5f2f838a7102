/* `trial` of a sweep document: parsed, and applied to a configuration.
 *
 * A template contains ${name} of parameters. It is stored unchanged, and each trial replaces the
 * names. */
#include "scheduler/sweep/sweep_trial_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/template.h"
#include "base/trial_template.h"
#include "scheduler/sweep/sweep_environment_priv.h"

#define TRIAL_AT "/trial"
#define TRAIN_AT "/trial/train"

void sweep_trial_done(struct sweep_doc *d)
{
    json_decref(d->trial.train);
    json_decref(d->trial.command);
    json_decref(d->trial.env);
    json_decref(d->trial.files);
    json_decref(d->trial.report);
    free(d->trial.directory);
    json_decref(d->trial.environment);
    for (size_t i = 0; i < d->n_datasets; i++)
        free(d->datasets[i]);
    free(d->datasets);
}

static bool is_parameter(const void *arg, const char *name)
{
    const struct trial_reader *r = arg;
    return !r->parameters || json_object_get(r->parameters, name);
}

/* Check the references in every string of a tree; each string has a fault of its own. */
static as_status check_references(const struct trial_reader *r, const json_t *tree,
                                  const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    as_status st = AS_OK;
    if (json_is_string(tree))
        return faults_note(r->faults, template_check(tree, pointer, is_parameter, r, err), err);
    for (size_t i = 0; st == AS_OK && i < json_array_size(tree); i++) {
        json_pointer_index(pointer, i, at);
        st = check_references(r, json_array_get(tree, i), at, err);
    }
    for (void *it = json_object_iter((json_t *)tree); st == AS_OK && it;
         it = json_object_iter_next((json_t *)tree, it)) {
        json_pointer_child(pointer, json_object_iter_key(it), at);
        st = check_references(r, json_object_iter_value(it), at, err);
    }
    return st;
}

static as_status parse_train(const struct trial_reader *r, const struct trial_parts *p,
                             struct as_err *err)
{
    as_status st = AS_OK;
    char place[AS_ERR_POINTER_MAX];
    void *first = json_object_iter(p->environment);
    if (first)
        json_pointer_child(TRIAL_AT, json_object_iter_key(first), place);
    const char *stray = p->env           ? TRIAL_AT "/env"
                        : p->files       ? TRIAL_AT "/files"
                        : p->directory   ? TRIAL_AT "/directory"
                        : p->report      ? TRIAL_AT "/report"
                        : p->launch >= 0 ? TRIAL_AT "/launch"
                        : p->folder >= 0 ? TRIAL_AT "/folder"
                        : p->checkpoints ? TRIAL_AT "/checkpoints"
                        : first          ? place
                                         : NULL;
    r->d->trial.kind = TRIAL_TRAIN;
    r->d->trial.train = json_clone(p->train);
    if (!r->d->trial.train)
        return sweep_doc_no_memory(err);
    if (stray)
        st = as_fail_at(err, AS_E_INVAL, stray,
                        "%s is a field of trial.command, not of trial.train", stray);
    if ((st = faults_note(r->faults, st, err)) != AS_OK)
        return st;
    return check_references(r, p->train, TRAIN_AT, err);
}

static as_status parse_kind(const struct trial_reader *r, const struct json_fields *f,
                            const struct trial_parts *p, struct as_err *err)
{
    bool trains = !json_fields_lack(f, "train"), runs = !json_fields_lack(f, "command");
    if (trains == runs)
        return as_fail_at(err, AS_E_INVAL, TRIAL_AT,
                          TRIAL_AT ": expected exactly one of train and command, found %s",
                          trains ? "both" : "neither");
    if (p->train)
        return parse_train(r, p, err);
    return p->command ? sweep_program_parse(r, p, err) : AS_OK; /* noted */
}

as_status sweep_trial_parse(const struct json_fields *doc, const json_t *trial, struct sweep_doc *d,
                            struct as_err *err)
{
    struct json_fields f;
    const struct trial_reader r = {
        .d = d, .parameters = json_object_get(doc->obj, "parameters"), .faults = doc->faults};
    struct trial_parts p = {.fields = &f, .launch = -1, .folder = -1};
    as_status st = json_fields_under(&f, doc, trial, TRIAL_AT, err);
    if (st != AS_OK)
        return st;
    if ((st = json_fields_object(&f, "train", JSON_OPTIONAL, &p.train, err)) != AS_OK)
        return st;
    if ((st = json_fields_array(&f, "command", JSON_OPTIONAL, &p.command, err)) != AS_OK)
        return st;
    if ((st = json_fields_object(&f, "env", JSON_OPTIONAL, &p.env, err)) != AS_OK)
        return st;
    if ((st = json_fields_object(&f, "files", JSON_OPTIONAL, &p.files, err)) != AS_OK)
        return st;
    if ((st = json_fields_str(&f, "directory", JSON_OPTIONAL, &p.directory, err)) != AS_OK)
        return st;
    if ((st = json_fields_any(&f, "report", JSON_OPTIONAL, &p.report, err)) != AS_OK)
        return st;
    if ((st = json_fields_bool(&f, "checkpoints", JSON_OPTIONAL, &p.checkpoints, err)) != AS_OK)
        return st;
    if ((st = json_fields_word(&f, "launch", JSON_OPTIONAL, sweep_launch_words, &p.launch, err)) !=
        AS_OK)
        return st;
    if ((st = json_fields_word(&f, "folder", JSON_OPTIONAL, sweep_folder_words, &p.folder, err)) !=
        AS_OK)
        return st;
    JSON_AUTO environment = NULL;
    if ((st = sweep_environment_read(&f, &environment, err)) != AS_OK)
        return st;
    p.environment = environment;
    if ((st = faults_note(doc->faults, json_fields_end(&f, err), err)) != AS_OK)
        return st;
    return parse_kind(&r, &f, &p, err);
}

json_t *sweep_trial_to_json(const struct sweep_trial *t)
{
    JSON_AUTO j = json_object();
    int bad = 0;
    if (t->kind == TRIAL_TRAIN) {
        bad |= json_object_set(j, "train", t->train);
    } else {
        bad |= json_object_set(j, "command", t->command);
        bad |= json_object_set(j, "env", t->env);
        if (t->files)
            bad |= json_object_set(j, "files", t->files);
        if (t->directory)
            bad |= json_object_set_new(j, "directory", json_string(t->directory));
        if (t->report)
            bad |= json_object_set(j, "report", t->report);
        if (t->environment)
            bad |= json_object_update(j, t->environment);
        if (t->checkpoints)
            bad |= json_object_set_new(j, "checkpoints", json_true());
        if (t->has_folder)
            bad |= json_object_set_new(j, "folder", json_string(sweep_folder_words[t->folder]));
        if (t->launch != LAUNCH_DEFAULT)
            bad |= json_object_set_new(j, "launch",
                                       json_string(sweep_launch_words[t->launch == LAUNCH_FIRST]));
    }
    return bad ? NULL : as_steal(j);
}

/* ---- a trial as it runs ---- */

as_status sweep_doc_trial(const struct sweep_doc *d, const struct config *c, json_t **ret,
                          struct as_err *err)
{
    JSON_AUTO params = config_to_json(d->space, c);
    JSON_AUTO trial = d->trial.kind == TRIAL_NONE ? json_object() : sweep_trial_to_json(&d->trial);
    const struct trial_values values = {.params = params};
    if (!params || !trial)
        return sweep_doc_no_memory(err);
    return trial_template_apply(trial, &values, ret, err);
}
