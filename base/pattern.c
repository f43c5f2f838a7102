/* PCRE2 behind a small interface.
 *
 * Three limits hold for each match: steps, depth of backtracking and memory. They are of the match
 * and not of the time, so that the same text gives the same result on every machine. There is no
 * just-in-time compiler: it would count no steps.
 *
 * Text comes from programs, so it may be anything. With PCRE2_MATCH_INVALID_UTF a byte that is no
 * UTF-8 only ends a stretch of text. */
#include "base/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/str.h"

#define MAX_DEPTH 10000
#define MAX_HEAP_KIB 4096

struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    const char *subject; /* of the last match; borrowed */
    PCRE2_SPTR table;    /* of names, sorted: two bytes of number, the name, a NUL */
    uint32_t n_entries, entry_size;
    const char **names; /* distinct; views of the table */
    size_t n_names;
    char *literal;
};

void pattern_free(struct pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->limits);
    free(p->names);
    free(p->literal);
    free(p);
}

static const char *entry_name(const struct pattern *p, uint32_t i)
{
    return (const char *)p->table + (size_t)i * p->entry_size + 2;
}

static uint32_t entry_number(const struct pattern *p, uint32_t i)
{
    const unsigned char *e = p->table + (size_t)i * p->entry_size;
    return (uint32_t)e[0] << 8 | e[1];
}

static as_status read_names(struct pattern *p, struct as_err *err)
{
    pcre2_pattern_info(p->code, PCRE2_INFO_NAMECOUNT, &p->n_entries);
    pcre2_pattern_info(p->code, PCRE2_INFO_NAMEENTRYSIZE, &p->entry_size);
    pcre2_pattern_info(p->code, PCRE2_INFO_NAMETABLE, &p->table);
    p->names = as_calloc((size_t)p->n_entries + 1, sizeof *p->names);
    if (!p->names)
        return as_fail_nomem(err);
    for (uint32_t i = 0; i < p->n_entries; i++)
        if (i == 0 || strcmp(entry_name(p, i), entry_name(p, i - 1)) != 0)
            p->names[p->n_names++] = entry_name(p, i);
    return AS_OK;
}

/* A quantifier makes the character before it optional, and alternatives have different
 * beginnings. */
static char *literal_of(const char *text)
{
    text += strspn(text, "^ \t");
    size_t n = strcspn(text, "\\^$.[]|()?*+{}");
    if (strchr(text, '|'))
        n = 0;
    if (n && text[n] && strchr("?*+{", text[n]))
        n--;
    char *s = as_calloc(n + 1, 1);
    if (s)
        memcpy(s, text, n);
    return s;
}

static as_status compile(struct pattern *p, const char *text, size_t *ret_offset,
                         struct as_err *err)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    p->code = pcre2_compile((PCRE2_SPTR)text, strlen(text),
                            PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DUPNAMES |
                                PCRE2_NEVER_BACKSLASH_C,
                            &code, &offset, NULL);
    if (p->code)
        return AS_OK;
    char why[160] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    if (ret_offset)
        *ret_offset = offset;
    return as_fail(err, AS_E_INVAL, "%s, at offset %zu", why, (size_t)offset);
}

as_status pattern_compile(const char *text, struct pattern **ret, size_t *ret_offset,
                          struct as_err *err)
{
    if (strlen(text) > PATTERN_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE, "the pattern has %zu bytes, at most %d are allowed",
                       strlen(text), PATTERN_MAX_BYTES);
    AS_AUTO(pattern_freep) struct pattern *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    as_status st = compile(p, text, ret_offset, err);
    if (st < 0 || (st = read_names(p, err)) < 0)
        return st;
    p->literal = literal_of(text);
    p->match = pcre2_match_data_create_from_pattern(p->code, NULL);
    p->limits = pcre2_match_context_create(NULL);
    if (!p->literal || !p->match || !p->limits)
        return as_fail_nomem(err);
    pcre2_set_match_limit(p->limits, PATTERN_MAX_STEPS);
    pcre2_set_depth_limit(p->limits, MAX_DEPTH);
    pcre2_set_heap_limit(p->limits, MAX_HEAP_KIB);
    *ret = as_steal(p);
    return AS_OK;
}

size_t pattern_n_names(const struct pattern *p)
{
    return p->n_names;
}

const char *pattern_name(const struct pattern *p, size_t i)
{
    return p->names[i];
}

as_status pattern_match(struct pattern *p, const char *text, size_t len, bool *ret_found,
                        struct as_err *err)
{
    int rc = pcre2_match(p->code, (PCRE2_SPTR)text, len, 0, 0, p->match, p->limits);
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
        char why[160] = "";
        pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
        return as_fail(err, AS_E_TOO_LARGE, "%s", why);
    }
    p->subject = text;
    *ret_found = rc >= 0;
    return AS_OK;
}

bool pattern_group(const struct pattern *p, size_t i, const char **ret, size_t *ret_len)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(p->match);
    for (uint32_t e = 0; e < p->n_entries; e++) {
        uint32_t k = entry_number(p, e);
        if (strcmp(entry_name(p, e), p->names[i]) != 0 || ends[2 * k] == PCRE2_UNSET ||
            ends[2 * k + 1] < ends[2 * k])
            continue;
        *ret = p->subject + ends[2 * k];
        *ret_len = ends[2 * k + 1] - ends[2 * k];
        return true;
    }
    return false;
}

const char *pattern_literal(const struct pattern *p)
{
    return p->literal;
}
