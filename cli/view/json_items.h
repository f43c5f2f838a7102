/* An object with a list, written in pieces: the bytes of json_format_pretty() of the whole. */
#ifndef ASSAY_CLI_VIEW_JSON_ITEMS_H
#define ASSAY_CLI_VIEW_JSON_ITEMS_H

#include <jansson.h>
#include <stddef.h>

#include "base/str.h"

/* Append the beginning of {name: first, "items": […]}; without a name, of {"items": […]}. */
void json_items_begin(struct str *b, const char *name, const json_t *first);
/* Append items; *n counts those so far, from 0. */
void json_items_add(struct str *b, const json_t *items, size_t *n);
/* Append the end, with a line feed. */
void json_items_end(struct str *b, size_t n);

#endif
