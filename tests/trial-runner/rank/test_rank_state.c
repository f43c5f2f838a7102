/* Ranks of gangs, without processes: what a rank does in every state when anything happens, how its
 * end reaches the server, and what a world is for it. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "trial-runner/rank/rank_state.h"

/* One line for each state: for each happening, the actions in the order T(ell) M(eet) L(eave)
 * F(inish) D(rop) Q(uit), and the next state's number if it is another one. */
static const char *const expected[RANK_STATES] = {
    /*                    listens in   alone waits w.alone not-in over drains early ends */
    [RANK_SEATED] = "T1 - - - - - D8 Q - 9",
    [RANK_ANNOUNCED] = "- M2 M3 4 5 - D8 Q - 9",
    [RANK_MEMBER] = "- M M3 4 5 D8 D8 L6 F7 9",
    [RANK_ALONE] = "- M2 M 4 5 D8 D8 F7 F7 9",
    [RANK_SHORT] = "- M2 M3 - 5 D8 D8 L6 F7 9",
    [RANK_SHORT_ALONE] = "- M2 M3 4 - D8 D8 MF7 MF7 9",
    [RANK_LEAVING] = "- ML MF7 L MF7 D8 D8 - F7 9",
    [RANK_STOPPING] = "- M M - - D8 D8 - - 9",
    [RANK_OUT] = "- - - - - - - - - -",
    [RANK_GONE] = "- - - - - D8 D8 - - -",
};

START_TEST(every_state_and_event)
{
    static const char letters[] = "TMLFDQ";
    for (int s = 0; s < RANK_STATES; s++) {
        char got[200] = "";
        for (int h = 0; h < RANK_HAPPENINGS; h++) {
            rank_state next = (rank_state)s;
            unsigned actions = rank_step(&next, (rank_happens)h);
            size_t n = strlen(got);
            if (n)
                got[n++] = ' ';
            size_t before = n;
            for (size_t i = 0; letters[i]; i++)
                if (actions & 1u << i)
                    got[n++] = letters[i];
            if ((int)next != s)
                got[n++] = (char)('0' + (int)next);
            if (n == before)
                got[n++] = '-';
            got[n] = '\0';
        }
        ck_assert_msg(strcmp(got, expected[s]) == 0, "%s: '%s', expected '%s'",
                      rank_state_word((rank_state)s), got, expected[s]);
    }
}
END_TEST

/* A rank that drains asks again after each world that came first, and finishes when it is the
 * last. */
START_TEST(a_draining_rank_leaves_or_finishes)
{
    rank_state s = RANK_MEMBER;
    ck_assert_uint_eq(rank_step(&s, RANK_DRAINS), RANK_LEAVE);
    ck_assert_uint_eq(rank_step(&s, RANK_IN), RANK_MEET | RANK_LEAVE);
    ck_assert_uint_eq(rank_step(&s, RANK_IN_ALONE), RANK_MEET | RANK_FINISH);
    ck_assert_uint_eq(rank_step(&s, RANK_DRAINS), 0);
    ck_assert_int_eq(s, RANK_STOPPING);
}
END_TEST

START_TEST(ways_of_ends)
{
    static const struct {
        bool elastic;
        int64_t rank;
        size_t n;
        rank_state state;
        outcome o;
        bool by_signal;
        rank_way want;
    } cases[] = {
        {true, 0, 3, RANK_MEMBER, OUTCOME_COMPLETED, false, RANK_WAY_COMPLETE},
        {true, 1, 3, RANK_MEMBER, OUTCOME_COMPLETED, false, RANK_WAY_END},
        {true, 0, 3, RANK_MEMBER, OUTCOME_FAILED, false, RANK_WAY_COMPLETE},
        {true, 0, 3, RANK_MEMBER, OUTCOME_FAILED, true, RANK_WAY_END}, /* a crash: others go on */
        {true, 0, 3, RANK_MEMBER, OUTCOME_RETRY, true, RANK_WAY_END},
        {true, 0, 3, RANK_MEMBER, OUTCOME_RETRY, false, RANK_WAY_END},
        {true, 0, 3, RANK_LEAVING, OUTCOME_RELEASED, false, RANK_WAY_END},
        {true, 0, 3, RANK_MEMBER, OUTCOME_TIMEOUT, true, RANK_WAY_COMPLETE},
        {true, 0, 3, RANK_STOPPING, OUTCOME_PAUSED, false, RANK_WAY_COMPLETE},
        {true, 0, 3, RANK_STOPPING, OUTCOME_PRUNED, true, RANK_WAY_COMPLETE},
        {true, 1, 3, RANK_MEMBER, OUTCOME_PAUSED, false, RANK_WAY_END},
        {true, 0, 1, RANK_ALONE, OUTCOME_RETRY, true, RANK_WAY_COMPLETE},
        {true, 0, 1, RANK_STOPPING, OUTCOME_RELEASED, false, RANK_WAY_COMPLETE},
        {true, -1, 3, RANK_ANNOUNCED, OUTCOME_RELEASED, true, RANK_WAY_END},
        {true, -1, 2, RANK_OUT, OUTCOME_RETRY, true, RANK_WAY_NOTHING},
        {true, 0, 2, RANK_MEMBER, OUTCOME_NONE, true, RANK_WAY_NOTHING},
        {false, 0, 3, RANK_MEMBER, OUTCOME_FAILED, false, RANK_WAY_COMPLETE},
        {false, 0, 3, RANK_MEMBER, OUTCOME_RETRY, true, RANK_WAY_COMPLETE},
        {false, 2, 3, RANK_MEMBER, OUTCOME_FAILED, false, RANK_WAY_END},
        {false, 2, 3, RANK_MEMBER, OUTCOME_COMPLETED, false, RANK_WAY_END},
        {false, 0, 3, RANK_MEMBER, OUTCOME_PAUSED, true, RANK_WAY_COMPLETE},
        {false, 2, 3, RANK_MEMBER, OUTCOME_PAUSED, true, RANK_WAY_END},
        {false, -1, 0, RANK_SEATED, OUTCOME_FAILED, false, RANK_WAY_END},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        ck_assert_msg(rank_way_of(cases[i].elastic, cases[i].rank, cases[i].n, cases[i].state,
                                  cases[i].o, cases[i].by_signal) == cases[i].want,
                      "case %zu", i);
}
END_TEST

#define SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define WORLD(state, members) "{\"epoch\":3,\"state\":\"" state "\",\"members\":[" members "]}"

START_TEST(what_a_world_is_for_a_seat)
{
    static const struct {
        const char *text;
        int64_t seat;
        rank_happens want;
    } cases[] = {
        {WORLD("running", "{\"seat\":1},{\"seat\":4}"), 4, RANK_IN},
        {WORLD("running", "{\"seat\":1},{\"seat\":4}"), 2, RANK_NOT_IN},
        {WORLD("running", "{\"seat\":4}"), 4, RANK_IN_ALONE},
        {WORLD("waiting", "{\"seat\":4}"), 4, RANK_WAITS_ALONE},
        {WORLD("waiting", "{\"seat\":4},{\"seat\":5}"), 4, RANK_WAITS},
        {WORLD("waiting", ""), 4, RANK_NOT_IN},
        {WORLD("gathering", "{\"seat\":4}"), 4, RANK_NOT_IN},
        {WORLD("over", "{\"seat\":4}"), 4, RANK_IS_OVER},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO j = NULL;
        struct rank_world w = {0};
        struct as_err err = {0};
        ck_ok(json_parse(cases[i].text, strlen(cases[i].text), &j, &err), err);
        ck_ok(rank_world_parse(j, &w, &err), err);
        ck_assert_msg(rank_meaning(&w, cases[i].seat) == cases[i].want, "%s", cases[i].text);
        rank_world_done(&w);
    }
}
END_TEST

START_TEST(wrong_worlds_name_the_field)
{
    static const struct {
        const char *text, *pointer;
    } cases[] = {
        {"{\"epoch\":3,\"members\":[]}", "/state"},
        {"{\"epoch\":-1,\"state\":\"running\",\"members\":[]}", "/epoch"},
        {"{\"epoch\":1,\"state\":\"flying\",\"members\":[]}", "/state"},
        {WORLD("running", "{\"seat\":-2}"), "/members/0/seat"},
        {WORLD("running", "{\"seat\":0,\"port\":65536}"), "/members/0/port"},
        {WORLD("running", "{\"seat\":3},{\"seat\":3}"), "/members"},
        {WORLD("running", "7"), "/members/0"},
        {"{\"epoch\":1,\"state\":\"running\",\"secret\":\"" SECRET "0\",\"members\":[]}",
         "/secret"},
        {"{\"epoch\":1,\"state\":\"running\",\"secret\":\"xy\",\"members\":[]}", "/secret"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO j = NULL;
        struct rank_world w = {0};
        struct as_err err = {0};
        ck_ok(json_parse(cases[i].text, strlen(cases[i].text), &j, &err), err);
        ck_assert_int_eq(rank_world_parse(j, &w, &err), AS_E_INVAL);
        ck_assert_msg(strcmp(err.pointer, cases[i].pointer) == 0, "%s: %s", cases[i].text,
                      err.pointer);
        ck_assert_ptr_null(strstr(err.msg, "00112233")); /* no secret in a message */
    }
}
END_TEST

START_TEST(a_secret_is_read)
{
    static const char text[] = "{\"epoch\":1,\"state\":\"running\",\"secret\":\"" SECRET
                               "\",\"members\":[{\"seat\":0,\"endpoint\":\"e\"}],\"restart\":2}";
    JSON_AUTO j = NULL;
    struct rank_world w = {0};
    struct as_err err = {0};
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    ck_ok(rank_world_parse(j, &w, &err), err);
    ck_assert(w.has_secret && w.secret[0] == 0 && w.secret[1] == 0x11 && w.secret[31] == 0xff);
    ck_assert(w.restarts == 2 && w.n == 1 && strcmp(w.members[0].endpoint, "e") == 0);
    rank_world_done(&w);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("rank_state");
    TCase *t = tcase_create("rank_state");
    tcase_add_test(t, every_state_and_event);
    tcase_add_test(t, a_draining_rank_leaves_or_finishes);
    tcase_add_test(t, ways_of_ends);
    tcase_add_test(t, what_a_world_is_for_a_seat);
    tcase_add_test(t, wrong_worlds_name_the_field);
    tcase_add_test(t, a_secret_is_read);
    suite_add_tcase(s, t);
    return s;
}
