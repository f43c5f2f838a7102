#include "cli/session/meant.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/session/request.h"
#include "cli/session/synopsis.h"
#include "cli/view/say.h"

#define NEWEST 500
#define NAME_SIZE 128

/* What the words of a synopsis name. */
static const struct kind {
    const char *word, *path, *key, *what;
} kinds[] = {
    {"SWEEP", "/v1/sweeps", "id", "sweep"},
    {"SWEEP/NUMBER", "/v1/sweeps", "id", "sweep"},
    {"MODEL", "/v1/models", "name", "model"},
    {"NAME", "/v1/datasets", "name", "data set"},
};

static const struct kind *kind_of(const struct synopsis_word *w)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(kinds); i++)
        if (strlen(kinds[i].word) == w->len && memcmp(kinds[i].word, w->s, w->len) == 0)
            return &kinds[i];
    return NULL;
}

/* The name in SWEEP/NUMBER or NAME@VERSION. */
static void name_of(const char *arg, char name[NAME_SIZE])
{
    (void)snprintf(name, NAME_SIZE, "%.*s", (int)strcspn(arg, "/@"), arg);
}

/* Is the name there? If not, *ret is the nearest one, or NULL; a view of items. */
static bool is_there(const json_t *items, const char *key, const char *name, const char **ret)
{
    struct as_nearest near = {.given = name};
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)items, i, item)
    {
        const char *other = json_string_value(json_object_get(item, key));
        if (as_streq(other, name))
            return true;
        if (other)
            as_nearest_offer(&near, other);
    }
    *ret = near.name;
    return false;
}

static void look_up(const struct kind *k, const char *arg, struct client *c)
{
    char name[NAME_SIZE];
    const char *near = NULL;
    JSON_AUTO items = NULL;
    name_of(arg, name);
    if (request_list(c, k->path, NULL, NEWEST, &items, NULL) == AS_OK &&
        !is_there(items, k->key, name, &near) && near)
        say("There is a %s '%s'; was it meant?", k->what, near);
}

void meant_say(const char *synopsis, const char *const *args, size_t n_args, struct client *c)
{
    for (size_t i = 0; i < n_args; i++) {
        struct synopsis_words next;
        const struct kind *k = NULL;
        synopsis_next(synopsis, args, i, &next);
        for (size_t w = 0; w < next.n && !k; w++)
            k = kind_of(&next.words[w]);
        if (k)
            look_up(k, args[i], c);
    }
}
