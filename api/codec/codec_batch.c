/* Many parts in one request of a runner: ends, measurements, a claim.
 *
 * Each part is read as if it were the document of its single route, so that there is one reader of
 * each kind, and an error of it gets the place of the part afterwards. A part that is malformed
 * keeps its error: what its author sent beside it counts. Only what is no list of parts at all is
 * an error of the whole request. */
#include "api/codec/wire.h"

#include <stdio.h>
#include <string.h>

#include "api/codec/wire_priv.h"
#include "base/json.h"
#include "base/mem.h"

void batch_part_at(batch_kind kind, size_t index, char ret[BATCH_AT_SIZE])
{
    if (kind == BATCH_CLAIM)
        (void)snprintf(ret, BATCH_AT_SIZE, "/claim");
    else
        (void)snprintf(ret, BATCH_AT_SIZE, "/%s/%zu", kind == BATCH_END ? "ends" : "measurements",
                       index);
}

void batch_pointer_add(const char *at, struct as_err *err)
{
    struct as_err given = *err;
    char pointer[AS_ERR_POINTER_MAX + BATCH_AT_SIZE];
    bool begins = given.pointer[0] && as_starts_with(given.msg, given.pointer);
    (void)snprintf(pointer, sizeof pointer, "%s%s", at, given.pointer);
    as_err_set(err, given.code, pointer, "%s%s", begins ? at : "", given.msg);
}

/* Keep the error of a malformed part, which is at `at`. AS_E_NOMEM. */
static as_status keep_fault(struct arena *a, const char *at, struct as_err *fault,
                            const struct as_err **ret, struct as_err *err)
{
    if (fault->code == AS_E_NOMEM)
        return as_fail_nomem(err);
    struct as_err *kept = arena_alloc(a, 1, sizeof *kept);
    if (!kept)
        return as_fail_nomem(err);
    batch_pointer_add(at, fault);
    *kept = *fault;
    *ret = kept;
    return AS_OK;
}

/* Read the attempt of a part and its writer. */
static as_status part_read(struct json_fields *f, struct batched_part *ret, struct as_err *err)
{
    struct attempt_ref *r = &ret->ref;
    int64_t seat = -1, epoch = -1;
    as_status st = json_fields_str(f, "sweep", JSON_REQUIRED, &r->sweep, err);
    if (st < 0 ||
        (st = json_fields_i64(f, "number", JSON_REQUIRED, 0, INT32_MAX, &r->number, err)) < 0 ||
        (st = json_fields_i64(f, "attempt", JSON_REQUIRED, 1, INT32_MAX, &r->attempt, err)) < 0 ||
        (st = json_fields_i64(f, "seat", JSON_OPTIONAL, 0, INT32_MAX, &seat, err)) < 0 ||
        (st = json_fields_i64(f, "world_epoch", JSON_OPTIONAL, 1, INT32_MAX, &epoch, err)) < 0)
        return st;
    if ((seat < 0) != (epoch < 0)) {
        const char *lacks = seat < 0 ? "/seat" : "/world_epoch";
        return as_fail_at(err, AS_E_INVAL, lacks,
                          "%s is missing: the writer of a gang says its seat and its epoch", lacks);
    }
    ret->has_seat = seat >= 0;
    ret->seat = seat;
    ret->epoch = epoch;
    return AS_OK;
}

static as_status part_begin(struct json_fields *f, const json_t *j, struct batched_part *ret,
                            struct as_err *err)
{
    as_status st = json_check_nul(j, "", err);
    if (st < 0 || (st = json_fields_init(f, j, "", err)) < 0)
        return st;
    return part_read(f, ret, err);
}

static as_status end_read(const json_t *j, struct arena *a, struct batched_end *ret,
                          struct as_err *err)
{
    struct json_fields f;
    as_status st = part_begin(&f, j, &ret->part, err);
    if (st < 0 || (st = completion_read(&f, a, &ret->end, err)) < 0)
        return st;
    return json_fields_end(&f, err);
}

static as_status report_read(const json_t *j, struct arena *a, struct batched_report *ret,
                             struct as_err *err)
{
    struct json_fields f;
    as_status st = part_begin(&f, j, &ret->part, err);
    if (st < 0 || (st = measurement_batch_read(&f, a, &ret->report, err)) < 0)
        return st;
    return json_fields_end(&f, err);
}

static as_status ends_read(const json_t *list, struct arena *a, struct batch_request *r,
                           struct as_err *err)
{
    r->n_ends = json_array_size(list);
    r->ends = arena_alloc(a, r->n_ends + 1, sizeof *r->ends);
    if (!r->ends)
        return as_fail_nomem(err);
    for (size_t i = 0; i < r->n_ends; i++) {
        char at[BATCH_AT_SIZE];
        struct as_err fault = {0};
        batch_part_at(BATCH_END, i, at);
        as_status st = end_read(json_array_get(list, i), a, &r->ends[i], &fault);
        if (st < 0 && (st = keep_fault(a, at, &fault, &r->ends[i].part.fault, err)) < 0)
            return st;
    }
    return AS_OK;
}

static as_status reports_read(const json_t *list, struct arena *a, struct batch_request *r,
                              struct as_err *err)
{
    r->n_reports = json_array_size(list);
    r->reports = arena_alloc(a, r->n_reports + 1, sizeof *r->reports);
    if (!r->reports)
        return as_fail_nomem(err);
    for (size_t i = 0; i < r->n_reports; i++) {
        char at[BATCH_AT_SIZE];
        struct as_err fault = {0};
        batch_part_at(BATCH_MEASUREMENTS, i, at);
        as_status st = report_read(json_array_get(list, i), a, &r->reports[i], &fault);
        if (st < 0 && (st = keep_fault(a, at, &fault, &r->reports[i].part.fault, err)) < 0)
            return st;
    }
    return AS_OK;
}

static as_status claim_read(const json_t *j, struct arena *a, struct batched_claim *ret,
                            struct as_err *err)
{
    char at[BATCH_AT_SIZE];
    struct as_err fault = {0};
    if (!j)
        return AS_OK;
    ret->is_asked = true;
    batch_part_at(BATCH_CLAIM, 0, at);
    if (json_check_nul(j, "", &fault) == AS_OK &&
        claim_decode(j, a, &ret->claim, &ret->wait_ms, &fault) == AS_OK)
        return AS_OK;
    return keep_fault(a, at, &fault, &ret->fault, err);
}

as_status batch_decode(const json_t *doc, struct arena *a, struct batch_request *ret,
                       struct as_err *err)
{
    struct json_fields f;
    struct batch_request r = {0};
    json_t *ends = NULL, *reports = NULL, *claim = NULL;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_array(&f, "ends", JSON_OPTIONAL, &ends, err)) < 0 ||
        (st = json_fields_array(&f, "measurements", JSON_OPTIONAL, &reports, err)) < 0 ||
        (st = json_fields_any(&f, "claim", JSON_OPTIONAL, &claim, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (json_object_size(doc) == 0)
        return as_fail(err, AS_E_INVAL,
                       "the request is empty, expected ends, measurements or a claim");
    size_t n = json_array_size(ends) + json_array_size(reports);
    if (n > BATCH_PARTS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE,
                          json_array_size(ends) > BATCH_PARTS_MAX ? "/ends" : "/measurements",
                          "found %zu ends and %zu measurements, expected at most %d together",
                          json_array_size(ends), json_array_size(reports), BATCH_PARTS_MAX);
    if ((st = ends_read(ends, a, &r, err)) < 0 || (st = reports_read(reports, a, &r, err)) < 0 ||
        (st = claim_read(claim, a, &r.claim, err)) < 0)
        return st;
    *ret = r;
    return AS_OK;
}

/* ---- answers ---- */

#define PART_DONE 200

json_t *batch_end_encode(trial_state state)
{
    struct out o = out_begin();
    out_i64(&o, "status", PART_DONE);
    out_str(&o, "state", trial_state_format(state));
    return out_end(&o);
}

/* The fields of a single answer, behind its status. Takes `fields`. */
static json_t *with_status(json_t *fields)
{
    struct out o = out_begin();
    out_i64(&o, "status", PART_DONE);
    if (!fields || !o.obj || json_object_update(o.obj, fields) < 0)
        o.failed = true;
    json_decref(fields);
    return out_end(&o);
}

json_t *batch_report_encode(int64_t recorded, const struct directive_row *directive)
{
    return with_status(report_encode(recorded, directive));
}

json_t *batch_claim_encode(const struct claim_list *l)
{
    return with_status(claims_encode(l));
}

json_t *batch_problem_encode(int status, json_t *problem)
{
    struct out o = out_begin();
    out_i64(&o, "status", status);
    out_child(&o, "problem", problem);
    return out_end(&o);
}

json_t *batch_encode(json_t *ends, json_t *reports, json_t *claim)
{
    struct out o = out_begin();
    out_child(&o, "ends", ends);
    out_child(&o, "measurements", reports);
    out_child(&o, "claim", claim);
    return out_end(&o);
}
