/* Trials are fetched and written page by page.
 *
 * JSON needs no more than the page at hand, nor does a table in a pipe, whose columns follow from
 * the sweep. The columns of CSV (metrics of any name) and of a table on a terminal (widths) depend
 * on all trials: these are first kept in a temporary file (disk_list.h) while the columns are
 * collected.
 *
 * So standard output has the trials before an error when one comes in the middle; the exit code
 * says so. A file is replaced at the end only. */
#include "cli/commands/trials_print.h"

#include "cli/commands/sweep_record.h"

#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/session/disk_list.h"
#include "cli/view/export_csv.h"
#include "cli/view/json_items.h"
#include "cli/view/say.h"
#include "cli/view/trial_facts.h"
#include "cli/view/trial_table.h"

/* What is printed, and where to. */
struct printer {
    const struct session *session;
    struct file_output *out;
    struct str b; /* written and emptied after each page */
    struct disk_list list;
    struct trial_facts facts;
    struct trial_table *rows;
    struct table *table;
    size_t n;
};

static void printer_done(struct printer *p)
{
    str_done(&p->b);
    disk_list_done(&p->list);
    trial_facts_done(&p->facts);
    trial_table_free(p->rows);
    table_free(p->table);
}

/* Write what was appended. */
static as_status flush(struct printer *p, struct as_err *err)
{
    as_status st = str_check(&p->b, err);
    if (st == AS_OK)
        st = file_write_all(p->out->fd, str_cstr(&p->b), p->b.len, err);
    str_clear(&p->b);
    return st;
}

static as_status fetch(const struct printer *p, const struct trial_ref *sweep, const char *query,
                       int64_t limit, request_page_fn page, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    request_path(&path, sweep, "trials");
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    return request_pages(p->session->client, path.s, query, limit, page, (void *)p, err);
}

/* JSON. */

static as_status json_page(void *arg, const json_t *items, struct as_err *err)
{
    struct printer *p = arg;
    json_items_add(&p->b, items, &p->n);
    return flush(p, err);
}

static as_status print_json(struct printer *p, const struct trial_ref *sweep, const char *query,
                            int64_t limit, struct as_err *err)
{
    as_status st = fetch(p, sweep, query, limit, json_page, err);
    if (st < 0)
        return st;
    json_items_end(&p->b, p->n);
    return flush(p, err);
}

/* Rows whose columns depend on all trials. */

static as_status keep_page(void *arg, const json_t *items, struct as_err *err)
{
    struct printer *p = arg;
    as_status st = trial_facts_add(&p->facts, items, err);
    return st < 0 ? st : disk_list_add(&p->list, items, err);
}

static as_status csv_page(void *arg, const json_t *items, struct as_err *err)
{
    struct printer *p = arg;
    p->n += json_array_size(items);
    as_status st = export_csv_rows(&p->facts, items, &p->b, err);
    return st < 0 ? st : flush(p, err);
}

static as_status print_csv(struct printer *p, const struct trial_ref *sweep, struct as_err *err)
{
    as_status st = disk_list_open(&p->list, err);
    if (st == AS_OK)
        st = fetch(p, sweep, NULL, 0, keep_page, err);
    if (st == AS_OK)
        st = export_csv_head(&p->facts, &p->b, err);
    if (st == AS_OK)
        st = flush(p, err);
    return st < 0 ? st : disk_list_pages(&p->list, csv_page, p, err);
}

static as_status measure_page(void *arg, const json_t *items, struct as_err *err)
{
    struct printer *p = arg;
    (void)err;
    trial_table_add(p->rows, p->table, items);
    table_forget_rows(p->table);
    return AS_OK;
}

static as_status row_page(void *arg, const json_t *items, struct as_err *err)
{
    struct printer *p = arg;
    p->n += json_array_size(items);
    trial_table_add(p->rows, p->table, items);
    as_status st = table_format_rows(p->table, &p->session->terminal, &p->b, err);
    table_forget_rows(p->table);
    return st < 0 ? st : flush(p, err);
}

static as_status print_table(struct printer *p, const struct trial_ref *ref, const json_t *sweep,
                             const char *query, int64_t limit, struct as_err *err)
{
    AS_AUTO(str_done) struct str hidden = {0};
    const struct terminal *terminal = &p->session->terminal;
    as_status st = terminal->tty ? disk_list_open(&p->list, err) : AS_OK;
    if (st == AS_OK && terminal->tty)
        st = fetch(p, ref, query, limit, keep_page, err);
    if (st == AS_OK)
        st = trial_table_begin(&p->facts, TRIAL_TABLE_ALL, sweep, terminal, &p->rows, &p->table,
                               err);
    if (st == AS_OK && terminal->tty)
        st = disk_list_pages(&p->list, measure_page, p, err);
    if (st == AS_OK)
        st = table_format_head(p->table, terminal, &p->b, &hidden, err);
    if (st == AS_OK)
        st = terminal->tty ? disk_list_pages(&p->list, row_page, p, err)
                           : fetch(p, ref, query, limit, row_page, err);
    if (st == AS_OK)
        st = flush(p, err); /* the head of an empty table */
    if (st < 0)
        return st;
    session_say_hidden(&hidden);
    if (p->n == 0)
        say("There are no such trials yet.");
    return AS_OK;
}

as_status trials_print(const struct session *s, const struct trial_ref *ref, const char *query,
                       int64_t limit, struct as_err *err)
{
    struct file_output out = {.fd = STDOUT_FILENO};
    AS_AUTO(printer_done) struct printer p = {.session = s, .out = &out};
    JSON_AUTO sweep = NULL;
    if (s->json) {
        json_items_begin(&p.b, NULL, NULL);
        return print_json(&p, ref, query, limit, err);
    }
    as_status st = request_get(s->client, ref, NULL, NULL, &sweep, err);
    if (st == AS_OK)
        st = trial_facts_init(&p.facts, sweep, err);
    return st < 0 ? st : print_table(&p, ref, sweep, query, limit, err);
}

as_status trials_export(const struct session *s, const struct trial_ref *ref, const char *output,
                        struct as_err *err)
{
    AS_AUTO(file_output_done) struct file_output out = {0};
    AS_AUTO(printer_done) struct printer p = {.session = s, .out = &out};
    JSON_AUTO sweep = NULL;
    bool is_file = output && !as_streq(output, "-");
    as_status st = request_get(s->client, ref, NULL, NULL, &sweep, err);
    if (st == AS_OK && s->json)
        st = sweep_record_add_checks(s->client, ref, sweep, err);
    if (st == AS_OK)
        st = trial_facts_init(&p.facts, sweep, err);
    if (st == AS_OK)
        st = file_output_open(&out, is_file ? output : "-", 0644, err);
    if (st < 0)
        return st;
    if (s->json)
        json_items_begin(&p.b, "sweep", sweep);
    st = s->json ? print_json(&p, ref, NULL, 0, err) : print_csv(&p, ref, err);
    if (st == AS_OK)
        st = file_output_commit(&out, err);
    if (st == AS_OK && is_file)
        say("%zu trials are in %s", p.n, output);
    return st;
}
