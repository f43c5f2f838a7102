/* Named convolutional networks, as the blocks that they stand for. w is the width; its default is
 * in parentheses.
 *
 *   lenet     LeNet-5 (LeCun et al. 1998) with relu and maximum pooling: 6 and 16 channels, 120 and
 *             84 units; another width scales all four
 *   vgg8      six 3x3 convolutions in three stages w, 2w, 4w (32), one dense layer (Simonyan and
 *             Zisserman 2015, made smaller, with batch normalisation)
 *   resnet8   one residual block in each of three stages w, 2w, 4w (16) (He et al. 2016, section
 *             4.2)
 *   resnet18  two residual blocks in each of four stages w … 8w (64), with the 3x3 first layer for
 *             small images
 */
#include "model/document/train_spec_priv.h"

const char *const train_preset_words[] = {"lenet", "vgg8", "resnet8", "resnet18", NULL};

static struct train_block *add_block(struct train_model_spec *m, train_block_kind kind)
{
    struct train_block *b = &m->blocks[m->n_blocks++];
    *b = (struct train_block){.kind = kind};
    return b;
}

static void add_conv(struct train_model_spec *m, int64_t out, int64_t kernel, int64_t stride)
{
    struct train_block *b = add_block(m, BLOCK_CONV);
    b->out = out;
    b->kernel = kernel;
    b->stride = stride;
    b->padding = -1;
    b->batch_norm = true;
}

static void add_pool(struct train_model_spec *m)
{
    struct train_block *b = add_block(m, BLOCK_POOL_MAX);
    b->kernel = b->stride = 2;
}

static void add_lenet(struct train_model_spec *m, int64_t width)
{
    int64_t w = width ? width : 6;
    add_conv(m, w, 5, 1);
    m->blocks[0].batch_norm = false;
    add_pool(m);
    add_conv(m, (w * 16 + 3) / 6, 5, 1);
    m->blocks[2].batch_norm = false;
    m->blocks[2].padding = 0;
    add_pool(m);
    add_block(m, BLOCK_DENSE)->out = 20 * w;
    add_block(m, BLOCK_DROPOUT);
    add_block(m, BLOCK_DENSE)->out = 14 * w;
    add_block(m, BLOCK_DROPOUT);
}

static void add_vgg8(struct train_model_spec *m, int64_t width)
{
    int64_t w = width ? width : 32;
    for (int stage = 0; stage < 3; stage++, w *= 2) {
        add_conv(m, w, 3, 1);
        add_conv(m, w, 3, 1);
        add_pool(m);
    }
    add_block(m, BLOCK_DENSE)->out = w;
    add_block(m, BLOCK_DROPOUT);
}

static void add_resnet(struct train_model_spec *m, int64_t width, int stages, int blocks)
{
    int64_t w = width;
    add_conv(m, w, 3, 1);
    for (int stage = 0; stage < stages; stage++, w *= 2)
        for (int i = 0; i < blocks; i++) {
            add_block(m, BLOCK_RESIDUAL)->inner = 2;
            add_conv(m, w, 3, stage > 0 && i == 0 ? 2 : 1);
            add_conv(m, w, 3, 1);
            m->blocks[m->n_blocks - 1].linear = true;
        }
    add_block(m, BLOCK_POOL_GLOBAL);
    add_block(m, BLOCK_DROPOUT);
}

void train_spec_preset(const char *name, int64_t width, struct train_model_spec *m)
{
    m->n_blocks = 0;
    if (as_streq(name, "vgg8"))
        add_vgg8(m, width);
    else if (as_streq(name, "resnet8"))
        add_resnet(m, width ? width : 16, 3, 1);
    else if (as_streq(name, "resnet18"))
        add_resnet(m, width ? width : 64, 4, 2);
    else
        add_lenet(m, width);
}
