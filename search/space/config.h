/* A configuration: one value for each active parameter of a space. */
#ifndef ASSAY_SEARCH_SPACE_CONFIG_H
#define ASSAY_SEARCH_SPACE_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/space.h"

struct config_entry {
    bool active;
    union param_value value; /* all bits zero while inactive */
};

/* Entries in the order of the space's parameters. It does not refer to its space. */
struct config {
    size_t n;
    struct config_entry *entries;
};

/* All inactive; NULL when memory is out. Owned by the caller. */
struct config *config_create(const struct space *s);
void config_free(struct config *c);
AS_DEFINE_FREEP(struct config, config_free)
struct config *config_copy(const struct config *c);

/* Would parameter i be active, given the entries of the parameters that it depends on? */
bool config_wants(const struct space *s, const struct config *c, size_t i);

/* Set `active` of every entry by the conditions, parents first, and zero the values of the inactive
 * entries. All entries must have values before the call. */
void config_settle(const struct space *s, struct config *c);

/* {name: value} of the active parameters, in the space's order. New reference; NULL when memory is
 * out. */
json_t *config_to_json(const struct space *s, const struct config *c);

/* Read {name: value}. Each active parameter must be present with a value of its domain; inactive
 * and unknown parameters must be absent. `pointer` is the object's place in the document.
 * AS_E_INVAL with the pointer of the field; AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status config_from_json(const struct space *s, const json_t *j,
                                         const char *pointer, struct config **ret,
                                         struct as_err *err);

bool config_equal(const struct space *s, const struct config *a, const struct config *b);

#endif
