/* The object is fetched before the question, so the question has its counts and a name that does
 * not exist is an error before anybody answers. Without a terminal nothing is asked: scripts that
 * delete work without --yes (decision 9003). */
#include "cli/session/deletion.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/session/request.h"
#include "cli/view/say.h"
#include "cli/view/text.h"

bool deletion_answer_is_yes(const char *line)
{
    while (isspace((unsigned char)*line))
        line++;
    size_t len = strlen(line);
    while (len > 0 && isspace((unsigned char)line[len - 1]))
        len--;
    return (len == 1 && strncasecmp(line, "y", 1) == 0) ||
           (len == 3 && strncasecmp(line, "yes", 3) == 0);
}

/* Read a line from the terminal; the end of input and a signal are no answer. */
static bool read_yes(void)
{
    char line[64] = "";
    size_t n = 0;
    while (n + 1 < sizeof line) {
        ssize_t got = read(STDIN_FILENO, line + n, 1);
        if (got <= 0 || line[n] == '\n')
            break;
        n++;
    }
    line[n] = '\0';
    return !interrupt_seen() && deletion_answer_is_yes(line);
}

static as_status find_object(const struct session *s, const struct deletion *d, json_t **ret,
                             struct as_err *err)
{
    if (!d->is_in_list)
        return request_one(s->client, d->path, d->id, ret, err);
    JSON_AUTO items = NULL;
    as_status st = request_list(s->client, d->path, NULL, 0, &items, err);
    if (st < 0)
        return st;
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        const char *id = json_string_value(json_object_get(item, "id"));
        if (!id)
            id = json_string_value(json_object_get(item, "name"));
        if (as_streq(id, d->id)) {
            *ret = json_incref(item);
            return AS_OK;
        }
    }
    return as_fail(err, AS_E_NOT_FOUND, "there is no '%.80s'", d->id);
}

/* Ask on the terminal. *ret: go on. */
static as_status ask(const struct session *s, const struct deletion *d, bool *ret,
                     struct as_err *err)
{
    JSON_AUTO object = NULL;
    AS_AUTO(str_done) struct str question = {0}, line = {0};
    as_status st = find_object(s, d, &object, err);
    if (st < 0)
        return st;
    if (!d->ask(object, d->id, &question)) {
        *ret = true;
        return AS_OK;
    }
    text_escape(&line, str_cstr(&question), question.len, TEXT_ONE_LINE);
    st = str_check(&line, err);
    if (st < 0)
        return st;
    (void)fprintf(stderr, "%s [y/N] ", line.s);
    (void)fflush(stderr);
    *ret = read_yes();
    return AS_OK;
}

static as_status delete_and_print(const struct session *s, const struct deletion *d,
                                  struct as_err *err)
{
    as_status st = request_delete(s->client, d->path, d->id, err);
    if (st < 0)
        return st;
    if (!s->json) {
        say("%s is %s", d->id, d->done);
        return AS_OK;
    }
    JSON_AUTO answer = json_pack("{s:s}", d->done, d->id);
    return session_print_json(answer, err);
}

int deletion_run(const struct session *s, const struct deletion *d)
{
    struct as_err err = {0};
    bool go_on = true;
    as_status st = AS_OK;
    if (!d->yes && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        st = ask(s, d, &go_on, &err);
    if (st == AS_OK && !go_on) {
        say("%s is not %s", d->id, d->done);
        return exit_after_output(s->verb->name, EXIT_CANCELLED);
    }
    if (st == AS_OK)
        st = delete_and_print(s, d, &err);
    return session_end(s, st, &err);
}
