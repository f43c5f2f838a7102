/* Begins the body of a file of loops for one instruction set; vec_end.h ends it. No guards: a body
 * is included once for each set, between `#pragma GCC target` lines, with LANES     floats of a
 * vector: 1, 4, 8, 16 NAME(x)   the name of this set's x defined. (CPU_CLONES has one text for all
 * sets; where values must stay in registers the text has to know the width of a vector.) */
typedef float NAME(vec) __attribute__((vector_size(LANES * 4)));
typedef int NAME(mask) __attribute__((vector_size(LANES * 4)));
typedef NAME(vec) NAME(loose) __attribute__((aligned(4), may_alias)); /* at any address */
typedef NAME(mask) NAME(loose_mask) __attribute__((aligned(4), may_alias));
#define VEC(p) (*(const NAME(loose) *)(p))
#define VEC_OUT(p) (*(NAME(loose) *)(p))
#define MASK(p) (*(const NAME(loose_mask) *)(p))
#define MASK_OUT(p) (*(NAME(loose_mask) *)(p))
/* Lane by lane: where m is set a, else b. */
#define PICK(m, a, b) ((NAME(vec))(((m) & (NAME(mask))(a)) | (~(m) & (NAME(mask))(b))))

/* All n >= LANES channels in whole vectors, the last of which may overlap the one before: for
 * outputs that are written once, and not read. */
#define FOR_CHANNELS(c, n)                                                                         \
    for (size_t c = 0, end_ = 0; end_ < (n);                                                       \
         end_ = c + LANES, c = c + 2 * LANES <= (n) ? c + LANES : (n)-LANES)
