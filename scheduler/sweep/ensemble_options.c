#include "scheduler/sweep/ensemble_options.h"

#include "base/str.h"

as_status ensemble_options_parse(struct json_fields *f, struct ensemble_options *ret,
                                 struct as_err *err)
{
    int method = ENSEMBLE_GREEDY;
    int64_t size = ENSEMBLE_DEFAULT_SIZE;
    bool non_negative = false, calibrate = false;
    as_status st =
        json_fields_word(f, "method", JSON_OPTIONAL, ensemble_method_names, &method, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "size", JSON_OPTIONAL, 1, ENSEMBLE_MAX_SIZE, &size, err);
    if (st == AS_OK)
        st = json_fields_bool(f, "non_negative", JSON_OPTIONAL, &non_negative, err);
    if (st == AS_OK)
        st = json_fields_bool(f, "calibrate", JSON_OPTIONAL, &calibrate, err);
    if (st != AS_OK)
        return st;
    if (non_negative && method != ENSEMBLE_STACKING) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, "non_negative", at);
        st = as_fail_at(err, AS_E_INVAL, at,
                        "%s: the weights of method %s are never negative; only stacking has this "
                        "choice",
                        at, ensemble_method_names[method]);
        return json_fields_note(f, st, err);
    }
    *ret =
        (struct ensemble_options){(ensemble_method)method, (size_t)size, non_negative, calibrate};
    return AS_OK;
}

json_t *ensemble_options_to_json(const struct ensemble_options *o)
{
    if (o->size == 0)
        return json_false();
    JSON_AUTO j = json_pack("{s:s, s:I}", "method", ensemble_method_names[o->method], "size",
                            (json_int_t)o->size);
    if (j && o->non_negative && json_object_set_new(j, "non_negative", json_true()) != 0)
        return NULL;
    if (j && o->calibrate && json_object_set_new(j, "calibrate", json_true()) != 0)
        return NULL;
    return as_steal(j);
}

ensemble_method ensemble_method_of(const char *name)
{
    for (int m = 0; m < ENSEMBLE_METHODS; m++)
        if (as_streq(name, ensemble_method_names[m]))
            return (ensemble_method)m;
    return ENSEMBLE_GREEDY;
}
