#include "cli/fit/fit_metric.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct metric {
    const char *name;
    bool maximize, of_classes;
};

static const struct metric metrics[] = {
    {"auc", true, true},
    {"log_loss", false, true},
    {"error", false, true},
    {"accuracy", true, true},
    {"balanced_accuracy", true, true},
    {"f1", true, true},
    {"average_precision", true, true},
    {"brier", false, true},
    {"rmse", false, false},
    {"mae", false, false},
    {"r2", true, false},
    {"mape", false, false},
};

bool fit_metric_is_of_classes(const char *name)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (as_streq(metrics[i].name, name))
            return metrics[i].of_classes;
    return false;
}

static as_status fail_metric(const struct fit_facts *f, const char *name, struct as_err *err)
{
    AS_AUTO(str_done) struct str known = {0};
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (metrics[i].of_classes == (f->classes > 0))
            str_printf(&known, "%s%s", known.len ? ", " : "", metrics[i].name);
    return as_fail(err, AS_E_INVAL, "--metric: found '%.40s', expected one of %s: the target is %s",
                   name, str_cstr(&known), f->classes ? "classes" : "numbers");
}

as_status fit_metric_choose(const struct fit_facts *f, const char *wish,
                            char ret_name[FIT_METRIC_MAX], bool *ret_maximize, struct as_err *err)
{
    const char *name = wish ? wish : !f->classes ? "rmse" : f->classes == 2 ? "auc" : "log_loss";
    if (as_starts_with(name, "val_"))
        name += strlen("val_");
    for (size_t i = 0; i < AS_ARRAY_LEN(metrics); i++)
        if (as_streq(metrics[i].name, name) && metrics[i].of_classes == (f->classes > 0)) {
            (void)snprintf(ret_name, FIT_METRIC_MAX, "val_%s", name);
            *ret_maximize = metrics[i].maximize;
            return AS_OK;
        }
    return fail_metric(f, wish ? wish : name, err);
}
