/* Long sums. The gradient of a weight has few elements, each a sum over all rows: [25, 20] from
 * 36,864 pixels in the first layer of LeNet. Computed whole, it is one block that adds for
 * milliseconds while the device is idle. So the sum is cut into parts, which are the members of a
 * product of its own, and their results are added in order:
 *
 *   a^T  [ part 0 | part 1 | ... | rest ]      room [parts (+ 1), m, n]
 *   b    [ part 0 | part 1 | ... | rest ]      c = beta c + room[0] + room[1] + ...
 *
 * The cut depends on m, n and the inner size alone, so that a member has the same bits alone and in
 * a group; the device's own number of processors does not matter. */
#include "kernels/cuda/product.cuh"

/* The emulated build has short sums and a small device. */
#ifndef SPLIT_TILE
#define SPLIT_TILE 64 /* rows and columns that a block of a library computes, about */
#endif
#ifndef SPLIT_BLOCKS
#define SPLIT_BLOCKS 512 /* of all parts together: about four for each processor of an H100 */
#endif
#ifndef SPLIT_PART
#define SPLIT_PART 256 /* the shortest part that is worth its launch */
#endif
/* c->split_room: the parts of one member at least, which have SPLIT_BLOCKS tiles, and its rest,
 * which has half as many. */
#define ROOM_FLOATS ((size_t)SPLIT_BLOCKS * SPLIT_TILE * SPLIT_TILE * 3 / 2)

/* `parts` parts of `len` each, and `rest` at the end. */
struct cut {
    size_t parts, len, rest;
};

static size_t tiles_of(const struct product *p)
{
    return ((p->m + SPLIT_TILE - 1) / SPLIT_TILE) * ((p->n + SPLIT_TILE - 1) / SPLIT_TILE);
}

static struct cut cut_of(const struct product *p)
{
    size_t parts = SPLIT_BLOCKS / tiles_of(p), most = p->inner / SPLIT_PART;
    if (parts > most)
        parts = most;
    /* As many parts as leave no rest, if that costs less than half of them: one launch less. */
    for (size_t fewer = parts; fewer > parts / 2; fewer--)
        if (p->inner % fewer == 0 && p->inner / fewer % 4 == 0)
            return {fewer, p->inner / fewer, 0};
    size_t len = p->inner / parts / 4 * 4; /* parts begin where the first one's alignment holds */
    return {parts, len, p->inner - parts * len};
}

/* Elements from one part of a factor to the next. `down`: the inner size is its rows in memory. */
static size_t step_of(const struct factor *f, bool down, size_t len)
{
    return down ? len * f->row : len;
}

/* Member k of a factor from inner place `at`, with parts as members. */
static struct factor part_of(const struct factor *f, size_t k, size_t at, bool down,
                             const struct cut *cut)
{
    size_t offset = f->t.offset + k * f->t.stride + step_of(f, down, at);
    return {tensor_at(f->t.buf, offset, step_of(f, down, cut->len)), f->transposed, f->row};
}

/* c[k] = beta c[k] + the parts of member k, in order; n elements. */
__global__ static void add_parts(struct dev_f32 room, size_t parts, size_t members, size_t n,
                                 float beta, struct dev_f32 c)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ELEMENTS(i, n)
        {
            double sum = beta != 0.0f ? (double)(beta * c.at(k)[i]) : 0.0;
            for (size_t part = 0; part < parts; part++)
                sum += (double)room.at(k)[part * n + i];
            c.at(k)[i] = (float)sum;
        }
    }
}

/* One member's parts into room [parts (+ 1), m, n]. */
static as_status multiply_parts(struct backend *be, const struct product *p, const struct cut *cut,
                                size_t k, struct tensor room, struct as_err *err)
{
    bool a_down = p->a.transposed, b_down = !p->b.transposed;
    struct product part = *p;
    part.members = cut->parts;
    part.inner = cut->len;
    part.beta = 0.0f;
    part.a = part_of(&p->a, k, 0, a_down, cut);
    part.b = part_of(&p->b, k, 0, b_down, cut);
    part.a_align = tensor_alignment(p->a.t);
    part.b_align = tensor_alignment(p->b.t);
    part.c = room;
    as_status st = whole_product(be, &part, err);
    if (st < 0 || cut->rest == 0)
        return st;
    size_t at = cut->parts * cut->len;
    part.members = 1;
    part.inner = cut->rest;
    part.a = part_of(&p->a, k, at, a_down, cut);
    part.b = part_of(&p->b, k, at, b_down, cut);
    part.c.offset += cut->parts * p->m * p->n;
    return whole_product(be, &part, err);
}

/* Floats of the room that a member takes, so that each member's parts are aligned alike. */
static size_t room_of(const struct product *p, const struct cut *cut)
{
    return ((cut->parts + (cut->rest > 0)) * p->m * p->n + 3) / 4 * 4;
}

/* Members [first, first + members). */
static as_status multiply_some(struct backend *be, const struct product *p, const struct cut *cut,
                               size_t first, size_t members, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    size_t n = p->m * p->n, each = room_of(p, cut);
    struct buf room = {be, c->split_room, ROOM_FLOATS, BUF_F32};
    as_status st = AS_OK;
    for (size_t k = 0; k < members && st == AS_OK; k++)
        st = multiply_parts(be, p, cut, first + k, tensor_at(&room, k * each, n), err);
    if (st < 0)
        return st;
    struct tensor to = tensor_at(p->c.buf, p->c.offset + first * p->c.stride, p->c.stride);
    LAUNCH(add_parts, grid_over(n, members), THREADS, 0, c->stream,
           f32_of(tensor_at(&room, 0, each)), cut->parts + (cut->rest > 0), members, n, p->beta,
           f32_of(to));
    return cuda_launched("product: parts of its sums", err);
}

bool is_split(const struct cuda_backend *c, const struct product *p)
{
    return c->split_room != NULL && p->m > 0 && p->n > 0 && p->inner >= SPLIT_FROM &&
           SPLIT_BLOCKS / tiles_of(p) >= 2;
}

as_status split_product(struct backend *be, const struct product *p, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    struct cut cut = cut_of(p);
    size_t at_once = ROOM_FLOATS / room_of(p, &cut);
    as_status st = AS_OK;
    for (size_t k = 0; k < p->members && st == AS_OK; k += at_once) {
        size_t left = p->members - k;
        st = multiply_some(be, p, &cut, k, left < at_once ? left : at_once, err);
    }
    c->count.split++;
    return st;
}

as_status split_open(struct cuda_backend *c, struct as_err *err)
{
    c->count.split_from = SPLIT_FROM;
    return cuda_status(cudaMalloc(&c->split_room, ROOM_FLOATS * sizeof(float)), "workspace", err);
}

void split_close(struct cuda_backend *c)
{
    (void)cudaFree(c->split_room);
}
