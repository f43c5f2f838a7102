/* Values of the API as text: numbers, parameters, times. */
#ifndef ASSAY_CLI_VIEW_FORMAT_H
#define ASSAY_CLI_VIEW_FORMAT_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

typedef enum format_kind {
    FORMAT_SHORT, /* for people: six significant digits */
    FORMAT_EXACT, /* for programs: the shortest text that reads back as the same number */
} format_kind;

/* Append a scalar: a number (also "NaN", "Infinity"), a text unchanged, true or false. Appends
 * nothing for null or NULL, and compact JSON for arrays and objects. */
void format_value(struct str *b, const json_t *v, format_kind kind);

/* The same for the value of a parameter, which may be null: appends "null" then, and nothing for
 * NULL, an inactive one. */
void format_param(struct str *b, const json_t *v, format_kind kind);

/* Append a number with so many decimals. With -1, and what is no number, as format_value() does in
 * its short form. */
void format_decimals(struct str *b, const json_t *v, int decimals);

/* Append " (90 % interval 0.02 to 0.042)" from the fields low, high and probability of a figure;
 * nothing without low or high. decimals: of the ends, as in format_decimals(). */
void format_interval(struct str *b, const json_t *figure, int decimals);

/* Append "lr=0.01 width=64" from an object of parameters, in the order of the object. */
void format_params(struct str *b, const json_t *params, format_kind kind);

/* Append a list of texts: "a, b". Appends nothing for an empty list. */
void format_tags(struct str *b, const json_t *tags);

/* Append the value of a limit of a sweep, or of its state: "200", "3600 s" for wall_time, "none"
 * for null. */
void format_limit(struct str *b, const char *name, const json_t *v);

/* Milliseconds between two times of the API; -1 when one of them is absent (`until` NULL: now_ms).
 */
int64_t format_elapsed_ms(const json_t *from, const json_t *until, int64_t now_ms);

/* Milliseconds for which the attempts of a trial have run, the present one included, without the
 * time in which it waited between them; -1: it has not started. */
int64_t format_ran_ms(const json_t *trial, int64_t now_ms);

/* "3 m ago", "2 d ago" from a time of the API; buf >= 32. Returns buf. */
const char *format_ago(const json_t *time, int64_t now_ms, char *buf);

/* "1.4 MB"; buf >= 32. Returns buf. */
const char *format_size(int64_t bytes, char *buf);

#endif
