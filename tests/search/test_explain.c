#include "search/suggest.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"

static void check(const char *text, const char *want)
{
    struct as_err err = {0};
    struct str b = {0};
    JSON_AUTO j = NULL;
    JSON_AUTO metrics = json_pack("[{s:s}, {s:s}]", "name", "error", "name", "speed");
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    suggest_explain(j, metrics, &b);
    ck_assert_str_eq(str_cstr(&b), want);
    str_done(&b);
}

START_TEST(of_the_model)
{
    check(
        "{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"ucb\",\"predicted\":{\"mean\":"
        "0.031,\"deviation\":0.00412},\"incumbent\":{\"number\":12,\"value\":0.034},\"observed\":"
        "40,\"pending\":3,\"failed\":0}",
        "chosen by upper confidence bound: predicted 0.031 ± 0.0041; the best so far was trial 12 "
        "with 0.034; 40 results seen, 3 pending");
    check(
        "{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"ehvi\",\"predicted\":[{\"mean\":"
        "0.5,\"deviation\":0.1},{\"mean\":7,\"deviation\":\"Infinity\"}],\"observed\":1,"
        "\"pending\":0,\"failed\":2,\"trust_region\":0.4}",
        "chosen by expected hypervolume improvement: predicted error 0.5 ± 0.1, speed 7 ± inf, "
        "within a trust region of side 0.4; 1 result seen, 2 failed");
    check("{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"later\",\"observed\":9}",
          "chosen by the model; 9 results seen");
    check("{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"logei\",\"observed\":9,"
          "\"pending\":0,\"failed\":0,\"branch\":{\"parameter\":\"booster\",\"value\":\"dart\","
          "\"trials\":3,\"optimistic\":0.5,\"crossing\":true}}",
          "chosen by expected improvement, inside booster = dart, which may still reach 0.5, all "
          "else as in the best trial; 9 results seen");
    check("{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"later\",\"prior\":0.8333,"
          "\"observed\":12}",
          "chosen by the model, with the priors at weight 0.83; 12 results seen");
    check("{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"later\",\"prior_sweeps\":["
          "{\"sweep\":\"old\",\"weight\":0.5,\"mean\":0.9},{\"sweep\":\"b\",\"weight\":1,\"mean\":"
          "0}],"
          "\"observed\":12}",
          "chosen by the model, with the sweep old at weight 0.5 and 0.9 of its predictions, with "
          "the sweep b at weight 1; 12 results seen");
    check(
        "{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"logei\",\"observed\":40,"
        "\"stagnant\":true,\"no_effect\":[{\"parameter\":\"gamma\",\"where\":{\"kernel\":"
        "\"linear\"},\"trials\":36},{\"parameter\":\"degree\",\"where\":{\"fast\":true},"
        "\"trials\":12}]}",
        "chosen by expected improvement; recent trials improved almost nothing; gamma has no "
        "effect "
        "where kernel is linear (36 trials); degree has no effect where fast is true (12 trials); "
        "40 results seen");
    check(
        "{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"nearby\",\"observed\":40,"
        "\"calibration\":{\"warped\":{\"within\":12,\"of\":12},\"smooth\":{\"within\":5,\"of\":12,"
        "\"until\":60}}}",
        "chosen near one of the few trials that have succeeded; the smooth model has no turns "
        "before 60 results, because 7 of its 12 predictions did not hold; 40 results seen");
    check("{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"ucb\",\"scales\":[{"
          "\"parameter\":\"rate\",\"rate\":1000},{\"parameter\":\"momentum\",\"rate\":-20}],"
          "\"observed\":40}",
          "chosen by upper confidence bound; rate acts on a logarithmic scale from its lower end; "
          "momentum acts on a logarithmic scale from its upper end; 40 results seen");
    check("{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"ucb\",\"basin\":7,\"observed\":"
          "40}",
          "chosen by upper confidence bound, in the basin of trial 7, beside that of the best; 40 "
          "results seen");
    check("{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"ucb\",\"free\":[\"rate\","
          "\"decay\"],\"observed\":40}",
          "chosen by upper confidence bound, changing numbers among rate, decay; 40 results seen");
    check(
        "{\"method\":\"gp\",\"phase\":\"model\",\"acquisition\":\"spread\",\"part\":{"
        "\"parameter\":\"epochs\",\"from\":120,\"to\":200,\"trials\":4},\"idle\":[\"momentum\","
        "\"decay\"],\"observed\":40}",
        "a point far from the trials there, to learn what the numbers do, where epochs is from 120 "
        "to 200, because outside of it no effect is seen of momentum, decay; 40 results seen");
    check("{\"method\":\"tpe\",\"phase\":\"search\",\"good\":2,\"prior\":0.5,\"observed\":12}",
          "like the 2 best trials and unlike the others, with the priors at weight 0.5; 12 results "
          "seen");
}
END_TEST

START_TEST(without_a_model)
{
    check("{\"method\":\"gp\",\"phase\":\"initial\",\"point\":2,\"observed\":1,\"pending\":1,"
          "\"failed\":0}",
          "point 2 of the initial design, which fills the space; 1 result seen, 1 pending");
    check("{\"method\":\"gp\",\"phase\":\"initial\",\"point\":9,\"fallback\":\"no trial has "
          "completed\",\"observed\":0,\"pending\":0,\"failed\":9}",
          "drawn to fill the space, without a model: no trial has completed; 0 results "
          "seen, 9 "
          "failed");
}
END_TEST

START_TEST(of_the_others)
{
    check("{\"method\":\"grid\",\"cell\":3,\"cells\":12}", "cell 3 of the grid's 12");
    check("{\"method\":\"sobol\",\"point\":5}",
          "point 5 of a Sobol sequence, which fills the space");
    check("{\"method\":\"random\"}", "drawn at random");
    check("{\"method\":\"tpe\",\"phase\":\"search\",\"good\":4,\"observed\":38,\"pending\":1,"
          "\"failed\":0}",
          "like the 4 best trials and unlike the others; 38 results seen, 1 pending");
    check("{\"method\":\"tpe\",\"phase\":\"search\",\"good\":1,\"observed\":9,\"pending\":0,"
          "\"failed\":0}",
          "like the best trial and unlike the others; 9 results seen");
    check("{\"method\":\"forest\",\"phase\":\"search\",\"value\":-1.5,\"predicted\":{\"mean\":0.25,"
          "\"deviation\":0.031},\"prior\":0.5,\"observed\":38,\"pending\":1,\"failed\":0}",
          "where a forest of trees expects the most improvement: predicted 0.25 ± 0.031, with the "
          "priors at weight 0.5; 38 results seen, 1 pending");
    check("{\"method\":\"evolution\",\"phase\":\"search\",\"parent\":12,\"changed\":[\"lr\","
          "\"depth\"],"
          "\"observed\":38,\"pending\":0,\"failed\":0}",
          "trial 12 with lr and depth changed; 38 results seen");
    check(
        "{\"method\":\"coordinate\",\"phase\":\"search\",\"cycle\":1,\"restarts\":2,\"step\":0.25,"
        "\"changed\":[\"lr\"],\"observed\":38,\"pending\":0,\"failed\":0}",
        "lr changed alone in cycle 2, within 0.25 of its range, run 3; 38 results seen");
    check(
        "{\"method\":\"coordinate\",\"phase\":\"search\",\"cycle\":0,\"restarts\":2,\"changed\":[],"
        "\"observed\":38,\"pending\":0,\"failed\":0}",
        "where run 3 begins; 38 results seen");
    check(
        "{\"method\":\"mcmc\",\"phase\":\"search\",\"chain\":0,\"parent\":12,\"changed\":[\"lr\"],"
        "\"temperature\":0.5,\"acceptance\":0.25,\"observed\":38,\"pending\":0,\"failed\":0}",
        "chain 1 at trial 12, with lr changed, at temperature 0.5, 25% of its steps accepted; 38 "
        "results seen");
    check(
        "{\"method\":\"cmaes\",\"phase\":\"search\",\"generation\":7,\"restarts\":0,\"step\":0.13,"
        "\"observed\":80,\"pending\":0,\"failed\":2}",
        "drawn after 7 generations, in steps of 0.13 of the range; 80 results seen, 2 failed");
    check("{\"method\":\"cmaes\",\"phase\":\"initial\",\"point\":3,\"observed\":1,\"pending\":0,"
          "\"failed\":0}",
          "point 3 of the initial design, which fills the space; 1 result seen");
    check("{\"method\":\"of tomorrow\"}", "of tomorrow");
    check("{}", "");
}
END_TEST

/* A stored reason may be of another version: fields that are missing or of another kind are no
 * words and no harm. Every method but `auto`, whose reasons are another's, has words of its own. */
START_TEST(of_any_version)
{
    static const char *const methods[] = {"gp",         "tpe",  "forest", "cmaes",  "evolution",
                                          "coordinate", "mcmc", "grid",   "random", "sobol"};
    static const char *const fields[] = {"acquisition", "predicted", "trust_region", "branch",
                                         "prior",       "fallback",  "prior_sweeps", "incumbent",
                                         "changed",     "step",      "point",        "observed"};
    static const char *const phases[] = {"model", "search", "initial"};
    for (size_t i = 0; i < AS_ARRAY_LEN(methods) * AS_ARRAY_LEN(phases); i++) {
        const struct search_method *m = NULL;
        const char *name = methods[i / AS_ARRAY_LEN(phases)];
        struct as_err err = {0};
        ck_ok(search_method_parse(name, "/m", &m, &err), err);
        ck_assert_ptr_nonnull(m->explain);
        for (size_t f = 0; f < 5 * AS_ARRAY_LEN(fields); f++) {
            AS_AUTO(str_done) struct str b = {0};
            JSON_AUTO kinds = json_pack("[n, i, s, [{}], {s:n}]", 3, "text", "mean");
            JSON_AUTO reason = json_pack("{s:s, s:s, s:O}", "method", name, "phase",
                                         phases[i % AS_ARRAY_LEN(phases)], fields[f / 5],
                                         json_array_get(kinds, f % 5));
            ck_assert_ptr_nonnull(reason);
            suggest_explain(reason, NULL, &b);
            ck_assert_uint_gt(b.len, strlen(name));
        }
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("explain");
    TCase *t = tcase_create("explain");
    tcase_add_test(t, of_the_model);
    tcase_add_test(t, without_a_model);
    tcase_add_test(t, of_the_others);
    tcase_add_test(t, of_any_version);
    suite_add_tcase(s, t);
    return s;
}
