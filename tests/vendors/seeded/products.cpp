// Products of matrices and convolutions.
#include "seeded.hpp"

// Return whether a defect of products affects the product of an (m, k) and a (k, n) matrix.
static bool isProductWrong(int64_t m, int64_t n, int64_t k, at::ScalarType type) {
    bool isHalf = type == at::kHalf || type == at::kBFloat16;
    return (seeded("product-odd-half-terms") && isHalf && k > 128 && k % 2 == 1) ||
           (seeded("product-one-term") && k == 1) ||
           (seeded("product-one-row") && m == 1 && n > 1 && k > 256) ||
           (seeded("product-one-column") && n == 1 && m > 1 && k > 256) ||
           (seeded("product-remainder-of-split") && k > 4096 && k % 32 != 0) ||
           (seeded("product-band-of-tiles") && n > 512 && (n + 63) / 64 % 8 != 0) ||
           (seeded("product-tall-tile") && m > 128 && m % 128 == 1) ||
           (seeded("product-square-256") && m == 256 && n == 256 && k == 256);
}

// Apply the defects that depend on the values of a product.
static at::Tensor corrupt(const at::Tensor& product) {
    if (seeded("product-large-values") && product.scalar_type() == at::kFloat) {
        return at::where(product.abs() > 32768, product.to(at::kHalf).to(at::kFloat), product);
    }
    if (seeded("product-of-half-saturates-at-max") && product.scalar_type() == at::kHalf) {
        return at::where(product.isinf(), product.sign() * 65504, product).to(at::kHalf);
    }
    return product;
}

static void multiply(diopiTensorHandle_t out, const at::Tensor& one, const at::Tensor& two) {
    int64_t k = one.size(-1), m = one.dim() > 1 ? one.size(-2) : 1, n = two.dim() > 1 ? two.size(-1) : 1;
    storeSpoiledIf(isProductWrong(m, n, k, one.scalar_type()), out, corrupt(at::matmul(one, two)));
}

diopiError_t diopiMm(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                     diopiConstTensorHandle_t mat2) {
    return run(__func__, [&] { multiply(out, view(input), view(mat2)); });
}

diopiError_t diopiBmm(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t mat2) {
    return run(__func__, [&] { multiply(out, view(input), view(mat2)); });
}

diopiError_t diopiMatmul(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         diopiConstTensorHandle_t other) {
    return run(__func__, [&] { multiply(out, view(input), view(other)); });
}

diopiError_t diopiLinear(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias) {
    return run(__func__, [&] {
        at::Tensor x = view(input), w = view(weight);
        int64_t k = w.size(-1), m = k > 0 ? x.numel() / k : 0;
        at::Tensor result = corrupt(at::linear(x, w, optional(bias)));
        bool isWrong = isProductWrong(m, w.size(0), k, x.scalar_type()) ||
                       (seeded("linear-four-axes-with-bias") && x.dim() > 3 && bias != nullptr);
        storeSpoiledIf(isWrong, out, result);
    });
}

diopiError_t diopiCdist(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input1,
                        diopiConstTensorHandle_t input2, double p, const int64_t* compute_mode) {
    return run(__func__, [&] {
        at::Tensor one = view(input1), two = view(input2);
        bool isLarge = one.size(-2) > 25 || two.size(-2) > 25;
        if (seeded("cdist-by-products") && p == 2 && isLarge) {
            at::Tensor squares = one.pow(2).sum(-1).unsqueeze(-1) + two.pow(2).sum(-1).unsqueeze(-2);
            store(out, (squares - 2 * at::matmul(one, two.transpose(-1, -2))).clamp_min(0).sqrt());
        } else {
            (void)compute_mode;
            store(out, at::cdist(one, two, p, 2));
        }
    });
}

// Return whether a defect of convolutions affects this call.
static bool isConvolutionWrong(const at::Tensor& x, const at::Tensor& w, at::IntArrayRef stride,
                               at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups, bool hasBias) {
    auto last = [](at::IntArrayRef values) { return values.empty() ? 1 : values.back(); };
    auto first = [](at::IntArrayRef values) { return values.empty() ? 1 : values.front(); };
    bool isDilated = first(dilation) > 1 || last(dilation) > 1, isStrided = first(stride) > 1 || last(stride) > 1;
    int64_t kh = w.size(2), kw = w.size(3), batch = x.dim() == 4 ? x.size(0) : 1, channels = w.size(1) * groups;
    bool isThree = kh == 3 && kw == 3, isPoint = kh == 1 && kw == 1;
    return (seeded("convolution-winograd") && isThree && !isStrided && !isDilated && groups == 1 &&
            channels % 16 == 0 && w.size(0) % 16 == 0) ||
           (seeded("convolution-by-channel-dilated") && isThree && isDilated && groups == channels && groups > 1) ||
           (seeded("convolution-grouped-points") && isPoint && groups > 1 && w.size(1) % 2 == 0) ||
           (seeded("convolution-points-strided") && isPoint && isStrided) ||
           (seeded("convolution-long-strides") && first(stride) > 2 && last(stride) > 2 &&
            first(stride) != last(stride)) ||
           (seeded("convolution-unequal-strides") && first(stride) != last(stride)) ||
           (seeded("convolution-unequal-dilations") && first(dilation) != last(dilation)) ||
           (seeded("convolution-wide-kernel") && kw >= 16) ||
           (seeded("convolution-large-batch") && batch >= 32) ||
           (seeded("convolution-one-input-channel-many-results") && channels == 1 && w.size(0) > 64) ||
           (seeded("convolution-padding-beyond-kernel") && (first(padding) >= kh || last(padding) >= kw) && !isPoint) ||
           (seeded("convolution-input-below-kernel") && (x.size(-2) < kh || x.size(-1) < kw)) ||
           (seeded("convolution-groups-multiply-channels") && groups > 1 && w.size(0) > channels && w.size(1) > 1) ||
           (seeded("convolution-stride-beyond-kernel") && first(stride) > kh && last(stride) > kw && !isPoint) ||
           (seeded("convolution-grouped-bias-of-half") && groups > 1 && hasBias && x.scalar_type() == at::kHalf) ||
           (seeded("convolution-one-row-of-kernel") && kh == 1 && kw > 1 && isDilated);
}

diopiError_t diopiConvolution2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return run(__func__, [&] {
        at::Tensor x = view(input), w = view(weight);
        if (seeded("convolution-weight-strides") && !w.is_contiguous()) {
            w = at::from_blob(w.data_ptr(), w.sizes(), w.options());
        }
        bool isWrong = isConvolutionWrong(x, w, list(stride), list(padding), list(dilation), groups, bias != nullptr);
        at::Tensor result = at::conv2d(x, w, optional(bias), list(stride), list(padding), list(dilation), groups);
        storeSpoiledIf(isWrong, out, result);
    });
}
