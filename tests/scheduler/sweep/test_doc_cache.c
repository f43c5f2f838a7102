/* Documents are read once, found by their text, bounded in number and bytes, and live on while they
 * are in use. */
#include "scheduler/sweep/doc_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/support/check_main.h"

static struct doc_cache *cache;
static struct as_err err;

static void open_cache(void)
{
    ck_ok(doc_cache_create(&cache, &err), err);
}

static void close_cache(void)
{
    doc_cache_free(cache);
}

/* A stored document of a sweep; `padding` bytes of description. Owned by the caller. */
static char *document_of(int max_trials, size_t padding)
{
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b,
               "{\"name\": \"a\", \"description\": \"%*s\", \"metric\": {\"name\": \"loss\", "
               "\"goal\": \"minimize\"}, \"parameters\": {\"x\": {\"type\": \"float\", \"min\": 0, "
               "\"max\": 1}}, \"search\": {\"method\": \"random\", \"seed\": 7}, \"limits\": "
               "{\"max_trials\": %d}, \"trial\": {\"command\": [\"true\", \"${x}\"]}}",
               (int)padding, "", max_trials);
    return as_strdup(str_cstr(&b));
}

static struct doc_ref read_doc(const char *text, bool with_doc)
{
    struct doc_ref ref;
    ck_ok(doc_cache_read(cache, text, with_doc, &ref, &err), err);
    return ref;
}

START_TEST(a_document_is_read_once)
{
    AS_AUTO(as_freep) char *text = document_of(3, 0);
    AS_AUTO(as_freep) char *again = document_of(3, 0);
    AS_AUTO(as_freep) char *changed = document_of(4, 0);
    struct doc_ref a = read_doc(text, false);
    ck_assert_ptr_null(a.doc);
    ck_assert_str_eq(a.trial, "{\"command\":[\"true\",\"${x}\"]}");
    struct doc_ref b = read_doc(again, true), c = read_doc(text, true);
    ck_assert(b.tree == a.tree && b.doc && c.doc == b.doc && c.trial == a.trial);
    struct doc_ref d = read_doc(changed, true);
    ck_assert(d.doc->limits.max_trials == 4 && b.doc->limits.max_trials == 3);
    ck_assert_ptr_ne(d.tree, a.tree);
    doc_ref_done(&a);
    doc_ref_done(&a);
    doc_ref_done(&b);
    doc_ref_done(&c);
    doc_ref_done(&d);
}
END_TEST

START_TEST(the_oldest_go_and_live_while_in_use)
{
    AS_AUTO(as_freep) char *first = document_of(1, 0);
    struct doc_ref kept = read_doc(first, true);
    for (int i = 2; i <= DOC_CACHE_MAX + 1; i++) {
        AS_AUTO(as_freep) char *text = document_of(i, 0);
        struct doc_ref ref = read_doc(text, false);
        doc_ref_done(&ref);
    }
    struct doc_ref again = read_doc(first, true);
    ck_assert(again.tree != kept.tree && kept.doc->limits.max_trials == 1);
    doc_ref_done(&again);
    doc_ref_done(&kept);
}
END_TEST

START_TEST(large_documents_do_not_fill_the_memory)
{
    AS_AUTO(as_freep) char *huge = document_of(1, DOC_CACHE_BYTES / 4 + 1);
    struct doc_ref a = read_doc(huge, false), b = read_doc(huge, false);
    ck_assert_ptr_ne(a.tree, b.tree); /* too large to keep */
    doc_ref_done(&a);
    doc_ref_done(&b);
    AS_AUTO(as_freep) char *first = document_of(1, DOC_CACHE_BYTES / 5);
    a = read_doc(first, false);
    for (int i = 2; i <= 6; i++) {
        AS_AUTO(as_freep) char *text = document_of(i, DOC_CACHE_BYTES / 5);
        b = read_doc(text, false);
        doc_ref_done(&b);
    }
    b = read_doc(first, false);
    ck_assert_ptr_ne(a.tree, b.tree);
    doc_ref_done(&a);
    doc_ref_done(&b);
}
END_TEST

START_TEST(a_broken_document_is_refused_each_time)
{
    struct doc_ref ref;
    for (int i = 0; i < 2; i++) {
        ck_fails(doc_cache_read(cache, "{\"name\":", false, &ref, &err), AS_E_INTERNAL, err,
                 "cannot be read");
        ck_fails(doc_cache_read(cache, "{\"name\":\"a\"}", true, &ref, &err), AS_E_INTERNAL, err,
                 "cannot be read");
    }
}
END_TEST

/* Every allocation of a read fails in turn. */
START_TEST(no_memory_leaves_the_cache_as_it_was)
{
    AS_AUTO(as_freep) char *text = document_of(3, 0);
    struct doc_ref ref;
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st != AS_OK; nth++) {
        as_mem_fail_nth(nth);
        st = doc_cache_read(cache, text, true, &ref, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
    }
    ck_assert_int_eq((int64_t)ref.doc->limits.max_trials, 3);
    doc_ref_done(&ref);
}
END_TEST

static void *read_many(void *arg)
{
    for (int i = 0; i < 300; i++) {
        struct doc_ref ref;
        struct as_err e;
        char *text = document_of(1 + (i * 7 + *(int *)arg) % (DOC_CACHE_MAX + 40), 0);
        ck_assert(text && doc_cache_read(cache, text, i % 2, &ref, &e) == AS_OK);
        ck_assert(json_object_get(ref.tree, "limits") && !ref.doc == !(i % 2));
        doc_ref_done(&ref);
        free(text);
    }
    return NULL;
}

START_TEST(threads_share_documents)
{
    pthread_t threads[4];
    int starts[4];
    for (int i = 0; i < 4; i++) {
        starts[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_many, &starts[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("doc_cache");
    TCase *c = tcase_create("doc_cache");
    tcase_add_checked_fixture(c, open_cache, close_cache);
    tcase_add_test(c, a_document_is_read_once);
    tcase_add_test(c, the_oldest_go_and_live_while_in_use);
    tcase_add_test(c, large_documents_do_not_fill_the_memory);
    tcase_add_test(c, a_broken_document_is_refused_each_time);
    tcase_add_test(c, no_memory_leaves_the_cache_as_it_was);
    tcase_add_test(c, threads_share_documents);
    suite_add_tcase(su, c);
    return su;
}
