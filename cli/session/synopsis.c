/* Each alternative is split into its words; then the arguments are matched with them from left to
 * right. A word in brackets is tried both ways. The synopses are texts of our own, so that a wrong
 * one is a bug and not an error. */
#include "cli/session/synopsis.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

struct pattern {
    size_t n;
    struct {
        struct synopsis_word word;
        bool is_optional, repeats;
    } at[SYNOPSIS_MAX];
};

bool synopsis_is_literal(const struct synopsis_word *w)
{
    return w->len > 0 && islower((unsigned char)w->s[0]);
}

static size_t word_len(const char *s, const char *end)
{
    size_t len = strcspn(s, " ]");
    return (size_t)(end - s) < len ? (size_t)(end - s) : len;
}

static void add_word(struct pattern *p, const char *s, size_t len, bool is_optional)
{
    static const char dots[] = "…";
    size_t n = sizeof dots - 1;
    bool repeats = len > n && memcmp(s + len - n, dots, n) == 0;
    if (p->n == SYNOPSIS_MAX || len == 0)
        return;
    p->at[p->n].word = (struct synopsis_word){s, repeats ? len - n : len};
    p->at[p->n].is_optional = is_optional;
    p->at[p->n++].repeats = repeats;
}

/* Split one alternative, from s to end. */
static void split_words(const char *s, const char *end, struct pattern *p)
{
    while (s < end) {
        size_t len = word_len(s, end);
        if (*s == ' ' || *s == ']' || as_starts_with(s, "…")) {
            s += as_starts_with(s, "…") ? strlen("…") : 1;
        } else if (as_starts_with(s, "[-")) {
            s += strcspn(s, "]");
        } else if (*s == '[') {
            add_word(p, s + 1, word_len(s + 1, end), true);
            s += 1 + word_len(s + 1, end);
        } else if (*s == '-') { /* an option that must be there, perhaps with a value */
            s += len;
            s += *s == ' ' && isupper((unsigned char)s[1]) ? 1 + word_len(s + 1, end) : 0;
        } else {
            add_word(p, s, len, false);
            s += len;
        }
    }
}

static void add_next(struct synopsis_words *ret, const struct synopsis_word *w)
{
    for (size_t i = 0; i < ret->n; i++)
        if (ret->words[i].len == w->len && memcmp(ret->words[i].s, w->s, w->len) == 0)
            return;
    if (ret->n < SYNOPSIS_MAX)
        ret->words[ret->n++] = *w;
}

static bool word_takes(const struct synopsis_word *w, const char *arg)
{
    return !synopsis_is_literal(w) || (strncmp(arg, w->s, w->len) == 0 && !arg[w->len]);
}

static void match(const struct pattern *p, size_t at, const char *const *args, size_t n_args,
                  struct synopsis_words *ret)
{
    if (at == p->n)
        return;
    if (p->at[at].is_optional)
        match(p, at + 1, args, n_args, ret);
    if (n_args == 0)
        add_next(ret, &p->at[at].word);
    else if (word_takes(&p->at[at].word, args[0]))
        match(p, p->at[at].repeats ? at : at + 1, args + 1, n_args - 1, ret);
}

void synopsis_next(const char *synopsis, const char *const *args, size_t n_args,
                   struct synopsis_words *ret)
{
    size_t verb_len = strcspn(synopsis, " ");
    *ret = (struct synopsis_words){0};
    for (const char *s = synopsis; s;) {
        const char *bar = strstr(s, " | ");
        const char *end = bar ? bar : s + strlen(s);
        struct pattern p = {0};
        split_words(s, end, &p);
        bool named = p.n > 0 && p.at[0].word.len == verb_len &&
                     memcmp(p.at[0].word.s, synopsis, verb_len) == 0;
        match(&p, named ? 1 : 0, args, n_args, ret);
        s = bar ? bar + 3 : NULL;
    }
}
