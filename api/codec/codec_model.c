/* Encoders of models and of their versions. Schema, metrics and lineage are stored as JSON text,
 * computed once when a version is made, and are passed on unchanged: what is shown of a version
 * never depends on the release of the server that shows it. */
#include "api/codec/wire.h"

#include "api/codec/wire_priv.h"

json_t *model_encode(const struct model_row *r)
{
    struct out o = out_begin();
    out_str(&o, "name", r->name);
    out_i64(&o, "versions", r->versions);
    out_i64_or_null(&o, "default_version", r->default_version > 0, r->default_version);
    out_json(&o, "aliases", r->aliases);
    out_time(&o, "created_at", r->created_ms);
    out_time(&o, "changed_at", r->changed_ms);
    return out_end(&o);
}

json_t *model_page_encode(const struct model_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, model_encode(&p->rows[i]));
    return page_end(items, p->next_cursor);
}

json_t *model_version_encode(const struct model_version_row *r)
{
    struct out o = out_begin();
    out_str(&o, "model", r->model);
    out_i64(&o, "version", r->version);
    out_json(&o, "aliases", r->aliases);
    out_str(&o, "kind", r->kind);
    out_str(&o, "sweep", r->sweep);
    out_str(&o, "sweep_id", r->sweep_id);
    out_json(&o, "trials", r->trials);
    out_str(&o, "task", r->task);
    out_str(&o, "input", r->input);
    out_reals(&o, "metrics", r->metrics);
    out_str(&o, "measured_on", r->measured_on);
    if (r->inputs)
        out_json(&o, "inputs", r->inputs);
    if (r->outputs)
        out_json(&o, "outputs", r->outputs);
    if (r->members)
        out_json(&o, "members", r->members);
    if (r->lineage)
        out_json(&o, "lineage", r->lineage);
    out_str(&o, "sha256", r->sha256);
    out_i64(&o, "size", r->size);
    out_str(&o, "created_by", r->created_by);
    out_time(&o, "created_at", r->created_ms);
    return out_end(&o);
}

json_t *model_version_page_encode(const struct model_version_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, model_version_encode(&p->rows[i]));
    return page_end(items, p->next_cursor);
}

as_status model_request_decode(const json_t *doc, struct model_request *ret, struct as_err *err)
{
    struct json_fields f;
    struct model_request q = {.trial = -1};
    int use = -1;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_text(&f, "sweep", JSON_REQUIRED, 1, 80, &q.sweep, err)) < 0 ||
        (st = json_fields_i64(&f, "trial", JSON_OPTIONAL, 0, INT32_MAX, &q.trial, err)) < 0 ||
        (st = json_fields_i64(&f, "ensemble", JSON_OPTIONAL, 1, INT32_MAX, &q.ensemble, err)) < 0 ||
        (st = json_fields_word(&f, "use", JSON_OPTIONAL, model_use_words, &use, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (use >= 0 && q.trial >= 0)
        return as_fail_at(err, AS_E_INVAL, "/use",
                          "found '%s' beside a trial, expected one of both: the trial is used",
                          model_use_words[use]);
    if (q.ensemble > 0 && (use >= 0 || q.trial >= 0))
        return as_fail_at(err, AS_E_INVAL, "/ensemble",
                          "found %lld beside %s, expected one of both: the ensemble is used",
                          (long long)q.ensemble, use >= 0 ? "`use`" : "a trial");
    q.use = use < 0 ? MODEL_RECOMMENDED : (model_use)use;
    *ret = q;
    return AS_OK;
}

as_status alias_request_decode(const json_t *doc, int64_t *ret_version, struct as_err *err)
{
    struct json_fields f;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "version", JSON_REQUIRED, 1, INT32_MAX, ret_version, err)) < 0)
        return st;
    return json_fields_end(&f, err);
}
