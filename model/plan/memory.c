/* The bytes of a plan, computed from its shapes. */
#include "model/plan/memory.h"

#define VECTOR ((size_t)32)            /* floats that rows are rounded up to */
#define BLOCK ((size_t)32768)          /* floats */
#define PARTIALS ((size_t)1 << 21)     /* floats */
#define NUMBERS_OF_STEP ((size_t)16)   /* at most: rates, shares, marks */
#define NUMBERS_OF_MEMBER ((size_t)64) /* at most: keys, hyperparameters, sums */
#define STRIPE ((size_t)64)            /* queries of attention at once */

double net_activation_bytes(const struct net_plan *p, double rows)
{
    double row = 0, member = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct net_node *n = &p->nodes[i];
        double value = (double)net_shape_elements(n->out);
        if (n->op != NET_INPUT && !n->in_place)
            row += value;
        row += (double)n->kept_row + (n->keeps_z ? value : 0);
        member += (double)n->kept_member;
    }
    for (size_t i = 0; i < p->n_slots; i++)
        row += (double)p->slots[i];
    return 4 * (row * rows + member);
}

/* An upper bound of what kernels/cpu/conv_plan.c uses: the packed weight; up to 8 partial gradients
 * of it, at most 8 MiB together unless there is only one; and for each of 8 slices padded copies of
 * input and output, of 128 KiB or some rows. Channels are rounded up to whole vectors. */
static size_t conv_workspace(const struct net_node *n, size_t rows)
{
    size_t in = n->in.channels, out = (n->out.channels + VECTOR) / VECTOR * VECTOR;
    size_t patch = n->kernel_h * n->kernel_w * in;
    size_t weight = (patch + 1) * out + (n->kernel_w * in + VECTOR) * n->kernel_h * n->out.channels;
    size_t padded = (n->in.width + 2 * n->pad) * in;
    size_t image = (n->in.height + 2 * n->pad) * padded + n->out.height * n->out.width * out;
    size_t strip = 2 * BLOCK + (n->kernel_h + n->stride) * padded + n->out.width * out;
    size_t partials = 8 * weight < PARTIALS + weight ? 8 * weight : PARTIALS + weight;
    size_t slices = 8 * strip < 2 * rows * image ? 8 * strip : 2 * rows * image;
    return weight + partials + slices + 64 * VECTOR;
}

size_t net_workspace(const struct net_node *n, size_t rows)
{
    size_t t = n->in.width;
    if (n->op == NET_CONV)
        return conv_workspace(n, rows);
    return n->op == NET_ATTENTION ? (2 * t + 1) * STRIPE : 0;
}

static size_t workspace_bytes(const struct net_plan *p, size_t rows)
{
    size_t most = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        size_t work = net_workspace(&p->nodes[i], rows);
        most = work > most ? work : most;
    }
    return 4 * most;
}

void net_plan_bytes(const struct net_plan *p, const struct train_spec *spec,
                    const struct net_data *data, size_t rows, struct net_bytes *ret)
{
    bool classes = data->task == DATASET_CLASSIFICATION;
    size_t inputs =
        p->input == NET_TOKENS ? p->tokens : net_shape_elements(p->nodes[0].out) + p->n_categories;
    size_t targets = p->input == NET_TOKENS ? p->tokens : classes ? 1 : data->outputs;
    size_t value = p->input == NET_IMAGES && data->pixel_bytes == 1 ? 1 : 4;
    size_t row = p->input == NET_TOKENS ? 4 : value * inputs + 4 * targets; /* in the data set */
    size_t scaling = value == 1 ? 8 * inputs + 4 : 0; /* means and scales, and rounding up */
    size_t weight = spec->weights != NULL;
    struct net_bytes b = {
        .parameters = 4 * p->n_params,
        .gradients = 4 * p->n_params,
        .moments = 8 * p->n_params,
        .accumulated =
            ((spec->optimizer.ema > 0 ? 8 : 4) + (spec->privacy.given ? 4 : 0)) * p->n_params,
        .state = 4 * p->n_state,
        .activations = (size_t)net_activation_bytes(p, (double)rows),
        .workspace = workspace_bytes(p, rows),
        .batch =
            4 * rows *
            (inputs * (net_augments(spec, p->input) ? 2 : 1) + targets + 2 * p->tokens + weight),
        .shared = data->rows * (row + 4 * weight) + scaling,
    };
    size_t steps = data->rows / p->tokens / p->max_rows + 2;
    b.tables = 4 * (data->rows + NUMBERS_OF_STEP * steps + 4 * p->n_tensors + data->outputs +
                    NUMBERS_OF_MEMBER);
    b.member = b.parameters + b.gradients + b.moments + b.accumulated + b.state + b.activations +
               b.workspace + b.batch + b.tables;
    *ret = b;
}
