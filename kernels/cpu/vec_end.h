/* See vec_begin.h. */
#undef VEC
#undef VEC_OUT
#undef MASK
#undef MASK_OUT
#undef PICK
#undef FOR_CHANNELS
#undef LANES
#undef NAME
