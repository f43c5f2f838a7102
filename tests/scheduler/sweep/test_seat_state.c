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

#define ELASTIC true
#define FIXED false
#define NONE (-1) /* no rank has joined in this attempt */

/* Worlds of 4 ranks that need 2; where ranks have died in a row, 3 restarts are allowed. */
static const struct {
    const char *what;
    bool elastic;
    int epoch, live, listening, joined, members, gone, lost, completed, idle_deaths;
    gang_verdict verdict;
} worlds[] = {
    /* clang-format off */
    {"ranks start",                                     ELASTIC,  0,   4,   3, NONE,   0,   0,   0,   0,   0, GANG_GOES_ON},
    {"the last one listens",                            ELASTIC,  0,   4,   4, NONE,   0,   0,   0,   0,   0, GANG_NEW_EPOCH},
    {"one is lost before epoch 1",                      ELASTIC,  0,   3,   3, NONE,   0,   0,   1,   0,   0, GANG_GOES_ON},
    {"all are lost before epoch 1",                     ELASTIC,  0,   0,   0, NONE,   0,   0,   4,   0,   0, GANG_IS_LOST},
    {"all run",                                         ELASTIC,  1,   4,   4,    4,   4,   0,   0,   0,   0, GANG_GOES_ON},
    {"a member is lost",                                ELASTIC,  1,   3,   3,    3,   3,   1,   1,   0,   0, GANG_NEW_EPOCH},
    {"a rank that was no member yet is lost",           ELASTIC,  2,   3,   3,    3,   3,   0,   1,   0,   0, GANG_GOES_ON},
    {"one listens in its place",                        ELASTIC,  2,   4,   4,    3,   3,   0,   0,   0,   0, GANG_NEW_EPOCH},
    {"one is seated in its place",                      ELASTIC,  2,   4,   3,    3,   3,   0,   0,   0,   0, GANG_GOES_ON},
    {"who has the state is gone, another one listens",  ELASTIC,  2,   1,   1,    0,   0,   3,   3,   0,   0, GANG_IS_LOST},
    {"nobody had joined yet",                           ELASTIC,  1,   3,   3, NONE,   3,   1,   1,   0,   0, GANG_NEW_EPOCH},
    {"15 in a row may die",                             ELASTIC, 20,   3,   3,    3,   3,   1,   1,   0,  15, GANG_NEW_EPOCH},
    {"16 may not",                                      ELASTIC, 20,   3,   3,    3,   3,   1,   1,   0,  16, GANG_KEEPS_DYING},
    {"fixed: ranks start",                              FIXED,    0,   4,   3, NONE,   0,   0,   0,   0,   0, GANG_GOES_ON},
    {"fixed: the last one listens",                     FIXED,    0,   4,   4, NONE,   0,   0,   0,   0,   0, GANG_NEW_EPOCH},
    {"fixed: one is lost before epoch 1",               FIXED,    0,   3,   3, NONE,   0,   0,   1,   0,   0, GANG_IS_LOST},
    {"fixed: one is lost",                              FIXED,    1,   3,   3, NONE,   3,   1,   1,   0,   0, GANG_IS_LOST},
    {"fixed: three completed",                          FIXED,    1,   1,   1, NONE,   1,   0,   0,   3,   0, GANG_GOES_ON},
    {"fixed: all completed",                            FIXED,    1,   0,   0, NONE,   0,   0,   0,   4,   0, GANG_COMPLETES},
    /* clang-format on */
};

static struct gang_standing standing_of(int i)
{
    bool has_joined = worlds[i].joined != NONE;
    return (struct gang_standing){.ranks = 4,
                                  .min_ranks = 2,
                                  .elastic = worlds[i].elastic,
                                  .epoch = worlds[i].epoch,
                                  .live = worlds[i].live,
                                  .listening = worlds[i].listening,
                                  .joined = has_joined ? worlds[i].joined : 0,
                                  .has_joined = has_joined,
                                  .members = worlds[i].members,
                                  .gone = worlds[i].gone,
                                  .completed = worlds[i].completed,
                                  .lost = worlds[i].lost,
                                  .idle_deaths = worlds[i].idle_deaths,
                                  .max_restarts = worlds[i].idle_deaths > 0 ? 3 : 0};
}

START_TEST(worlds_follow_rules)
{
    struct gang_standing s = standing_of(_i);
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

TEST_SUITE()
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
