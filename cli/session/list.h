/* Prints a list of the API: all its pages, as a table or as {"items": […]}. */
#ifndef ASSAY_CLI_SESSION_LIST_H
#define ASSAY_CLI_SESSION_LIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/session/session.h"
#include "cli/view/text_table.h"

/* The arguments of table_column(); a header of NULL ends an array of columns. */
struct list_column {
    const char *header;
    table_align align;
    size_t min;
};

/* Add the cells of one item, one for each column. */
typedef void (*list_row_fn)(const struct session *s, struct table *t, const json_t *item,
                            int64_t now_ms);

/* A list of the API and how to show it. */
struct list {
    const char *path;
    const char *query; /* NULL: none */
    int64_t limit;     /* 0: all */
    bool is_whole;     /* the API returns it without pages */
    const struct list_column *columns;
    list_row_fn add_row;
    const char *none; /* message when there are no rows; NULL: no message */
};

/* GET the list and print it. The errors of request_list() and of printing. */
AS_MUST_CHECK as_status list_print(const struct session *s, const struct list *l,
                                   struct as_err *err);

/* Print an array of items, borrowed, as {"items": […]}. */
AS_MUST_CHECK as_status list_print_json(const json_t *items, struct as_err *err);

#endif
