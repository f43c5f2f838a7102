/* Every state of a seat with every event, written a second time as a picture; and the rules of
 * worlds. */
#include <string.h>

#include "base/mem.h"
#include "scheduler/sweep/seat_state.h"
#include "tests/support/check_main.h"

/* listen, join, leave, lose, end. S L R G X E: the new state (seated, listening, running, left,
 * lost, ended). . : a conflict. */
static const char *const picture[SEAT_STATES] = {
    [SEAT_SEATED] = "L.GXE", [SEAT_LISTENING] = "LRGXE", [SEAT_RUNNING] = "RRGXE",
    [SEAT_LEFT] = ".....",   [SEAT_LOST] = ".....",      [SEAT_ENDED] = ".....",
};
static const char letters[] = "SLRGXE";

START_TEST(every_state_and_event)
{
    for (int from = 0; from < SEAT_STATES; from++) {
        ck_assert_uint_eq(strlen(picture[from]), SEAT_EVENTS);
        ck_assert_int_eq(seat_state_is_live((seat_state)from), picture[from][SEAT_EV_LOSE] == 'X');
        for (int ev = 0; ev < SEAT_EVENTS; ev++) {
            seat_state to = SEAT_SEATED;
            struct as_err err = {0};
            as_status st = seat_step((seat_state)from, (seat_event)ev, &to, &err);
            if (picture[from][ev] == '.') {
                ck_fails(st, AS_E_CONFLICT, err, seat_state_format((seat_state)from));
                ck_assert_ptr_nonnull(strstr(err.msg, seat_event_format((seat_event)ev)));
                continue;
            }
            ck_ok(st, err);
            ck_assert_int_eq(letters[to], picture[from][ev]);
        }
    }
}
END_TEST

START_TEST(words_are_read_back)
{
    struct as_err err = {0};
    for (int i = 0; i < SEAT_STATES; i++) {
        seat_state s = SEAT_ENDED;
        ck_ok(seat_state_parse(seat_state_format((seat_state)i), &s, &err), err);
        ck_assert_int_eq(s, i);
    }
    for (int i = 0; i < GANG_STATES; i++) {
        gang_state s = GANG_OVER;
        ck_ok(gang_state_parse(gang_state_format((gang_state)i), &s, &err), err);
        ck_assert_int_eq(s, i);
    }
    seat_state s;
    gang_state g;
    ck_fails(seat_state_parse("sitting", &s, &err), AS_E_INVAL, err, "sitting");
    ck_fails(gang_state_parse("", &g, &err), AS_E_INVAL, err, "not the state");
}
END_TEST

/* Worlds of 4 ranks that need 2. */
static const struct {
    const char *what;
    struct gang_standing s;
    gang_verdict verdict;
} worlds[] = {
    {"ranks start", {.elastic = true, .live = 4, .listening = 3}, GANG_GOES_ON},
    {"the last one listens", {.elastic = true, .live = 4, .listening = 4}, GANG_NEW_EPOCH},
    {"one is lost before epoch 1",
     {.elastic = true, .live = 3, .listening = 3, .lost = 1},
     GANG_GOES_ON},
    {"all are lost before epoch 1", {.elastic = true, .lost = 4}, GANG_IS_LOST},
    {"all run",
     {.elastic = true,
      .epoch = 1,
      .live = 4,
      .listening = 4,
      .joined = 4,
      .has_joined = true,
      .members = 4},
     GANG_GOES_ON},
    {"a member is lost",
     {.elastic = true,
      .epoch = 1,
      .live = 3,
      .listening = 3,
      .joined = 3,
      .has_joined = true,
      .members = 3,
      .gone = 1,
      .lost = 1},
     GANG_NEW_EPOCH},
    {"a rank that was no member yet is lost",
     {.elastic = true,
      .epoch = 2,
      .live = 3,
      .listening = 3,
      .joined = 3,
      .has_joined = true,
      .members = 3,
      .lost = 1},
     GANG_GOES_ON},
    {"one listens in its place",
     {.elastic = true,
      .epoch = 2,
      .live = 4,
      .listening = 4,
      .joined = 3,
      .has_joined = true,
      .members = 3},
     GANG_NEW_EPOCH},
    {"one is seated in its place",
     {.elastic = true,
      .epoch = 2,
      .live = 4,
      .listening = 3,
      .joined = 3,
      .has_joined = true,
      .members = 3},
     GANG_GOES_ON},
    {"who has the state is gone, and another one listens",
     {.elastic = true,
      .epoch = 2,
      .live = 1,
      .listening = 1,
      .has_joined = true,
      .gone = 3,
      .lost = 3},
     GANG_IS_LOST},
    {"nobody had joined yet",
     {.elastic = true, .epoch = 1, .live = 3, .listening = 3, .members = 3, .gone = 1, .lost = 1},
     GANG_NEW_EPOCH},
    {"15 in a row may die",
     {.elastic = true,
      .epoch = 20,
      .live = 3,
      .listening = 3,
      .joined = 3,
      .has_joined = true,
      .members = 3,
      .gone = 1,
      .lost = 1,
      .idle_deaths = 15,
      .max_restarts = 3},
     GANG_NEW_EPOCH},
    {"16 may not",
     {.elastic = true,
      .epoch = 20,
      .live = 3,
      .listening = 3,
      .joined = 3,
      .has_joined = true,
      .members = 3,
      .gone = 1,
      .lost = 1,
      .idle_deaths = 16,
      .max_restarts = 3},
     GANG_KEEPS_DYING},
    {"fixed: ranks start", {.live = 4, .listening = 3}, GANG_GOES_ON},
    {"fixed: the last one listens", {.live = 4, .listening = 4}, GANG_NEW_EPOCH},
    {"fixed: one is lost before epoch 1", {.live = 3, .listening = 3, .lost = 1}, GANG_IS_LOST},
    {"fixed: one is lost",
     {.epoch = 1, .live = 3, .listening = 3, .members = 3, .gone = 1, .lost = 1},
     GANG_IS_LOST},
    {"fixed: three completed",
     {.epoch = 1, .live = 1, .listening = 1, .members = 1, .completed = 3},
     GANG_GOES_ON},
    {"fixed: all completed", {.epoch = 1, .completed = 4}, GANG_COMPLETES},
};

START_TEST(worlds_follow_rules)
{
    struct gang_standing s = worlds[_i].s;
    s.ranks = 4;
    s.min_ranks = 2;
    ck_assert_msg(gang_verdict_of(&s) == worlds[_i].verdict, "%s: %d", worlds[_i].what,
                  (int)gang_verdict_of(&s));
}
END_TEST

START_TEST(pauses_double)
{
    static const int64_t expected[] = {0, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    for (size_t i = 0; i < AS_ARRAY_LEN(expected); i++)
        ck_assert_int_eq(gang_pause_ms((int64_t)i), expected[i]);
    ck_assert_int_eq(gang_pause_ms(INT64_MAX), 60000);
    ck_assert_int_eq(gang_deaths_max(4, 3), 15);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("scheduler/sweep/seat_state");
    TCase *t = tcase_create("rules");
    tcase_add_test(t, every_state_and_event);
    tcase_add_test(t, words_are_read_back);
    tcase_add_loop_test(t, worlds_follow_rules, 0, (int)AS_ARRAY_LEN(worlds));
    tcase_add_test(t, pauses_double);
    suite_add_tcase(suite, t);
    return suite;
}
