/* A problem from a CSV file of real training runs (table.h).
 *
 * The header comments of the file hold the space as a sweep document. A grid over that space
 * numbers the cells, so a table is one array of values, and a lookup is grid_index(). Every cell
 * must occur exactly once: a missing cell would give a search a value that nobody measured. */
#include "bench/search/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "search/sampling/grid.h"

#define TABLE_MAX_BYTES (8U << 20)
#define SPACE_MARK "# parameters: "

struct table {
    struct grid *grid;
    size_t n;
    double *values; /* by the grid's number of the cell */
    bool *seen;
    double lowest;
};

void table_free(struct table *t)
{
    if (t == NULL)
        return;
    grid_free(t->grid);
    free(t->values);
    free(t->seen);
    free(t);
}

size_t table_cells(const struct table *t)
{
    return t->n;
}

double table_lowest(const struct table *t)
{
    return t->lowest;
}

double table_value(const struct table *t, const struct config *c)
{
    uint64_t cell = 0;
    if (grid_index(t->grid, c, &cell, NULL) < 0)
        return NAN; /* cannot happen: the grid covers the space */
    return t->values[cell];
}

as_status table_read_parameters(const char *path, json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = file_read(path, TABLE_MAX_BYTES, &text, &len, err);
    if (st < 0)
        return st;
    const char *from = strstr(text, SPACE_MARK);
    if (from == NULL)
        return as_fail(err, AS_E_INVAL, "%s: there is no line '%s…'", path, SPACE_MARK);
    from += strlen(SPACE_MARK);
    st = json_parse(from, strcspn(from, "\n"), ret, err);
    return st < 0 ? as_err_prefix(err, st, "%s", path) : AS_OK;
}

/* A cell's text as the JSON that the space expects. New reference. */
static json_t *cell_json(const char *text)
{
    double number;
    if (as_streq(text, "true") || as_streq(text, "false"))
        return json_boolean(text[0] == 't');
    if (as_parse_double(text, &number, NULL) < 0)
        return json_string(text);
    return number == floor(number) ? json_integer((json_int_t)number) : json_real(number);
}

/* Read one row; its fields are cut out of `line`. */
static as_status read_row(struct table *t, const struct space *s, char *line, struct as_err *err)
{
    JSON_AUTO cells = json_object();
    AS_AUTO(config_freep) struct config *c = NULL;
    uint64_t cell = 0;
    for (size_t i = 0; i < s->n; i++) {
        char *field = strsep(&line, ",");
        if (line == NULL)
            return as_fail(err, AS_E_INVAL, "%zu fields, expected %zu", i + 1, s->n + 1);
        if (*field != '\0' && json_object_set_new(cells, s->params[i].name, cell_json(field)) != 0)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    as_status st = config_from_json(s, cells, "", &c, err);
    if (st < 0)
        return st;
    st = grid_index(t->grid, c, &cell, err);
    if (st < 0)
        return st;
    if (t->seen[cell])
        return as_fail(err, AS_E_INVAL, "this cell was there before");
    t->seen[cell] = true;
    t->values[cell] = NAN;
    if (*line != '\0' && (st = as_parse_double(line, &t->values[cell], err)) < 0)
        return st;
    t->lowest = fmin(t->lowest, t->values[cell]);
    return AS_OK;
}

static as_status read_rows(struct table *t, const struct space *s, char *text, struct as_err *err)
{
    size_t number = 0, rows = 0;
    bool header = false;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        number++;
        if (*line == '#' || *line == '\0')
            continue;
        if (!header) {
            header = true;
            continue;
        }
        as_status st = read_row(t, s, line, err);
        if (st < 0)
            return as_err_prefix(err, st, "line %zu", number);
        rows++;
    }
    return rows == t->n ? AS_OK
                        : as_fail(err, AS_E_INVAL, "%zu cells, the space has %zu", rows, t->n);
}

as_status table_read(const char *path, const struct space *s, struct table **ret,
                     struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    AS_AUTO(table_freep) struct table *t = as_calloc(1, sizeof *t);
    size_t len = 0;
    if (t == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = file_read(path, TABLE_MAX_BYTES, &text, &len, err);
    if (st < 0)
        return st;
    st = grid_create(s, "/parameters", &t->grid, err);
    if (st < 0)
        return st;
    t->n = grid_cells(t->grid);
    t->values = as_calloc(t->n, sizeof *t->values);
    t->seen = as_calloc(t->n, sizeof *t->seen);
    t->lowest = INFINITY;
    if (t->values == NULL || t->seen == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    st = read_rows(t, s, text, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", path);
    *ret = as_steal(t);
    return AS_OK;
}
