#include "api/server/handlers.h"

#include "api/server/call.h"
#include "api/codec/wire.h"
#include "scheduler/services/datasets.h"
#include "scheduler/services/models.h"

as_status h_dataset_list(struct call *c, struct as_err *err)
{
    struct page_req page;
    struct dataset_page rows;
    as_status st = call_page(c, &page, err);
    if (st < 0)
        return st;
    st = dataset_list(c->db, c->arena, &page, &rows, err);
    return st < 0 ? st : call_ok(c, dataset_page_encode(&rows), err);
}

as_status h_dataset_create(struct call *c, struct as_err *err)
{
    struct dataset_row row;
    bool created = false;
    as_status st = dataset_create(c->db, c->arena, c->body, &row, &created, err);
    if (st < 0)
        return st;
    return created ? call_created(c, dataset_encode(&row), NULL, err)
                   : call_ok(c, dataset_encode(&row), err);
}

as_status h_dataset_get(struct call *c, struct as_err *err)
{
    struct dataset_row row;
    as_status st = dataset_get(c->db, c->arena, call_param(c, "dataset"), &row, err);
    return st < 0 ? st : call_ok(c, dataset_encode(&row), err);
}

as_status h_dataset_preview(struct call *c, struct as_err *err)
{
    const char *preview = NULL;
    as_status st = dataset_preview(c->db, c->arena, call_param(c, "dataset"), &preview, err);
    return st < 0 ? st : call_ok(c, dataset_preview_encode(preview), err);
}

as_status h_dataset_models(struct call *c, struct as_err *err)
{
    struct page_req page;
    struct model_version_page rows;
    as_status st = call_page(c, &page, err);
    if (st < 0)
        return st;
    st = model_versions_learned(c->db, c->arena, call_param(c, "dataset"), &page, &rows, err);
    return st < 0 ? st : call_ok(c, model_version_page_encode(&rows), err);
}

as_status h_dataset_delete(struct call *c, struct as_err *err)
{
    as_status st = dataset_delete(c->db, call_param(c, "dataset"), err);
    return st < 0 ? st : call_done(c);
}
