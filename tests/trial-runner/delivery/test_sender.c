/* The sender of a runner, with a server that answers late, in part, or not at all. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/api/client/http_server.h"
#include "tests/support/check_main.h"
#include "trial-runner/delivery/sender.h"

#define CALLERS 300

/* What the server has seen and how it answers; under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
    bool is_held;      /* do not answer */
    int status;        /* of the whole request; 0: each part is answered */
    int failures;      /* so often the answer is 503, then each part is answered */
    int part_failures; /* so often the answer to the part of trial 1 is 503 */
    int requests, now, parts, most_parts;
    size_t most_bytes;
    bool is_nonsense; /* the answer is no answer */
    struct str order; /* the numbers of the trials of all parts that were answered */
} seen;

static struct http_server *server;
static struct sender *sender;
static struct client *owner;
static struct options options;

static json_t *answer_list(const json_t *list)
{
    size_t i;
    json_t *part, *answers = json_array();
    json_array_foreach(list, i, part)
    {
        int number = (int)json_integer_value(json_object_get(part, "number"));
        bool fails = number == 1 && seen.part_failures > 0;
        seen.part_failures -= fails;
        if (!fails)
            str_printf(&seen.order, "%d ", number);
        json_array_append_new(answers,
                              fails ? json_pack("{s:i,s:{s:s,s:s}}", "status", 503, "problem",
                                                "code", "unavailable", "detail", "not now")
                                    : json_pack("{s:i,s:i}", "status", 200, "recorded", number));
    }
    return answers;
}

static void answer_parts(const struct server_request *q, struct server_answer *a)
{
    JSON_AUTO body = json_loadb(q->body, q->body_len, 0, NULL);
    ck_assert_ptr_nonnull(body);
    const json_t *reports = json_object_get(body, "measurements");
    const json_t *ends = json_object_get(body, "ends");
    int n = (int)(json_array_size(reports) + json_array_size(ends));
    seen.parts += n;
    seen.most_parts = n > seen.most_parts ? n : seen.most_parts;
    seen.most_bytes = q->body_len > seen.most_bytes ? q->body_len : seen.most_bytes;
    json_t *said = answer_list(reports);
    JSON_AUTO answer =
        json_pack("{s:o,s:o,s:n}", "measurements", said, "ends", answer_list(ends), "claim");
    AS_AUTO(as_freep) char *text = json_format(answer);
    answer_json(a, 200, "%s", text);
}

static void handle(void *arg, const struct server_request *q, struct server_answer *a)
{
    (void)arg;
    ck_assert_str_eq(q->path, "/v1/runners/r/batch");
    pthread_mutex_lock(&lock);
    seen.requests++;
    ck_assert_int_eq(++seen.now, 1); /* one request at a time */
    pthread_cond_broadcast(&changed);
    while (seen.is_held)
        pthread_cond_wait(&changed, &lock);
    if (seen.failures > 0) {
        seen.failures--;
        answer_problem(a, 503, "unavailable", "down");
    } else if (seen.status) {
        answer_problem(a, seen.status, "some", "for all");
    } else if (seen.is_nonsense) {
        answer_json(a, 200, "[1,2]");
    } else {
        answer_parts(q, a);
    }
    seen.now--;
    pthread_mutex_unlock(&lock);
}

static void setup(void)
{
    struct as_err err;
    memset(&seen, 0, sizeof seen);
    server = http_server_start(0, handle, NULL);
    options =
        (struct options){.server = as_strdup(http_server_url(server)), .name = as_strdup("r")};
    ck_ok(client_create(options.server, NULL, "test", &owner, &err), err);
    ck_ok(sender_create(&options, &sender, &err), err);
}

static void hold(bool is_held)
{
    pthread_mutex_lock(&lock);
    seen.is_held = is_held;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await_requests(int n)
{
    pthread_mutex_lock(&lock);
    while (seen.requests < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void teardown(void)
{
    hold(false);
    sender_free(sender);
    client_free(owner);
    http_server_stop(server);
    str_done(&seen.order);
    free(options.server);
    free(options.name);
}

/* One call in a thread of its own. */
struct caller {
    pthread_t thread;
    int number;
    bool is_end;
    int64_t until_ns;
    const char *note; /* to make the part larger; NULL: none */
    as_status st;
    struct as_err err;
    struct sender_answer answer;
};

static void *call(void *arg)
{
    struct caller *c = arg;
    const struct attempt_id id = {
        .sweep = "s", .number = c->number, .attempt = 1, .seat = ATTEMPT_NO_SEAT};
    JSON_AUTO body =
        c->is_end ? json_pack("{s:s}", "outcome", "failed")
                  : json_pack("{s:[],s:{s:s}}", "items", "notes", "n", c->note ? c->note : "");
    const struct sender_part part = {.kind = c->is_end ? BATCH_END : BATCH_MEASUREMENTS,
                                     .id = &id,
                                     .body = body,
                                     .until_ns = c->until_ns,
                                     .owner = owner};
    c->st = sender_send(sender, &part, &c->answer, &c->err);
    return NULL;
}

static void begin(struct caller *c, int number)
{
    c->number = number;
    ck_assert_int_eq(pthread_create(&c->thread, NULL, call, c), 0);
}

static void finish(struct caller *c)
{
    ck_assert_int_eq(pthread_join(c->thread, NULL), 0);
}

/* Its answer is its own. */
static void check_answered(struct caller *c)
{
    ck_ok(c->st, c->err);
    ck_assert(!c->answer.alone);
    ck_assert_int_eq(json_integer_value(json_object_get(c->answer.body, "recorded")), c->number);
    json_decref(c->answer.body);
}

/* While one request is on its way, the others come together, within the limits of a request. They
 * are sent again until they did: when a thread gets to its call is not known. */
START_TEST(parts_come_together_under_load)
{
    static struct caller callers[CALLERS];
    static char note[8000];
    memset(note, 'x', sizeof note - 1);
    for (int round = 0; seen.most_parts < 100; round++) {
        ck_assert_int_lt(round, 100);
        hold(true);
        for (int i = 0; i < CALLERS; i++) {
            callers[i] = (struct caller){.is_end = i % 3 == 0, .note = note};
            begin(&callers[i], i);
        }
        await_requests(1);
        hold(false);
        for (int i = 0; i < CALLERS; i++) {
            finish(&callers[i]);
            check_answered(&callers[i]);
        }
    }
    ck_assert_int_le(seen.most_parts, BATCH_PARTS_MAX);
    ck_assert_uint_le(seen.most_bytes, BATCH_BYTES_MAX);
    ck_assert_int_eq(seen.parts % CALLERS, 0); /* none twice */
}
END_TEST

/* A single part does not wait for others. */
START_TEST(a_part_goes_at_once)
{
    for (int i = 0; i < 3; i++) {
        struct caller c = {.is_end = i == 2};
        begin(&c, i);
        finish(&c);
        check_answered(&c);
        ck_assert_int_eq(seen.requests, i + 1);
    }
    ck_assert_str_eq(seen.order.s, "0 1 2 ");
}
END_TEST

START_TEST(a_server_that_is_down_is_asked_again)
{
    struct caller c = {0}, brief = {.until_ns = INT64_MAX};
    seen.failures = 2;
    begin(&c, 5);
    finish(&c);
    check_answered(&c);
    ck_assert_int_eq(seen.requests, 3);
    seen.failures = 1;
    begin(&brief, 6); /* one try */
    finish(&brief);
    ck_assert_int_eq(brief.st, AS_E_UNAVAILABLE);
    ck_assert_int_eq(seen.requests, 4);
}
END_TEST

/* The part of trial 1 is not taken for now; that of trial 2 does not wait for it. */
START_TEST(a_part_that_is_postponed_delays_no_other)
{
    struct caller one = {0}, two = {0};
    seen.part_failures = 3;
    begin(&one, 1);
    await_requests(1);
    begin(&two, 2);
    finish(&two);
    check_answered(&two);
    finish(&one);
    check_answered(&one);
    ck_assert_int_eq(seen.parts, 5);
}
END_TEST

/* Who gives up gets no answer. The part that is on its way is abandoned, and the repeat of the same
 * attempt comes after it. */
START_TEST(callers_give_up)
{
    struct caller sent = {0}, queued = {0}, repeat = {.until_ns = INT64_MAX};
    hold(true);
    sent.until_ns = clock_mono_ns() + 50 * NS_PER_MS;
    begin(&sent, 1);
    await_requests(1);
    finish(&sent);
    ck_assert_int_eq(sent.st, AS_E_UNAVAILABLE);
    queued.until_ns = clock_mono_ns() + 50 * NS_PER_MS;
    begin(&queued, 2);
    finish(&queued);
    ck_assert_int_eq(queued.st, AS_E_UNAVAILABLE);
    begin(&repeat, 3);
    hold(false);
    finish(&repeat);
    check_answered(&repeat);
    ck_assert_str_eq(seen.order.s, "1 3 ");
}
END_TEST

START_TEST(an_interrupt_ends_the_calls_of_its_owner)
{
    struct caller sent = {0}, queued = {0};
    hold(true);
    begin(&sent, 1);
    await_requests(1);
    begin(&queued, 2);
    client_interrupt(owner);
    sender_wake(sender);
    finish(&sent);
    finish(&queued);
    ck_assert(sent.st == AS_E_UNAVAILABLE && queued.st == AS_E_UNAVAILABLE);
}
END_TEST

/* What the server does not take as a whole goes by single requests; where it has no such route, the
 * next parts go alone without a question. */
START_TEST(a_refused_request_goes_part_by_part)
{
    static const int statuses[] = {400, 413, 422, 500, 405, 404};
    for (size_t i = 0; i < AS_ARRAY_LEN(statuses); i++) {
        struct caller c = {0};
        seen.status = statuses[i];
        begin(&c, 1);
        finish(&c);
        ck_assert(c.st == AS_OK && c.answer.alone);
        bool was_unknown = i > 0 && statuses[i - 1] == 405;
        ck_assert_int_eq(seen.requests, was_unknown ? (int)i : (int)i + 1);
    }
}
END_TEST

START_TEST(a_refused_token_is_the_callers_matter)
{
    struct caller c = {0};
    seen.status = 401;
    begin(&c, 1);
    finish(&c);
    ck_assert_int_eq(c.st, AS_E_DENIED);
    ck_assert(!c.answer.alone);
    seen.status = 0;
    seen.is_nonsense = true;
    struct caller other = {0};
    begin(&other, 2);
    finish(&other);
    ck_assert_int_eq(other.st, AS_E_INTERNAL);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("delivery_sender");
    TCase *tc = tcase_create("sender");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, parts_come_together_under_load);
    tcase_add_test(tc, a_part_goes_at_once);
    tcase_add_test(tc, a_server_that_is_down_is_asked_again);
    tcase_add_test(tc, a_part_that_is_postponed_delays_no_other);
    tcase_add_test(tc, callers_give_up);
    tcase_add_test(tc, an_interrupt_ends_the_calls_of_its_owner);
    tcase_add_test(tc, a_refused_request_goes_part_by_part);
    tcase_add_test(tc, a_refused_token_is_the_callers_matter);
    suite_add_tcase(s, tc);
    return s;
}
