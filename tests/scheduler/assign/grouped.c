#include "tests/scheduler/assign/grouped.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/services/datasets.h"
#include "tests/support/check_main.h"

struct service s;
struct as_err err;

void open_grouped(void)
{
    char hex[SHA256_HEX_SIZE], text[300];
    struct dataset_row d;
    bool created;
    service_begin(&s, 0);
    put_blob(&s, "x,y,class\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n1,3,a\n2,5,b\n", hex);
    snprintf(text, sizeof text,
             "{'name': 'toy', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'class'}", hex);
    json_t *doc = json_of(text);
    ck_ok(dataset_create(s.db, &s.a, doc, &d, &created, &err), err);
    json_decref(doc);
}

void close_grouped(void)
{
    check_invariants(&s);
    service_end(&s);
}

const char *make_train(const char *name, const char *method, const char *widths, const char *limits,
                       const char *more)
{
    char text[2000];
    struct sweep_row row;
    /* several ranks need several shards */
    const char *batch =
        strstr(more, "'ranks'") ? "'batch_size': 8, 'micro_batch': 1" : "'batch_size': 2";
    snprintf(text, sizeof text,
             "{'name': '%s', 'metric': {'name': 'val_loss', 'goal': 'minimize'}, 'parameters': "
             "{'lr': {'type': 'float', 'min': 0.1, 'max': 1, 'points': 30}, 'width': {'type': "
             "'categorical', "
             "'values': [%s]}}, 'search': {'method': '%s', 'seed': 7}, 'limits': {%s}, 'trial': "
             "{'train': {'dataset': 'toy', 'epochs': 2, %s, 'model': {'layers': "
             "['${width}']}, 'optimizer': {'kind': 'sgd', 'lr': '${lr}'}}}, 'ensemble': false%s}",
             name, widths, method, limits, batch, more);
    json_t *doc = json_of(text);
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    return row.id;
}

struct claim_list claim_as(struct service *sv, const struct claim_request *like, struct as_err *e)
{
    static atomic_int counter;
    struct claim_list list = {0};
    struct claim_request req = *like;
    char id[40];
    snprintf(id, sizeof id, "claim-%d", atomic_fetch_add(&counter, 1));
    req.claim_id = id;
    req.is_last = true;
    if (claim_trials(sv->db, NULL, &sv->a, &req, &list, e) != AS_OK)
        list.n = SIZE_MAX;
    return list;
}

struct claim_list take(const struct claim_request *like)
{
    struct claim_list list = claim_as(&s, like, &err);
    ck_assert_msg(list.n != SIZE_MAX, "%s", err.msg);
    return list;
}

struct claim_list take_group(const char *runner, int64_t epoch, int64_t slots, int64_t k)
{
    return take(&(struct claim_request){
        .runner = runner, .epoch = epoch, .max_trials = slots, .groups.members = k});
}

struct claim_list refill(const char *runner, int64_t epoch, const char *group, int64_t n)
{
    return take(&(struct claim_request){.runner = runner,
                                        .epoch = epoch,
                                        .max_trials = 1,
                                        .groups.members = 1,
                                        .groups.fit.group = group,
                                        .groups.fit.members = n});
}

void done(const struct claimed_row *c, double loss)
{
    measure(&s, ref_of(c), "val_loss", 1, loss);
    end(&s, ref_of(c), OUTCOME_COMPLETED);
}

int64_t count(const char *what)
{
    char sql[400];
    snprintf(sql, sizeof sql, "select count(*) from trial where %s", what);
    return pg_fixture_i64(s.url, sql);
}
