#include "trial-runner/delivery/batch_request.h"

#include <stdio.h>
#include <string.h>

#include "api/client/client.h"
#include "base/json.h"

static const char *const lists[BATCH_KINDS] = {"measurements", "ends"};

void batch_part_write(const struct attempt_id *id, int64_t world_epoch, const json_t *body,
                      struct str *out)
{
    JSON_AUTO head = attempt_id_json(id);
    if (head && id->seat != ATTEMPT_NO_SEAT &&
        json_object_set_new(head, "world_epoch", json_integer((json_int_t)world_epoch)) < 0)
        out->failed = true;
    AS_AUTO(as_freep) char *first = head ? json_format_ordered(head) : NULL;
    AS_AUTO(as_freep) char *rest = json_format_ordered(body);
    if (!first || !rest) {
        out->failed = true;
        return;
    }
    str_add(out, first, strlen(first) - 1); /* without its } */
    str_putc(out, ',');
    str_puts(out, rest + 1); /* without its { */
}

void batch_write(const struct batch_text *parts, size_t n, struct str *out)
{
    for (size_t k = 0; k < BATCH_KINDS; k++) {
        size_t written = 0;
        str_printf(out, "%s\"%s\":[", k == 0 ? "{" : "],", lists[k]);
        for (size_t i = 0; i < n; i++) {
            if ((size_t)parts[i].kind != k)
                continue;
            if (written++)
                str_putc(out, ',');
            str_add(out, parts[i].s, parts[i].len);
        }
    }
    str_puts(out, "]}");
}

/* An error about the request becomes one about the part: the place of the part, /ends/3, is taken
 * from its pointer and from the begin of its message. */
static void take_place_away(batch_kind kind, size_t index, struct as_err *err)
{
    char at[48];
    int n = snprintf(at, sizeof at, "/%s/%zu", lists[kind], index);
    struct as_err given = *err;
    if (!as_starts_with(given.pointer, at))
        return;
    const char *msg = as_starts_with(given.msg, at) ? given.msg + n : given.msg;
    while (msg != given.msg && (*msg == ':' || *msg == ' ')) /* it was about the whole part */
        msg++;
    as_err_set(err, given.code, given.pointer + n, "%s", msg);
}

void batch_answer_read(const json_t *answer, batch_kind kind, size_t index,
                       struct batch_answer *ret)
{
    const json_t *one = json_array_get(json_object_get(answer, lists[kind]), index);
    json_int_t status = json_integer_value(json_object_get(one, "status"));
    *ret = (struct batch_answer){.body = one};
    if (status >= 200 && status < 300)
        return;
    ret->body = NULL;
    if (status < 400 || status > 599) {
        ret->st = as_fail(&ret->err, AS_E_INTERNAL, "the server's answer has no status for /%s/%zu",
                          lists[kind], index);
        return;
    }
    const char *code;
    ret->st = client_problem_read((int)status, json_object_get(one, "problem"), &code, &ret->err);
    (void)snprintf(ret->code, sizeof ret->code, "%s", code);
    take_place_away(kind, index, &ret->err);
}
