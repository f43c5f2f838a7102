/* assay logs SWEEP/NUMBER [--follow | --whole]: prints the stored output of a trial.
 *
 * The server stores only the last bytes of the output while an attempt runs, and when it has ended
 * all of it as a file, if that is more. While following, each answer contains that
 * whole tail again; the overlap with the previous answer determines the new part. If more output
 * than the tail came between two answers, the part between them is lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/session/fetch.h"
#include "cli/session/interrupt.h"
#include "cli/view/log_tail.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/say.h"
#include "cli/view/text.h"

#define FOLLOW_MS 700

struct logs {
    struct session session;
    struct trial_ref ref;
    int64_t attempt; /* 0: the latest */
    int64_t seat;    /* --whole: of this rank; below 0: of the first that there is */
    bool follow, whole;
    bool raw;
    json_t *before; /* --follow: the previous answer, already printed; owned */
};

static as_status print_text(const struct logs *l, const char *text, size_t len, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    if (l->raw)
        str_add(&b, text, len);
    else
        text_escape(&b, text, len, TEXT_KEEP_LINES);
    as_status st = str_check(&b, err);
    if (st < 0)
        return st;
    if (fwrite(str_cstr(&b), 1, b.len, stdout) != b.len || fflush(stdout) != 0)
        return as_fail(err, AS_E_IO, "cannot write the output");
    return AS_OK;
}

static as_status get_log(const struct logs *l, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str query = {0};
    if (l->attempt > 0)
        client_query_add_i64(&query, "attempt", l->attempt);
    as_status st = str_check(&query, err);
    if (st < 0)
        return st;
    st = request_get(l->session.client, &l->ref, "log", query.s, ret, err);
    if (st < 0)
        return st;
    if (!json_is_string(json_object_get(*ret, "text"))) {
        json_decref(*ret);
        *ret = NULL;
        return as_fail(err, AS_E_INTERNAL, "the server returned a log without text");
    }
    return AS_OK;
}

static as_status print_once(const struct logs *l, struct as_err *err)
{
    JSON_AUTO log = NULL;
    as_status st = get_log(l, &log, err);
    if (st < 0)
        return st;
    if (l->session.json)
        return session_print_json(log, err);
    if (json_is_true(json_object_get(log, "truncated")))
        say("(the beginning was dropped)");
    const json_t *text = json_object_get(log, "text");
    st = print_text(l, json_string_value(text), json_string_length(text), err);
    if (st < 0)
        return st;
    size_t len = json_string_length(text);
    if (l->session.terminal.tty && len > 0 && json_string_value(text)[len - 1] != '\n')
        (void)putchar('\n');
    return AS_OK;
}

/* What the path of a file of output says: attempt-2/output.log, attempt-2/seat-0/output.log. */
static bool read_path(const char *path, int64_t *ret_attempt, int64_t *ret_seat)
{
    char *end = NULL;
    *ret_seat = -1;
    if (!path || !as_starts_with(path, "attempt-"))
        return false;
    *ret_attempt = strtoll(path + strlen("attempt-"), &end, 10);
    if (as_starts_with(end, "/seat-"))
        *ret_seat = strtoll(end + strlen("/seat-"), NULL, 10);
    return *end == '/';
}

/* The file with all output of the attempt, and of the rank that is asked for; NULL: none. */
static const json_t *find_whole(const struct logs *l, const json_t *items, int64_t attempt)
{
    size_t i;
    const json_t *file, *found = NULL;
    int64_t of = 0, seat = 0, least = INT64_MAX;
    json_array_foreach((json_t *)items, i, file)
    {
        if (!read_path(json_string_value(json_object_get(file, "path")), &of, &seat) ||
            of != attempt || (l->seat >= 0 && seat != l->seat) || seat >= least)
            continue;
        found = file;
        least = seat;
    }
    return found;
}

/* Of an attempt that printed no more than the server's end of the output, that is all. */
static as_status print_whole(const struct logs *l, struct as_err *err)
{
    JSON_AUTO log = NULL;
    JSON_AUTO list = NULL;
    AS_AUTO(as_freep) char *text = NULL;
    as_status st = get_log(l, &log, err);
    if (st == AS_OK)
        st = request_get(l->session.client, &l->ref, "artifacts", "kind=log", &list, err);
    if (st < 0)
        return st;
    int64_t attempt = l->attempt ? l->attempt : json_integer_value(json_object_get(log, "attempt"));
    const json_t *file = find_whole(l, json_object_get(list, "items"), attempt);
    if (!file && l->seat >= 0)
        return as_fail(err, AS_E_NOT_FOUND,
                       "nothing is kept of what the rank in seat %" PRId64 " of attempt %" PRId64
                       " printed, or not yet",
                       l->seat, attempt);
    if (!file)
        return print_once(l, err);
    const struct fetch f = {.sha256 = json_string_value(json_object_get(file, "sha256")),
                            .size = json_integer_value(json_object_get(file, "size")),
                            .name = json_string_value(json_object_get(file, "path"))};
    st = fetch_bytes(&l->session, &f, &text, err);
    return st < 0 ? st : print_text(l, text, (size_t)f.size, err);
}

/* Print the part of `log` that is new since the previous answer. */
static as_status print_news(struct logs *l, json_t *log, struct as_err *err)
{
    const json_t *text = json_object_get(log, "text"), *old = json_object_get(l->before, "text");
    int64_t attempt = json_integer_value(json_object_get(log, "attempt"));
    size_t seen = 0;
    if (l->before && attempt != json_integer_value(json_object_get(l->before, "attempt")))
        say("(attempt %" PRId64 ")", attempt);
    else if (l->before) {
        as_status st =
            log_tail_overlap(json_string_value(old), json_string_length(old),
                             json_string_value(text), json_string_length(text), &seen, err);
        if (st < 0)
            return st;
    }
    const char *news = json_string_value(text) + seen;
    size_t len = json_string_length(text) - seen;
    json_decref(l->before);
    l->before = json_incref(log);
    if (len == 0)
        return AS_OK;
    if (!l->session.json)
        return print_text(l, news, len, err);
    JSON_AUTO line = json_pack("{s:I, s:s%}", "attempt", (json_int_t)attempt, "text", news, len);
    return session_print_json_line(line, err);
}

static bool is_ended(const json_t *trial)
{
    const char *s = json_string_value(json_object_get(trial, "state"));
    return as_streq(s, "completed") || as_streq(s, "pruned") || as_streq(s, "failed") ||
           as_streq(s, "cancelled");
}

static as_status follow_log(struct logs *l, struct as_err *err)
{
    bool ended = false;
    bool away = false;
    do {
        JSON_AUTO trial = NULL;
        JSON_AUTO log = NULL;
        as_status st = request_get(l->session.client, &l->ref, NULL, NULL, &trial, err);
        if (st == AS_OK)
            st = get_log(l, &log, err);
        if (st == AS_E_UNAVAILABLE && !interrupt_seen()) { /* the server may restart */
            if (!away)
                say("(the server is not reachable; trying again)");
            away = true;
            continue;
        }
        if (st == AS_OK)
            st = print_news(l, log, err);
        if (st < 0)
            return st;
        away = false;
        ended = is_ended(trial); /* the state was read before the log, so the log is complete */
    } while (!ended && interrupt_sleep_ms(FOLLOW_MS));
    return AS_OK;
}

static as_status show_log(struct logs *l, const char *trial, struct as_err *err)
{
    as_status st = request_parse_ref(trial, false, &l->ref, err);
    if (st < 0)
        return st;
    if (l->whole && (l->follow || l->session.json))
        return as_fail(err, AS_E_USAGE, "--whole prints text, once: neither --follow nor --json");
    if (l->seat >= 0 && !l->whole)
        return as_fail(err, AS_E_USAGE, "--seat needs --whole");
    return l->follow ? follow_log(l, err) : l->whole ? print_whole(l, err) : print_once(l, err);
}

int cmd_logs(const struct verb *v, int argc, char **argv)
{
    struct logs l = {.seat = -1};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        {"follow", 'f', OPT_FLAG, &l.follow, NULL, NULL, "go on until the trial ends"},
        {"attempt", 0, OPT_I64, &l.attempt, "N", NULL, "of this attempt (the latest)"},
        {"whole", 0, OPT_FLAG, &l.whole, NULL, NULL,
         "all of the output, when the attempt has ended"},
        {"seat", 0, OPT_I64, &l.seat, "N", NULL, "--whole: of the rank in this seat of its gang"},
        {"raw", 0, OPT_FLAG, &l.raw, NULL, NULL, "do not escape control characters"},
        SESSION_OPTS(&l.session),
    };
    if (session_begin(&l.session, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&l.session, show_log(&l, argv[1], &err), &err);
    json_decref(l.before);
    session_done(&l.session);
    return code;
}
