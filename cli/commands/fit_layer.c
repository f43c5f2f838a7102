/* The further layer of `assay fit --layers 2`: what `assay ensemble --method stacking --layers 2`
 * does, in the time that is left. The configurations are those that are best together, of both
 * sweeps where ranges became wider; the second one has the ranges of both. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands/fit_run.h"
#include "cli/commands/layer_run.h"
#include "cli/commands/layer_sweep.h"
#include "cli/commands/watch.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/view/say.h"

#define LEAST_LAYER_MS 2000

/* What the trials of the layer see. */
static as_status read_stack(struct fit *f, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    as_status st =
        request_get_within(f->session.client, &f->layer, NULL, FIT_RETRY_MS, &sweep, err);
    const json_t *trial = json_object_get(json_object_get(sweep, "document"), "trial");
    f->stack = json_incref(json_object_get(json_object_get(trial, "train"), "stack"));
    return st;
}

static as_status start(struct fit *f, int64_t left_ms, struct as_err *err)
{
    const char *also = f->narrow.sweep[0] ? f->narrow.sweep : NULL;
    as_status st = layer_start(&f->session, &f->sweep, also, LAYER_TRIALS, left_ms, &f->layer, err);
    if (st == AS_OK)
        st = read_stack(f, err);
    if (st == AS_OK)
        say("Sweep %s: a further layer, which sees what trials of %s predicted", f->layer.sweep,
            f->sweep.sweep);
    return st;
}

as_status fit_layer_train(struct fit *f, int *ret_code, struct as_err *err)
{
    int64_t left = f->time_ms - fit_kept_back_ms(f) - fit_elapsed_ms(f);
    if (f->wishes.layers < 2)
        return AS_OK;
    if (left < LEAST_LAYER_MS) {
        say("No time is left for a further layer (--time)");
        return AS_OK;
    }
    as_status st = start(f, left, err);
    if (st == AS_E_INVAL || st == AS_E_NOT_FOUND) {
        say("There is no further layer: %s", err->msg);
        return AS_OK;
    }
    if (st < 0)
        return st;
    const struct watch_opts opts = {.top = -1, .ends_ms = clock_wall_ms() + left};
    int code = watch_sweep(&f->session, f->layer.sweep, &opts);
    if (interrupt_seen() || (code != EXIT_OK && code != EXIT_FAIL && code != EXIT_CANCELLED))
        *ret_code = code;
    return AS_OK;
}
