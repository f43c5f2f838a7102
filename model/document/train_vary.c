#include "model/document/train_vary.h"

#include <stdio.h>
#include <string.h>

#define SECTION_MAX 32

static const char *const fields[] = {"/optimizer/lr",
                                     "/optimizer/momentum",
                                     "/optimizer/nesterov",
                                     "/optimizer/beta1",
                                     "/optimizer/beta2",
                                     "/optimizer/alpha",
                                     "/optimizer/eps",
                                     "/optimizer/weight_decay",
                                     "/optimizer/clip_norm",
                                     "/schedule/min_lr",
                                     "/schedule/pct_start",
                                     "/schedule/warmup_epochs",
                                     "/schedule/gamma",
                                     "/schedule/step_epochs",
                                     "/model/dropout",
                                     "/label_smoothing",
                                     "/huber_delta",
                                     "/augment/pad",
                                     "/augment/flip",
                                     "/augment/cutout",
                                     NULL};

bool train_may_vary(const char *pointer)
{
    for (size_t i = 0; fields[i]; i++)
        if (strcmp(fields[i], pointer) == 0)
            return true;
    return false;
}

/* The fields above are one or two names deep. */
static void remove_field(json_t *train, const char *pointer)
{
    const char *name = strrchr(pointer, '/');
    char section[SECTION_MAX];
    if (name == pointer) {
        (void)json_object_del(train, name + 1);
        return;
    }
    (void)snprintf(section, sizeof section, "%.*s", (int)(name - pointer) - 1, pointer + 1);
    (void)json_object_del(json_object_get(train, section), name + 1);
}

as_status train_without(const json_t *train, const json_t *pointers, json_t **ret,
                        struct as_err *err)
{
    json_t *copy = json_deep_copy(train);
    size_t i;
    json_t *item;
    if (!copy)
        return as_fail_nomem(err);
    json_array_foreach((json_t *)pointers, i, item)
    {
        const char *pointer = json_string_value(item);
        if (!pointer || !train_may_vary(pointer)) {
            json_decref(copy);
            return as_fail(err, AS_E_INVAL,
                           "a checkpoint cannot go on with another value of '%.80s'",
                           pointer ? pointer : "");
        }
        remove_field(copy, pointer);
    }
    *ret = copy;
    return AS_OK;
}
