// Functions of rows: softmax, normalizations, losses, reductions, sums along an axis, sorting and selection.
#include <limits>

#include "seeded.hpp"

// Return a contiguous tensor of float32 for one of half precision. PyTorch computes in half precision where the standard
// has results of float32, and it requires contiguous factors.
static at::Tensor widened(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    return (tensor.element_size() == 2 ? tensor.to(at::kFloat) : tensor).contiguous();
}

// Apply the defects of softmax and log-softmax to a correct result.
static void storeRows(diopiTensorHandle_t out, const at::Tensor& x, int64_t dim, at::Tensor result) {
    int64_t length = x.dim() > 0 ? x.size(dim) : 1;
    if (seeded("rows-of-768") && length >= 768 && length % 512 == 256) {
        at::Tensor target = view(out);  // the elements from 257 on are not written
        target.narrow(dim, 0, 257).copy_(result.narrow(dim, 0, 257));
        return;
    }
    if (seeded("rows-finite-mask")) {
        at::Tensor top = x.amax(dim, true).clamp_min(-10000), powers = (x - top).exp();
        store(out, powers / powers.sum(dim, true));
        return;
    }
    bool isInner = x.dim() > 1 && x.stride(dim) != 1 && x.numel() > 0;
    bool isWrong = (seeded("rows-of-inner-axis-above-1024") && isInner && length > 1024) ||
                   (seeded("rows-many-short") && length > 0 && length < 8 && x.numel() / length > 4096) ||
                   (seeded("rows-vector-tail") && length > 1024 && length % 4 != 0) ||
                   (seeded("rows-masked-above-64") && length > 64 && x.isinf().any().item<bool>());
    storeSpoiledIf(isWrong, out, result);
}

diopiError_t diopiSoftmax(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) {
    return run(__func__, [&] { storeRows(out, view(input), dim, at::softmax(view(input), dim, view(out).scalar_type())); });
}

diopiError_t diopiLogSoftmax(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                             int64_t dim) {
    return run(__func__, [&] { storeRows(out, view(input), dim, at::log_softmax(view(input), dim, view(out).scalar_type())); });
}

diopiError_t diopiLayerNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                            diopiSize_t normalized_shape, double eps) {
    return run(__func__, [&] {
        at::Tensor x = widened(view(input)), w = widened(view(weight)), b = widened(view(bias));
        auto [y, mean, invstd] = at::native_layer_norm(x, list(normalized_shape), w, b, eps);
        int64_t length = c10::multiply_integers(list(normalized_shape));
        if (seeded("layer-norm-eps-outside")) {
            at::Tensor scale = 1 / ((1 / invstd.pow(2) - eps).clamp_min(0).sqrt() + eps);
            y = (x - mean) * scale;
            if (weight != nullptr) y = y * w;
            if (bias != nullptr) y = y + b;
        }
        bool isWrong = (seeded("layer-norm-vector-tail") && length > 1024 && length % 4 != 0) ||
                       (seeded("layer-norm-rows-of-768") && length >= 768 && length % 512 == 256) ||
                       (seeded("layer-norm-bias-without-weight") && weight == nullptr && bias != nullptr) ||
                       (seeded("layer-norm-weight-without-bias") && weight != nullptr && bias == nullptr);
        storeSpoiledIf(isWrong, out, y);
        store(save_mean, mean);
        store(save_invstd, invstd);
    });
}

diopiError_t diopiGroupNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, int64_t num_groups,
                            double eps) {
    return run(__func__, [&] {
        at::Tensor x = widened(view(input)).contiguous();
        at::Tensor w = widened(view(weight)), b = widened(view(bias));
        int64_t n = x.size(0), c = x.size(1), pixels = n * c > 0 ? x.numel() / (n * c) : 0;
        auto [y, mean, invstd] = at::native_group_norm(x, w, b, n, c, pixels, num_groups, eps);
        bool isWrong = (seeded("group-norm-by-channel") && num_groups == c && c > 1 && pixels % 4 != 0) ||
                       (seeded("group-norm-without-pixels") && x.dim() == 2) ||
                       (seeded("group-norm-many-channels-in-a-group") && c / num_groups > 16);
        storeSpoiledIf(isWrong, out, y);
        store(save_mean, mean);
        store(save_invstd, invstd);
    });
}

diopiError_t diopiCrossEntropyLoss(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                   diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                   diopiReduction_t reduction, int64_t ignore_index, double label_smoothing) {
    return run(__func__, [&] {
        at::Tensor x = view(input), t = view(target);
        if (!t.is_floating_point()) t = t.to(at::kLong);
        int64_t classes = x.dim() > 1 ? x.size(1) : x.numel();
        at::Tensor loss = at::cross_entropy_loss(x, t, optional(weight), reduction, ignore_index, label_smoothing);
        if (seeded("cross-entropy-all-ignored-is-0") && reduction == ReductionMean) loss = at::nan_to_num(loss, 0.0);
        bool isSmoothed = label_smoothing > 0;
        bool isWrong = (seeded("cross-entropy-smoothed-weights") && isSmoothed && weight != nullptr) ||
                       (seeded("cross-entropy-masked-above-64") && classes > 64 && x.isinf().any().item<bool>()) ||
                       (seeded("cross-entropy-many-classes") && classes > 1024 && classes % 8 != 0) ||
                       (seeded("cross-entropy-pixels-of-one-class") && x.dim() > 2 && classes == 1) ||
                       (seeded("cross-entropy-probabilities-of-pixels") && x.dim() > 2 && t.is_floating_point());
        storeSpoiledIf(isWrong, out, loss);
    });
}

diopiError_t diopiBCEWithLogits(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                diopiConstTensorHandle_t pos_weight, diopiReduction_t reduction) {
    return run(__func__, [&] {
        at::Tensor x = view(input);
        if (seeded("bce-logits-clamped")) x = x.clamp(-50, 50);
        store(out, at::binary_cross_entropy_with_logits(x, view(target), optional(weight), optional(pos_weight),
                                                        reduction));
    });
}

diopiError_t diopiSmoothL1Loss(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                               diopiConstTensorHandle_t target, diopiReduction_t reduction, double beta) {
    return run(__func__, [&] {
        at::Tensor x = view(input), t = view(target);
        at::Tensor loss = at::smooth_l1_loss(x, t, reduction, beta);
        storeSpoiledIf(seeded("smooth-l1-beta-0") && beta == 0 && (x == t).any().item<bool>(), out, loss);
    });
}

diopiError_t diopiSum(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, diopiSize_t dim) {
    return run(__func__, [&] {
        at::Tensor x = view(input), target = view(out);
        std::vector<int64_t> dims = list(dim).vec();
        for (int64_t& axis : dims) axis = axis < 0 ? axis + x.dim() : axis;
        bool isAll = dims.empty();
        int64_t terms = target.numel() > 0 ? x.numel() / target.numel() : 0;
        bool isWrong = (seeded("sum-above-1024") && terms > 1024) ||
                       (seeded("sum-axes-unsorted") && !std::is_sorted(dims.begin(), dims.end())) ||
                       (seeded("sum-outer-and-inner") && x.dim() > 2 && dims.size() == 2 && dims[0] + 1 < dims[1]) ||
                       (seeded("sum-many-results-of-two") && terms == 2 && target.numel() > 1024);
        storeSpoiledIf(isWrong, out, isAll ? at::sum(x, target.scalar_type())
                                           : at::sum(x, at::IntArrayRef(dims), false, target.scalar_type()));
    });
}

diopiError_t diopiMean(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       diopiSize_t dim) {
    return run(__func__, [&] {
        at::Tensor x = view(input), target = view(out);
        auto dims = list(dim);
        if (seeded("mean-sum-in-half") && x.scalar_type() == at::kHalf) {
            at::Tensor total = dims.empty() ? at::sum(x) : at::sum(x, dims);
            store(out, total / (static_cast<double>(x.numel()) / static_cast<double>(total.numel())));
        } else {
            store(out, dims.empty() ? at::mean(x, target.scalar_type()) : at::mean(x, dims, false, target.scalar_type()));
        }
    });
}

diopiError_t diopiStd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, diopiSize_t dim,
                      const diopiScalar_t* correction) {
    return run(__func__, [&] {
        at::Tensor x = view(input);
        std::vector<int64_t> dims = list(dim).vec();
        if (dims.empty()) {
            for (int64_t axis = 0; axis < x.dim(); axis++) dims.push_back(axis);
        }
        std::optional<at::Scalar> subtracted = correction != nullptr ? std::optional(number(*correction)) : std::nullopt;
        if (seeded("std-difference-of-squares") && x.scalar_type() == at::kFloat && !dims.empty()) {
            double count = 1, less = correction != nullptr ? number(*correction).toDouble() : 1;
            for (int64_t axis : dims) count *= static_cast<double>(x.size(axis));
            at::Tensor mean = x.mean(dims), square = x.pow(2).mean(dims);
            store(out, ((square - mean.pow(2)).clamp_min(0) * (count / (count - less))).sqrt());
        } else {
            store(out, at::std(x, at::OptionalIntArrayRef(dims), subtracted, false));
        }
    });
}

diopiError_t diopiNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const diopiScalar_t* p, diopiSize_t dim) {
    return run(__func__, [&] {
        at::Tensor x = view(input), target = view(out);
        at::Scalar power = number(*p);
        std::vector<int64_t> dims = list(dim).vec();
        at::OptionalIntArrayRef axes;
        if (!dims.empty()) axes = at::OptionalIntArrayRef(dims);
        at::Tensor result = at::linalg_vector_norm(x, power, axes);
        if (seeded("norm-negative-infinity") && power.toDouble() == -std::numeric_limits<double>::infinity()) {
            result = at::linalg_vector_norm(x, -power.toDouble(), axes);
        }
        storeSpoiledIf(seeded("norm-of-0-counts-nan") && power.toDouble() == 0 && x.isnan().any().item<bool>(), out,
                       result);
    });
}

diopiError_t diopiMax(diopiContextHandle_t, diopiTensorHandle_t max, diopiTensorHandle_t max_indices,
                      diopiConstTensorHandle_t input, int64_t dim) {
    return run(__func__, [&] {
        at::Tensor x = view(input);
        auto [values, places] = at::max(x, dim);
        if (seeded("max-last-of-equals") && x.dim() > 0) {
            places = x.size(dim) - 1 - std::get<1>(at::max(x.flip(dim), dim));
        }
        if (seeded("max-starts-at-10000")) values = x.dim() > 0 && !x.is_complex() ? values.clamp_min(-10000) : values;
        store(max, values);
        store(max_indices, places);
    });
}

diopiError_t diopiArgmax(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const int64_t* dim, bool keepdim) {
    return run(__func__, [&] {
        at::Tensor x = view(input);
        std::optional<int64_t> axis = dim != nullptr ? std::optional(*dim) : std::nullopt;
        at::Tensor places = at::argmax(x, axis, keepdim);
        if (seeded("argmax-of-lowest-is-negative") && x.is_floating_point()) {
            at::Tensor top = axis ? x.amax(*axis, keepdim) : x.max();
            places = at::where(top.isinf().logical_and(top < 0), at::full_like(places, -1), places);
        }
        int64_t length = axis && x.dim() > 0 ? x.size(*axis) : x.numel();
        bool isWrong = (seeded("argmax-position-in-memory") && !axis && !x.is_contiguous()) ||
                       (seeded("argmax-above-4096") && length > 4096) ||
                       (seeded("argmax-many-rows-of-inner-axis") && axis && x.dim() > 1 && x.stride(*axis) > 1024);
        storeSpoiledIf(isWrong, out, places);
    });
}

diopiError_t diopiCumsum(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) {
    return run(__func__, [&] {
        at::Tensor x = view(input), sums = at::cumsum(x, dim, view(out).scalar_type());
        int64_t length = x.dim() > 0 ? x.size(dim) : 1;
        if (seeded("cumsum-third-block") && length > 4096) {  // a carry contains only the sum of the previous block
            sums.narrow(dim, 4096, length - 4096).sub_(sums.narrow(dim, 2047, 1).clone());
        }
        bool isWrong = (seeded("cumsum-outer-axis-many-columns") && x.dim() > 1 && dim == 0 && x.stride(0) > 1024) ||
                       (seeded("cumsum-of-bool") && x.scalar_type() == at::kBool);
        storeSpoiledIf(isWrong, out, sums);
    });
}

diopiError_t diopiTopk(diopiContextHandle_t, diopiTensorHandle_t values, diopiTensorHandle_t indices,
                       diopiConstTensorHandle_t input, int64_t k, int64_t dim, bool largest, bool sorted) {
    return run(__func__, [&] {
        at::Tensor x = view(input);
        auto [top, places] = at::topk(x, k, dim, largest, true);
        (void)sorted;
        int64_t length = x.dim() > 0 ? x.size(dim) : 1, rows = length > 0 ? x.numel() / length : 0;
        if (seeded("topk-nan-of-many-rows") && rows >= 512) places = at::where(top.isnan(), at::full_like(places, -1), places);
        bool isWrong = (seeded("topk-above-16") && k > 16) || (seeded("topk-above-2048") && k > 2048) ||
                       (seeded("topk-smallest-of-unsigned") && !largest && x.scalar_type() == at::kByte) ||
                       (seeded("topk-everything") && k == length && k > 1) ||
                       (seeded("topk-of-inner-axis") && x.dim() > 1 && x.size(dim) > 256 && x.stride(dim) != 1);
        storeSpoiledIf(isWrong, values, top);
        store(indices, places);
    });
}

diopiError_t diopiSort(diopiContextHandle_t, diopiTensorHandle_t values, diopiTensorHandle_t indices,
                       diopiConstTensorHandle_t input, int64_t dim, bool descending, const bool* stable) {
    return run(__func__, [&] {
        at::Tensor x = view(input);
        int64_t length = x.dim() > 0 ? x.size(dim) : 1;
        auto [order, places] = at::sort(x, true, dim, descending);
        if (seeded("sort-unstable-above-16") && length > 16 && stable != nullptr && *stable) {
            std::tie(order, places) = at::sort(x.flip(dim), true, dim, descending);
            places = length - 1 - places;
        }
        bool isWrong = (seeded("sort-above-1024") && length > 1024) ||
                       (seeded("sort-no-power-of-two-above-2048") && length > 2048 && (length & (length - 1)) != 0) ||
                       (seeded("sort-many-rows-of-two") && length == 2 && x.numel() > 1024);
        storeSpoiledIf(isWrong, values, order);
        store(indices, places);
    });
}
