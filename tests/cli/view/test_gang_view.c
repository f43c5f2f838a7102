#include "cli/view/gang_view.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static void rows_are(const char *gang, const char *expected)
{
    struct pairs p = {0};
    JSON_AUTO g = json_of(gang);
    gang_view_rows(&p, g);
    ck_assert_str_eq(str_cstr(&p.text), expected);
    str_done(&p.text);
}

START_TEST(members_first_then_who_is_gone)
{
    rows_are("{'ranks':3,'min_ranks':1,'elastic':true,'state':'running','epoch':4,'step':120,"
             "'deaths':1,'sent_bytes':3500000,'started_at':'2026-11-22T10:00:00.000Z','seats':["
             "{'seat':0,'rank':0,'runner':'a','host':'a','state':'running','joined_epoch':1,"
             "'step':120,'sent_bytes':2000000,'since':'2026-11-22T10:00:00.000Z','ended_at':null,"
             "'reason':null},"
             "{'seat':1,'rank':null,'runner':'b','host':'node7','state':'lost','joined_epoch':1,"
             "'step':60,'sent_bytes':1000000,'since':'2026-11-22T10:00:00.000Z',"
             "'ended_at':'2026-11-22T10:01:00.000Z','reason':'signal 9'},"
             "{'seat':2,'rank':1,'runner':'b','host':'node7','state':'running','joined_epoch':3,"
             "'step':120,'sent_bytes':500000,'since':'2026-11-22T10:01:00.000Z','ended_at':null,"
             "'reason':null},"
             "{'seat':3,'rank':null,'runner':'c','host':'','state':'seated','joined_epoch':null,"
             "'step':null,'sent_bytes':0,'since':'2026-11-22T10:01:00.000Z','ended_at':null,"
             "'reason':null}]}",
             "ranks\t2 of 3 (at least 1), running, epoch 4, step 120, 1 lost, 3.5 MB sent\n"
             "rank 0\trunning on a, since epoch 1, step 120, 2.0 MB sent\n"
             "rank 1\trunning on b (node7), seat 2, since epoch 3, step 120, 500 kB sent\n"
             "seat 3\tseated on c\n"
             "seat 1\tlost on b (node7), since epoch 1, step 60, 1.0 MB sent: signal 9\n");
}
END_TEST

/* 200 seats that were lost are not 200 rows. */
START_TEST(many_seats)
{
    struct pairs p = {0};
    JSON_AUTO g = json_of("{'ranks':100,'min_ranks':100,'state':'running','epoch':9,'deaths':30,"
                          "'sent_bytes':0,'seats':[]}");
    json_t *seats = json_object_get(g, "seats");
    for (int i = 0; i < 130; i++)
        ck_assert_int_eq(
            json_array_append_new(seats, json_pack("{s:i, s:s, s:s, s:o}", "seat", i, "runner", "r",
                                                   "state", i < 30 ? "lost" : "running", "rank",
                                                   i < 30 ? json_null() : json_integer(i - 30))),
            0);
    gang_view_rows(&p, g);
    size_t rows = 0;
    for (const char *c = str_cstr(&p.text); (c = strchr(c, '\n')); c++)
        rows++;
    ck_assert_uint_eq(rows, 1 + 2 * (GANG_VIEW_SEATS + 1));
    ck_assert_ptr_nonnull(strstr(str_cstr(&p.text), "…\t84 more ranks; --json shows all\n"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&p.text), "seat 29\tlost on r\n"));
    ck_assert_ptr_nonnull(
        strstr(str_cstr(&p.text), "…\t14 more that are no members any more; --json shows all\n"));
    str_done(&p.text);
}
END_TEST

/* Texts of other machines do not reach the terminal as they are. */
START_TEST(hostile_texts)
{
    rows_are("{'ranks':1,'min_ranks':1,'state':'over','epoch':0,'deaths':0,'sent_bytes':0,"
             "'seats':[{'seat':0,'rank':0,'runner':'a\\u001b[31m','host':'h\\nx',"
             "'state':'running'}]}",
             "ranks\t1 of 1, over, epoch 0, 0 lost, 0 B sent\n"
             "rank 0\trunning on a\\x1b[31m (h\\nx)\n");
}
END_TEST

START_TEST(no_gang)
{
    struct pairs p = {0};
    gang_view_rows(&p, NULL);
    gang_view_rows(&p, json_null());
    ck_assert_uint_eq(p.text.len, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gang_view");
    TCase *c = tcase_create("rows");
    tcase_add_test(c, members_first_then_who_is_gone);
    tcase_add_test(c, many_seats);
    tcase_add_test(c, hostile_texts);
    tcase_add_test(c, no_gang);
    suite_add_tcase(s, c);
    return s;
}
