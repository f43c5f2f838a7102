/* The words that complete a command line.
 *
 * The words before the current one are read once: options with their values, and the arguments that
 * are left. Then the current word is an option, the value of an option, or an argument. What an
 * argument may be comes from the verb's synopsis (synopsis.h), what an option may be from the
 * verb's option table: a new verb or option is completed without a line here. */
#include "cli/commands/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands/verbs.h"
#include "cli/files/profiles.h"
#include "cli/session/session.h"
#include "cli/session/synopsis.h"
#include "cli/view/say.h"
#include "cli/view/text.h"

#define TIMEOUT_MS 2000
#define PAGE "page_size=100"
#define MAX_ARGS 64

/* The command line and what is known about it. */
struct line {
    const struct verb *verb;
    const char *const *words;
    size_t n;            /* words[n - 1] is the current one */
    const char *current; /* what is typed of it, or of its value */
    const char *before;  /* "--state=" when the word holds the option too; otherwise "" */
    const char *args[MAX_ARGS];
    size_t n_args;
    struct session session; /* options of the connection, as typed so far */
    struct str *b;
};

static void add_part(struct str *b, const char *s, size_t len)
{
    text_escape(b, s, len, TEXT_ONE_LINE);
}

/* Add a candidate if it begins with what is typed. */
static void add(const struct line *l, const char *word, size_t len, const char *end,
                const char *description)
{
    size_t typed = strlen(l->current);
    size_t end_len = strlen(end);
    bool fits = typed <= len ? memcmp(word, l->current, typed) == 0
                             : typed <= len + end_len && memcmp(word, l->current, len) == 0 &&
                                   memcmp(end, l->current + len, typed - len) == 0;
    if (!fits)
        return;
    add_part(l->b, l->before, strlen(l->before));
    add_part(l->b, word, len);
    str_puts(l->b, end);
    if (description) {
        str_putc(l->b, '\t');
        add_part(l->b, description, strlen(description));
    }
    str_putc(l->b, '\n');
}

/* Names from the server. */

static json_t *get_items(struct line *l, const char *path, const char *query)
{
    const struct client_opts opts = {.timeout_ms = TIMEOUT_MS};
    JSON_AUTO answer = NULL;
    if (!l->session.client && session_connect(&l->session, NULL) < 0)
        return NULL;
    if (client_call(l->session.client, "GET", path, query, NULL, &opts, &answer, NULL, NULL) < 0)
        return NULL;
    return json_incref(json_object_get(answer, "items"));
}

/* Add the field `name` of each item, with another field as description. */
static void add_names(struct line *l, const char *path, const char *name, const char *end,
                      const char *description)
{
    JSON_AUTO items = get_items(l, path, PAGE);
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        const char *s = json_string_value(json_object_get(item, name));
        if (s)
            add(l, s, strlen(s), end, json_string_value(json_object_get(item, description)));
    }
}

/* SWEEP/NUMBER: first the sweep with its slash, then the trials of this sweep. */
static void add_trials(struct line *l)
{
    const char *slash = strchr(l->current, '/');
    if (!slash) {
        add_names(l, "/v1/sweeps", "id", "/", "state");
        return;
    }
    AS_AUTO(str_done) struct str sweep = {0}, path = {0};
    str_add(&sweep, l->current, (size_t)(slash - l->current));
    str_puts(&path, "/v1/sweeps");
    client_path_add(&path, str_cstr(&sweep));
    str_puts(&path, "/trials");
    JSON_AUTO items = path.failed || sweep.failed ? NULL : get_items(l, path.s, PAGE);
    size_t i;
    json_t *trial;
    json_array_foreach(items, i, trial)
    {
        AS_AUTO(str_done) struct str name = {0};
        str_printf(&name, "%s/%" JSON_INTEGER_FORMAT, str_cstr(&sweep),
                   json_integer_value(json_object_get(trial, "number")));
        add(l, str_cstr(&name), name.len, "", json_string_value(json_object_get(trial, "state")));
    }
}

static void add_choices(const struct line *l, const char *choices)
{
    for (const char *c = choices; c; c = strchr(c, '|'), c = c ? c + 1 : NULL)
        if (*c != '*') /* OPT_OR_ANOTHER */
            add(l, c, strcspn(c, "|"), "", NULL);
}

static void add_profiles(const struct line *l)
{
    JSON_AUTO names = NULL;
    size_t i;
    json_t *name;
    (void)!profiles_names(&names, NULL);
    json_array_foreach(names, i, name)
        add(l, json_string_value(name), json_string_length(name), "", NULL);
}

static void add_verbs(const struct line *l)
{
    for (size_t i = 0; verbs_at(i); i++)
        add(l, verbs_at(i)->name, strlen(verbs_at(i)->name), "", verbs_at(i)->summary);
}

static void add_argument(struct line *l, const struct synopsis_word *w)
{
    char kind[32];
    if (synopsis_is_literal(w)) {
        add(l, w->s, w->len, "", NULL);
        return;
    }
    (void)snprintf(kind, sizeof kind, "%.*s", (int)w->len, w->s);
    bool is_new = l->n_args > 0 && as_streq(l->args[0], "add"); /* NAME of a new data set */
    if (as_streq(kind, "SWEEP"))
        add_names(l, "/v1/sweeps", "id", "", "state");
    else if (as_streq(kind, "SWEEP/NUMBER"))
        add_trials(l);
    else if (as_streq(kind, "NAME") && !is_new)
        add_names(l, "/v1/datasets", "name", "", "task");
    else if (as_streq(kind, "MODEL"))
        add_names(l, "/v1/models", "name", "", "");
    else if (as_streq(kind, "ID"))
        add_names(l, "/v1/tokens", "id", "", "name");
    else if (as_streq(kind, "ROLE"))
        add_choices(l, "viewer|user|runner|admin");
    else if (as_streq(kind, "VERB"))
        add_verbs(l);
}

/* The command line. */

static const struct opt *find_option(const struct opt *table, const char *word)
{
    size_t len = strcspn(word, "=");
    for (const struct opt *o = table; o && o->name; o++) {
        bool is_long = as_starts_with(word, "--") && strlen(o->name) == len - 2 &&
                       memcmp(o->name, word + 2, len - 2) == 0;
        if (is_long || (o->letter && word[0] == '-' && word[1] == o->letter && !word[2]))
            return o;
    }
    return NULL;
}

/* Keep the value of an option that chooses the server. */
static void keep_option(struct line *l, const struct opt *o, const char *value)
{
    const struct {
        const char *name, **ret;
    } kept[] = {{"server", &l->session.server},
                {"profile", &l->session.profile},
                {"token", &l->session.token},
                {"token-file", &l->session.token_file}};
    for (size_t i = 0; i < AS_ARRAY_LEN(kept); i++)
        if (as_streq(o->name, kept[i].name))
            *kept[i].ret = value;
}

/* Read the words before the current one. Returns the option whose value the current one is. */
static const struct opt *read_line(struct line *l, const struct opt *table)
{
    for (size_t i = 1; i + 1 < l->n; i++) {
        const char *word = l->words[i], *equals = strchr(word, '=');
        const struct opt *o = word[0] == '-' ? find_option(table, word) : NULL;
        if (o && o->kind != OPT_FLAG && !equals && i + 2 == l->n)
            return o;
        if (o && o->kind != OPT_FLAG)
            keep_option(l, o, equals ? equals + 1 : l->words[++i]);
        else if (word[0] != '-' && l->n_args < MAX_ARGS)
            l->args[l->n_args++] = word;
    }
    return NULL;
}

static void add_option_value(struct line *l, const struct opt *o)
{
    if (o->choices)
        add_choices(l, o->choices);
    else if (as_streq(o->name, "profile"))
        add_profiles(l);
}

static void add_options(const struct line *l, const struct opt *table)
{
    for (const struct opt *o = table; o && o->name; o++) {
        AS_AUTO(str_done) struct str name = {0};
        str_printf(&name, "--%s", o->name);
        add(l, str_cstr(&name), name.len, "", o->help);
    }
}

static void complete(void *arg, const struct verb *v, const struct opt *table)
{
    struct line *l = arg;
    struct synopsis_words next;
    AS_AUTO(str_done) struct str before = {0};
    const struct opt *o = read_line(l, table);
    const char *equals = strchr(l->current, '=');
    if (o) {
        add_option_value(l, o);
    } else if (l->current[0] == '-' && equals && (o = find_option(table, l->current))) {
        str_add(&before, l->current, (size_t)(equals + 1 - l->current));
        l->before = str_cstr(&before);
        l->current = equals + 1;
        add_option_value(l, o);
        l->before = "";
    } else if (l->current[0] == '-') {
        add_options(l, table);
    } else {
        synopsis_next(v->synopsis, l->args, l->n_args, &next);
        for (size_t i = 0; i < next.n; i++)
            add_argument(l, &next.words[i]);
    }
}

/* The words with the verb before the options that stand before it, in `ret`. False: there are too
 * many, or an option lacks its value. */
static bool verb_first(const char *const *words, size_t n, const char *ret[MAX_ARGS + 1])
{
    if (n > MAX_ARGS)
        return false;
    ret[0] = "assay";
    memcpy(ret + 1, words, n * sizeof *words);
    /* the current word is being typed: it is neither the verb nor a value yet */
    return session_verb_first((int)n, (char **)ret, NULL) == AS_OK;
}

void completion_words(const char *const *words, size_t n, struct str *b)
{
    struct line l = {.n = n, .before = "", .b = b};
    const char *ordered[MAX_ARGS + 1];
    if (n == 0 || !verb_first(words, n, ordered))
        return;
    say_set_quiet(true);
    l.words = ordered + 1;
    l.current = words[n - 1];
    l.verb = verbs_find(ordered[1]);
    if (n == 1 || ordered[1][0] == '-') /* options alone */
        add_verbs(&l);
    else if (l.verb)
        (void)verbs_read_table(l.verb, complete, &l);
    session_done(&l.session);
}
