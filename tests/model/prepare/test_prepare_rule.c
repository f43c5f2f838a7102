/* The rows that a document holds out of a table in a file, and the options of preprocessing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "data/dataset_read.h"
#include "data/dataset_view.h"
#include "data/preprocess/holdout.h"
#include "model/prepare/prepare_rule.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#define ROWS ((size_t)8)
#define HELD HOLDOUT_HELD
#define TRAIN HOLDOUT_TRAIN

/* `day` descends: the order of the file is not that of the column. */
static const char table[] = "day,team,part,x,y\n"
                            "8,a,train,1,no\n"
                            "7,a,val,2,yes\n"
                            "6,b,train,3,no\n"
                            "5,b,test,4,yes\n"
                            "4,c,val,5,no\n"
                            "3,c,train,6,yes\n"
                            "2,d,train,7,no\n"
                            "1,d,val,8,yes\n";

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char path[64];
static struct dataset_paths paths = {.table = path};
static struct dataset_info info;

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/t.csv", dir);
    ck_ok(file_replace(path, table, strlen(table), 0644, &err), err);
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y", DATASET_CLASSIFICATION, NULL, &info, &err),
          err);
}

static void teardown(void)
{
    dataset_info_done(&info);
    temp_folder_remove(dir);
}

/* A document with these members beside the data set and the epochs. */
static void parse(const char *members, struct train_spec *ret)
{
    JSON_AUTO doc = NULL;
    char text[512];
    (void)snprintf(text, sizeof text, "{\"dataset\":\"t\",\"epochs\":1,%s}", members);
    ck_ok(json_parse(text, strlen(text), &doc, &err), err);
    ck_ok(train_spec_parse(doc, "/trial/train", ret, &err), err);
}

/* The part of each row by this `validation`; NULL where no column decides. */
static unsigned char *part_by(const char *validation)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    unsigned char *part = NULL;
    char members[256];
    (void)snprintf(members, sizeof members, "\"validation\":%s", validation);
    parse(members, &spec);
    ck_ok(prepare_rule_part(&spec, &paths, &info, &part, &err), err);
    return part;
}

START_TEST(the_last_rows_by_a_column_are_held_out)
{
    static const unsigned char want[] = {HELD, HELD, TRAIN, TRAIN, TRAIN, TRAIN, TRAIN, TRAIN};
    AS_AUTO(as_freep) unsigned char *part = part_by("{\"order\":\"day\",\"last\":0.25}");
    ck_assert_mem_eq(part, want, ROWS);
}
END_TEST

START_TEST(words_of_a_column_decide)
{
    static const unsigned char want[] = {TRAIN, HELD,  TRAIN, HOLDOUT_UNUSED,
                                         HELD,  TRAIN, TRAIN, HELD};
    AS_AUTO(as_freep) unsigned char *part = part_by("{\"column\":\"part\"}");
    ck_assert_mem_eq(part, want, ROWS);
}
END_TEST

/* The seed and the number of rows are the document's. */
START_TEST(groups_are_held_out_with_the_seed)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    unsigned char want[ROWS];
    bool differ = false;
    ck_ok(dataset_read_cells(&paths, &info, "team", &cells, &err), err);
    for (unsigned seed = 0; seed < 8; seed++) {
        char text[96];
        (void)snprintf(text, sizeof text, "{\"groups\":\"team\",\"fraction\":0.5,\"seed\":%u}",
                       seed);
        AS_AUTO(as_freep) unsigned char *part = part_by(text);
        AS_AUTO(as_freep)
        unsigned char *first = part_by("{\"groups\":\"team\",\"fraction\":0.5,\"seed\":0}");
        ck_ok(holdout_by_groups(&cells, "team", ROWS / 2, seed, want, &err), err);
        ck_assert_mem_eq(part, want, ROWS);
        differ = differ || memcmp(part, first, ROWS) != 0;
    }
    ck_assert(differ);
}
END_TEST

START_TEST(without_a_column_there_are_no_parts)
{
    ck_assert_ptr_null(part_by("{\"fraction\":0.25,\"seed\":3}"));
    ck_assert_ptr_null(part_by("{\"folds\":4}"));
}
END_TEST

START_TEST(an_error_names_the_column)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    unsigned char *part = NULL;
    parse("\"validation\":{\"column\":\"team\"}", &spec);
    ck_fails(prepare_rule_part(&spec, &paths, &info, &part, &err), AS_E_INVAL, err, "team");
    ck_assert_ptr_null(part);
}
END_TEST

/* Each row is in one fold, and of four rows of a class each fold has one where classes count. */
START_TEST(folds_hold_each_row_out_once)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    AS_AUTO(dataset_done) struct dataset set = {0};
    size_t held[ROWS] = {0};
    parse("\"validation\":{\"folds\":4,\"split\":\"stratified\"}", &spec);
    ck_ok(dataset_load(&paths, &info, &set, &err), err);
    for (size_t fold = 0; fold < 4; fold++) {
        AS_AUTO(as_freep) unsigned char *part = NULL;
        size_t of_class[2] = {0};
        ck_ok(prepare_rule_fold(&spec, &set, fold, &part, &err), err);
        for (size_t i = 0; i < ROWS; i++) {
            held[i] += part[i] == HELD;
            of_class[set.labels[i]] += part[i] == HELD;
        }
        ck_assert(of_class[0] == 1 && of_class[1] == 1);
    }
    for (size_t i = 0; i < ROWS; i++)
        ck_assert_uint_eq(held[i], 1);
    AS_AUTO(as_freep) unsigned char *first = NULL, *all = NULL;
    ck_ok(prepare_rule_fold(&spec, &set, 0, &first, &err), err);
    ck_ok(prepare_rule_fold(&spec, &set, 4, &all, &err), err); /* the training on all rows */
    for (size_t i = 0; i < ROWS; i++)
        ck_assert_int_eq(all[i], first[i] == HELD ? HOLDOUT_BOTH : HOLDOUT_TRAIN);
}
END_TEST

START_TEST(options_follow_the_document)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    parse("\"validation\":{\"fraction\":0.25,\"seed\":3,\"split\":\"stratified\"}", &spec);
    struct preprocess_opts o = prepare_rule_opts(&spec, DATASET_CLASSIFICATION, ROWS);
    ck_assert(o.split_seed == 3 && o.stratify && o.n_validation == 2);
    ck_assert(o.standardize && !o.embed_categories && !o.targets_as_shares);
    ck_assert(!o.part && !o.weights);
}
END_TEST

/* Trees take raw numbers, and categories as codes. */
START_TEST(options_of_trees)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    parse("\"model\":{\"kind\":\"boosted_trees\"}", &spec);
    struct preprocess_opts o = prepare_rule_opts(&spec, DATASET_CLASSIFICATION, ROWS);
    ck_assert(!o.standardize && o.embed_categories);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("prepare_rule");
    TCase *t = tcase_create("prepare_rule");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_last_rows_by_a_column_are_held_out);
    tcase_add_test(t, words_of_a_column_decide);
    tcase_add_test(t, groups_are_held_out_with_the_seed);
    tcase_add_test(t, without_a_column_there_are_no_parts);
    tcase_add_test(t, an_error_names_the_column);
    tcase_add_test(t, folds_hold_each_row_out_once);
    tcase_add_test(t, options_follow_the_document);
    tcase_add_test(t, options_of_trees);
    suite_add_tcase(s, t);
    return s;
}
