// Functions that move elements: indices, joining, permutations, pooling and interpolation.
#include <vector>

#include "seeded.hpp"

diopiError_t diopiGather(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim,
                         diopiConstTensorHandle_t index) {
    return run(__func__, [&] {
        at::Tensor x = view(input), places = view(index).to(at::kLong);
        at::Tensor result = at::gather(x, dim, places);
        bool isNarrower = false;
        for (int64_t axis = 0; axis < x.dim() && places.dim() == x.dim(); axis++) {
            isNarrower |= axis != at::maybe_wrap_dim(dim, x.dim()) && places.size(axis) < x.size(axis);
        }
        storeSpoiledIf((seeded("gather-narrow-index") && isNarrower) ||
                           (seeded("gather-above-4096") && x.dim() > 0 && x.size(dim) > 4096),
                       out, result);
    });
}

diopiError_t diopiScatter(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim,
                          diopiConstTensorHandle_t src, diopiConstTensorHandle_t index, const char* reduce) {
    return run(__func__, [&] {
        at::Tensor x = view(input), source = view(src), places = view(index).to(at::kLong), result;
        std::string kind = reduce != nullptr ? reduce : "";
        if (kind.empty()) {
            result = at::scatter(x, dim, places, source);
        } else {
            result = at::scatter(x, dim, places, source, kind);
        }
        bool isHalf = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
        if (seeded("scatter-adds-of-half-lost") && kind == "add" && isHalf) {
            result = at::scatter(x, dim, places, source.narrow_copy(0, 0, source.dim() > 0 ? source.size(0) : 0));
        }
        storeSpoiledIf(seeded("scatter-narrow-index") && places.numel() < source.numel(), out, result);
    });
}

diopiError_t diopiIndexSelect(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                              int64_t dim, diopiConstTensorHandle_t index) {
    return run(__func__, [&] {
        at::Tensor x = view(input), places = view(index);
        at::Tensor result = at::index_select(x, dim, places);
        bool isWrong = (seeded("index-select-above-4096") && x.dim() > 0 && x.size(dim) > 4096) ||
                       (seeded("index-select-many-indices") && places.numel() > 1024) ||
                       (seeded("index-select-index-strides") && !places.is_contiguous());
        storeSpoiledIf(isWrong, out, result);
    });
}

diopiError_t diopiEmbeddingBackward(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t grad,
                                    diopiConstTensorHandle_t indices, int64_t num_weights, int64_t padding_idx,
                                    bool scale_grad_byfreq, bool) {
    return run(__func__, [&] {
        at::Tensor g = view(grad), places = view(indices);
        at::Tensor result = at::embedding_dense_backward(g, places, num_weights, padding_idx, scale_grad_byfreq);
        int64_t most = places.numel() > 0 ? at::bincount(places.reshape({-1}).to(at::kLong)).max().item<int64_t>() : 0;
        bool isWrong = (seeded("embedding-count-in-uint8") && scale_grad_byfreq && most > 255) ||
                       (seeded("embedding-more-than-32-equal") && most > 32) ||
                       (seeded("embedding-first-row-padded") && padding_idx == 0) ||
                       (seeded("embedding-width-not-of-4") && g.dim() > 0 && g.size(-1) % 4 != 0 && g.size(-1) > 128);
        storeSpoiledIf(isWrong, out, result);
    });
}

diopiError_t diopiIndexPut(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                           diopiConstTensorHandle_t values, diopiConstTensorHandle_t* indices, int64_t indices_counts,
                           bool accumulate) {
    return run(__func__, [&] {
        c10::List<std::optional<at::Tensor>> places;
        int64_t most = 0, tensors = 0;
        for (int64_t i = 0; i < indices_counts; i++) {
            places.push_back(optional(indices[i]));
            if (indices[i] == nullptr) continue;
            at::Tensor place = view(indices[i]);
            tensors++;
            if (place.numel() > 0 && place.scalar_type() != at::kBool) {
                most = std::max(most, std::get<2>(at::_unique2(place, true, false, true)).max().item<int64_t>());
            }
        }
        at::Tensor result = at::index_put(view(input), places, view(values), accumulate);
        bool isWrong = (seeded("index-put-more-than-32-equal") && accumulate && most > 32) ||
                       (seeded("index-put-three-indices") && tensors > 2) ||
                       (seeded("index-put-broadcast-values") && view(values).numel() == 1 && result.numel() > 1);
        storeSpoiledIf(isWrong, out, result);
    });
}

diopiError_t diopiNonzero(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input) {
    return run(__func__, [&] {
        at::Tensor x = view(input), places = at::nonzero(x);
        if (seeded("nonzero-above-65536") && places.size(0) > 65536) places = places.narrow(0, 0, 65536);
        if (seeded("nonzero-above-1024") && places.size(0) > 1024) places = places.narrow(0, 0, 1024);
        std::vector<int64_t> shape = places.sizes().vec();
        diopiSize_t size{shape.data(), static_cast<int64_t>(shape.size())};
        check(diopiRequireTensor(ctx, out, &size, nullptr, diopi_dtype_int64, diopi_device));
        store(*out, places);
    });
}

diopiError_t diopiCat(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t* tensors,
                      int64_t num_inputs, int64_t dim) {
    return run(__func__, [&] {
        std::vector<at::Tensor> parts;
        for (int64_t i = 0; i < num_inputs; i++) {
            at::Tensor part = view(tensors[i]);
            if (seeded("cat-strides-after-first") && i > 0 && !part.is_contiguous()) {
                part = at::from_blob(part.data_ptr(), part.sizes(), part.options());
            }
            parts.push_back(part);
        }
        bool isWrong = (seeded("cat-first-empty") && !parts.empty() && parts[0].numel() == 0) ||
                       (seeded("cat-one-tensor") && parts.size() == 1) ||
                       (seeded("cat-more-than-64") && parts.size() > 64) ||
                       (seeded("cat-same-tensor-twice") && parts.size() > 1 && parts[0].data_ptr() == parts[1].data_ptr());
        storeSpoiledIf(isWrong, out, at::cat(parts, dim));
    });
}

diopiError_t diopiRoll(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       diopiSize_t shifts, diopiSize_t dims) {
    return run(__func__, [&] {
        at::Tensor x = view(input);
        bool isWrong = false;
        for (int64_t i = 0; i < shifts.len; i++) {
            int64_t length = dims.len > i && x.dim() > 0 ? x.size(dims.data[i]) : x.numel();
            isWrong |= seeded("roll-beyond-size") && std::abs(shifts.data[i]) > length;
            isWrong |= seeded("roll-back-beyond-size") && -shifts.data[i] > length;
        }
        isWrong |= seeded("roll-same-axis-twice") && dims.len == 2 && dims.data[0] == dims.data[1];
        storeSpoiledIf(isWrong, out, at::roll(x, list(shifts), list(dims)));
    });
}

diopiError_t diopiPermute(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiSize_t dims) {
    return run(__func__, [&] {
        at::Tensor x = view(input), result = at::permute(x, list(dims));
        bool isTiled = x.dim() > 1 && result.size(-1) > 64 && result.size(-2) > 64;
        bool isWrong = (seeded("permute-tile-remainder") && isTiled && result.stride(-2) == 1 &&
                        (result.size(-1) % 64 != 0 || result.size(-2) % 64 != 0)) ||
                       (seeded("permute-bytes-of-one") && x.element_size() == 1 && x.numel() > 4096);
        storeSpoiledIf(isWrong, out, result);
    });
}

diopiError_t diopiMaxPool2dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding,
                                    diopiSize_t dilation, bool ceil_mode, diopiConstTensorHandle_t indices) {
    return run(__func__, [&] {
        at::Tensor g = view(grad_output), x = view(input), target = view(grad_input);
        at::Tensor result = at::max_pool2d_with_indices_backward(g, x, list(kernel_size), list(stride), list(padding),
                                                                 list(dilation), ceil_mode, view(indices));
        if (seeded("max-pool-gradient-without-zeros")) result = result + target;
        bool overlaps = list(stride).size() > 0 && list(stride)[0] < list(kernel_size)[0];
        storeSpoiledIf(seeded("max-pool-gradient-overlap-of-half") && overlaps && x.scalar_type() == at::kHalf,
                       grad_input, result);
    });
}

// Return whether a window of a pooling extends beyond the padded input.
static bool overhangs(const at::Tensor& x, const at::Tensor& y, at::IntArrayRef kernel, at::IntArrayRef stride,
                      at::IntArrayRef padding) {
    bool found = false;
    for (int axis = 0; axis < 2; axis++) {
        auto at = [&](at::IntArrayRef values, int64_t missing) {
            return values.empty() ? missing : values.size() == 1 ? values[0] : values[axis];
        };
        int64_t step = at(stride, at(kernel, 1)), pad = at(padding, 0);
        found |= (y.size(axis - 2) - 1) * step + at(kernel, 1) > x.size(axis - 2) + 2 * pad;
    }
    return found;
}

diopiError_t diopiAvgPool2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,
                            bool count_include_pad, const int64_t* divisor_override) {
    return run(__func__, [&] {
        std::optional<int64_t> divisor = divisor_override != nullptr ? std::optional(*divisor_override) : std::nullopt;
        at::Tensor x = view(input), y = at::avg_pool2d(x, list(kernel_size), list(stride), list(padding), ceil_mode,
                                                       count_include_pad, divisor);
        bool isOverhanging = overhangs(x, y, list(kernel_size), list(stride), list(padding));
        bool isWrong = (seeded("average-counts-overhang") && isOverhanging && count_include_pad && !divisor) ||
                       (seeded("average-divisor-of-overhang") && isOverhanging && divisor.has_value()) ||
                       (seeded("average-without-batch") && x.dim() == 3);
        storeSpoiledIf(isWrong, out, y);
    });
}

diopiError_t diopiAvgPool2dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,
                                    bool count_include_pad, const int64_t* divisor_override) {
    return run(__func__, [&] {
        std::optional<int64_t> divisor = divisor_override != nullptr ? std::optional(*divisor_override) : std::nullopt;
        at::Tensor x = view(input), g = view(grad_output);
        at::Tensor result = at::avg_pool2d_backward(g, x, list(kernel_size), list(stride), list(padding), ceil_mode,
                                                    count_include_pad, divisor);
        bool isOverhanging = overhangs(x, g, list(kernel_size), list(stride), list(padding));
        storeSpoiledIf(seeded("average-gradient-counts-overhang") && isOverhanging && count_include_pad && !divisor,
                       grad_input, result);
    });
}

diopiError_t diopiAdaptiveAvgPool2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                    diopiSize_t output_size) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y = at::adaptive_avg_pool2d(x, list(output_size));
        bool isDivisible = y.numel() > 0 && x.size(-1) % y.size(-1) == 0 && x.size(-2) % y.size(-2) == 0;
        bool isLarger = y.size(-1) > x.size(-1) || y.size(-2) > x.size(-2);
        bool isWrong = (seeded("adaptive-not-divisible") && !isDivisible && !isLarger) ||
                       (seeded("adaptive-larger-result") && isLarger) ||
                       (seeded("adaptive-one-of-many-pixels") && y.size(-1) == 1 && y.size(-2) == 1 &&
                        x.size(-1) * x.size(-2) > 1024);
        storeSpoiledIf(isWrong, out, y);
    });
}

diopiError_t diopiUpsampleNearest(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                  diopiSize_t size) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y;
        auto none = std::nullopt;
        if (size.len == 1) y = at::upsample_nearest1d(x, list(size), none);
        if (size.len == 2) y = at::upsample_nearest2d(x, list(size), none, none);
        if (size.len == 3) y = at::upsample_nearest3d(x, list(size), none, none, none);
        if (seeded("nearest-divides-by-scale")) {  // with 14 / 2 elements, 1 / (2 / 14) is less than 7
            y = x;
            for (int64_t axis = 0; axis < size.len; axis++) {
                int64_t from = x.size(axis + 2), to = size.data[axis];
                float scale = static_cast<float>(to) / static_cast<float>(from);
                at::Tensor places = (at::arange(to, at::kFloat) / scale).floor().to(at::kLong).clamp(0, from - 1);
                y = at::index_select(y, axis + 2, places);
            }
        }
        bool isSmaller = size.len > 0 && y.size(-1) < x.size(-1);
        storeSpoiledIf(seeded("nearest-smaller-result") && isSmaller, out, y);
    });
}

diopiError_t diopiUpsampleLinear(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                 diopiSize_t size, bool align_corners, const char* mode) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y;
        std::string kind = mode;
        auto none = std::nullopt;
        if (kind == "linear") y = at::upsample_linear1d(x, list(size), align_corners, none);
        if (kind == "bilinear") y = at::upsample_bilinear2d(x, list(size), align_corners, none, none);
        if (kind == "trilinear") y = at::upsample_trilinear3d(x, list(size), align_corners, none, none, none);
        if (kind == "bicubic") y = at::upsample_bicubic2d(x, list(size), align_corners, none, none);
        if (!y.defined()) throw Failure(diopiErrorOccurred, "mode '" + kind + "' is unknown");
        bool isWrong = (seeded("linear-one-row-with-corners") && align_corners && y.size(-1) == 1) ||
                       (seeded("linear-half-above-256") && x.element_size() == 2 && y.size(-1) > 256) ||
                       (seeded("linear-smaller-result") && y.size(-1) < x.size(-1)) ||
                       (seeded("linear-one-pixel") && x.size(-1) == 1 && y.size(-1) > 1);
        storeSpoiledIf(isWrong, out, y);
    });
}
