/* cuDNN's graph interface on the host, as far as kernels/cuda uses it: descriptors with cuDNN's
 * rules (dnn_rules.cu), engines that convolve in plain loops (dnn.cu).
 *
 * A list of engines (heuristic mode A) begins with engines that must not be chosen, each for
 * another reason; each of them would give wrong values: random sums, Winograd, rounding, a note of
 * a later version, compilation at run time, a workspace past any bound, an engine that refuses.
 * Then follow an engine with tensor cores and a plain one. Shapes with O = 17 have no usable engine
 * in mode A, and shapes with C = 7 have none at all. */
#ifndef ASSAY_TESTS_KERNELS_EMU_DNN_CUH
#define ASSAY_TESTS_KERNELS_EMU_DNN_CUH

#include <cudnn_graph.h>

#include <map>
#include <vector>

struct cudnnContext {
    cudaStream_t stream;
};

struct dnn_engine {
    int64_t number;
    int64_t workspace; /* bytes */
    std::vector<cudnnBackendNumericalNote_t> numbers;
    std::vector<cudnnBackendBehaviorNote_t> behaviours;
    bool refuses;                /* no plan with it is ever ready */
    int64_t alignment;           /* that it needs of tensors */
    void (*round)(float *value); /* of the factors */
    bool spoils;
};

/* The values of one attribute, as bytes. */
struct dnn_values {
    cudnnBackendAttributeType_t type;
    int64_t n;
    std::vector<char> bytes;
    template <typename T> T at(int64_t i) const
    {
        T value;
        memcpy(&value, bytes.data() + (size_t)i * sizeof(T), sizeof(T));
        return value;
    }
};

struct dnn_descriptor {
    cudnnBackendDescriptorType_t type;
    bool ready;
    std::map<int, dnn_values> values;
    const struct dnn_engine *engine; /* of an engine, a configuration, a plan */
    struct dnn_descriptor *graph;    /* of a configuration, a plan */
    const dnn_values &of(int name) const
    {
        return values.at(name);
    }
    struct dnn_descriptor *child(int name) const
    {
        return (struct dnn_descriptor *)of(name).at<void *>(0);
    }
};

/* One convolution, read from a graph: the sizes in the order of cuDNN, and its tensors. */
struct dnn_work {
    cudnnBackendDescriptorType_t type;
    struct dnn_descriptor *x, *w, *y, *window;
    int64_t pad[2], stride[2], dilation[2];
    static int64_t size(const struct dnn_descriptor *tensor, int64_t i)
    {
        return tensor->of(CUDNN_ATTR_TENSOR_DIMENSIONS).at<int64_t>(i);
    }
};

struct dnn_work dnn_work_of(const struct dnn_descriptor *graph);

/* Whether the channels are innermost and the elements are dense. */
bool dnn_channels_last(const struct dnn_descriptor *tensor);

/* Whether d has everything that its type requires, and it agrees (dnn_rules.cu). */
cudnnStatus_t dnn_check(const struct dnn_descriptor *d);

/* Whether a descriptor of this type accepts this attribute. */
cudnnStatus_t dnn_may_set(const struct dnn_descriptor *d, int name,
                          cudnnBackendAttributeType_t type, int64_t n);

size_t dnn_size_of(cudnnBackendAttributeType_t type);

#endif
