/* All operations. A file that uses a few of them includes their headers instead. */
#ifndef ASSAY_KERNELS_OPS_H
#define ASSAY_KERNELS_OPS_H

#include "kernels/ops_conv.h"
#include "kernels/ops_data.h"
#include "kernels/ops_dense.h"
#include "kernels/ops_loss.h"
#include "kernels/ops_optim.h"
#include "kernels/ops_seq.h"

#endif
