// Normalizations. oneDNN takes scales, shifts and statistics in float32.
#include <cmath>

#include "tensor.hpp"

using dnnl::normalization_flags;
using Arguments = std::unordered_map<int, dnnl::memory>;

static dnnl::memory loadAsFloat(diopiConstTensorHandle_t handle, const std::string& name, int64_t size) {
    Tensor tensor(handle, name);
    require(tensor.numel == size, name + " has another size than expected");
    return convert(tensor.load({size}), rowMajor({size}, Type::f32));
}

// Adds scale and shift to the arguments, if there are any, and returns the flags for them.
static normalization_flags addWeights(Arguments& arguments, diopiConstTensorHandle_t weight,
                                      diopiConstTensorHandle_t bias, int64_t size) {
    normalization_flags flags = normalization_flags::none;
    if (weight != nullptr) {
        arguments[DNNL_ARG_SCALE] = loadAsFloat(weight, "weight", size);
        flags |= normalization_flags::use_scale;
    }
    if (bias != nullptr) {
        arguments[DNNL_ARG_SHIFT] = loadAsFloat(bias, "bias", size);
        flags |= normalization_flags::use_shift;
    }
    return flags;
}

static float* floats(const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); }

// Writes mean and 1 / √(variance + eps) to tensors that the caller may leave out.
static void storeStatistics(diopiTensorHandle_t mean, diopiTensorHandle_t invstd, const Arguments& arguments,
                            double eps) {
    dnnl::memory averages = arguments.at(DNNL_ARG_MEAN), variances = arguments.at(DNNL_ARG_VARIANCE);
    int64_t size = count(averages.get_desc().get_dims(), 0, averages.get_desc().get_dims().size());
    dnnl::memory inverses = allocate({size}, Type::f32);
    for (int64_t i = 0; i < size; i++) {
        floats(inverses)[i] = static_cast<float>(1 / std::sqrt(static_cast<double>(floats(variances)[i]) + eps));
    }
    if (mean != nullptr && Tensor(mean, "save_mean").numel == size) Tensor(mean, "save_mean").store(averages);
    if (invstd != nullptr && Tensor(invstd, "save_invstd").numel == size) Tensor(invstd, "save_invstd").store(inverses);
}

static void requireStatistics(diopiTensorHandle_t handle, const std::string& name, int64_t size) {
    Tensor tensor(handle, name);
    bool isFloating = tensor.type != Type::s32 && tensor.type != Type::s8 && tensor.type != Type::u8;
    require(isFloating, name + " has no floating-point type");
    require(tensor.numel == size, name + " has another size than expected");
}

static void update(diopiTensorHandle_t running, const char* name, const dnnl::memory& statistic, double momentum,
                   double factor) {
    if (running == nullptr) return;
    Tensor state(running, name);
    dnnl::memory values = convert(state.load({state.numel}), rowMajor({state.numel}, Type::f32));
    for (int64_t i = 0; i < state.numel; i++) {
        double current = floats(statistic)[i] * factor;
        floats(values)[i] = static_cast<float>((1 - momentum) * floats(values)[i] + momentum * current);
    }
    state.store(values);
}

diopiError_t diopiBatchNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                            diopiTensorHandle_t running_mean, diopiTensorHandle_t running_var, bool training,
                            double momentum, double eps) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), source(input, "input");
        requireType(result, source);
        requireShape(result, source.shape);
        require(source.rank() >= 2, "input has fewer than 2 axes");
        require(!training || source.numel > 0, "input has no elements");
        require(training || (running_mean != nullptr && running_var != nullptr), "a running statistic is NULL");
        int64_t channels = source.shape[1];
        Dims dims = {source.shape[0], channels, count(source.shape, 2, source.shape.size())};
        dnnl::memory from = source.load(dims), to = allocate(dims, result.type);
        Arguments arguments = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};
        normalization_flags flags = addWeights(arguments, weight, bias, channels);
        if (running_mean != nullptr) loadAsFloat(running_mean, "running_mean", channels);
        if (running_var != nullptr) loadAsFloat(running_var, "running_var", channels);
        if (training) {
            arguments[DNNL_ARG_MEAN] = allocate({channels}, Type::f32);
            arguments[DNNL_ARG_VARIANCE] = allocate({channels}, Type::f32);
        } else {
            flags |= normalization_flags::use_global_stats;
            arguments[DNNL_ARG_MEAN] = loadAsFloat(running_mean, "running_mean", channels);
            arguments[DNNL_ARG_VARIANCE] = loadAsFloat(running_var, "running_var", channels);
        }
        auto propagation = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
        dnnl::batch_normalization_forward::primitive_desc description(
            engine(), propagation, from.get_desc(), to.get_desc(), static_cast<float>(eps), flags);
        execute(dnnl::batch_normalization_forward(description), arguments);
        result.store(to);
        if (!training) return;
        double samples = static_cast<double>(dims[0] * dims[2]);
        storeStatistics(save_mean, save_invstd, arguments, eps);
        update(running_mean, "running_mean", arguments[DNNL_ARG_MEAN], momentum, 1);
        update(running_var, "running_var", arguments[DNNL_ARG_VARIANCE], momentum, samples / (samples - 1));
    });
}

diopiError_t diopiLayerNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                            diopiSize_t normalized_shape, double eps) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), source(input, "input");
        requireType(result, source);
        requireShape(result, source.shape);
        int64_t leading = source.rank() - normalized_shape.len;
        require(normalized_shape.len > 0 && leading >= 0, "normalized_shape has another length than expected");
        Dims trailing(source.shape.begin() + leading, source.shape.end());
        Dims expected(normalized_shape.data, normalized_shape.data + normalized_shape.len);
        require(trailing == expected, "the shape of input does not end in normalized_shape");
        int64_t size = count(trailing, 0, trailing.size()), rows = count(source.shape, 0, leading);
        for (diopiConstTensorHandle_t parameter : {weight, bias}) {
            if (parameter != nullptr) requireShape(Tensor(parameter, "weight or bias"), expected);
        }
        requireStatistics(save_mean, "save_mean", rows);
        requireStatistics(save_invstd, "save_invstd", rows);
        Dims dims = {rows, size};
        dnnl::memory from = source.load(dims), to = allocate(dims, result.type);
        Arguments arguments = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};
        normalization_flags flags = addWeights(arguments, weight, bias, size);
        arguments[DNNL_ARG_MEAN] = allocate({rows}, Type::f32);
        arguments[DNNL_ARG_VARIANCE] = allocate({rows}, Type::f32);
        dnnl::layer_normalization_forward::primitive_desc description(
            engine(), dnnl::prop_kind::forward_training, from.get_desc(), to.get_desc(), rowMajor({rows}, Type::f32),
            static_cast<float>(eps), flags);
        execute(dnnl::layer_normalization_forward(description), arguments);
        result.store(to);
        storeStatistics(save_mean, save_invstd, arguments, eps);
    });
}

#if DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR >= 303  // older versions have no group normalization
diopiError_t diopiGroupNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, int64_t num_groups,
                            double eps) {
    return guarded(__func__, [&] {
        Tensor result(out, "out"), source(input, "input");
        requireType(result, source);
        requireShape(result, source.shape);
        require(source.rank() >= 2, "input has fewer than 2 axes");
        int64_t channels = source.shape[1];
        require(num_groups > 0 && channels % num_groups == 0, "num_groups does not divide the number of channels");
        Dims dims = {source.shape[0], channels, count(source.shape, 2, source.shape.size())};
        Dims statistics = {source.shape[0], num_groups};
        requireStatistics(save_mean, "save_mean", source.shape[0] * num_groups);
        requireStatistics(save_invstd, "save_invstd", source.shape[0] * num_groups);
        dnnl::memory from = source.load(dims), to = allocate(dims, result.type);
        Arguments arguments = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};
        normalization_flags flags = addWeights(arguments, weight, bias, channels);
        arguments[DNNL_ARG_MEAN] = allocate(statistics, Type::f32);
        arguments[DNNL_ARG_VARIANCE] = allocate(statistics, Type::f32);
        dnnl::group_normalization_forward::primitive_desc description(
            engine(), dnnl::prop_kind::forward_training, from.get_desc(), to.get_desc(), num_groups,
            static_cast<float>(eps), flags);
        execute(dnnl::group_normalization_forward(description), arguments);
        result.store(to);
        storeStatistics(save_mean, save_invstd, arguments, eps);
    });
}
#endif
