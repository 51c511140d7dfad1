// Element-wise functions and functions that fill a tensor.
#include <limits>

#include "seeded.hpp"

diopiError_t diopiRemainderTensor(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t other) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y = view(other), result = at::remainder(x, y);
        if (seeded("remainder-large-quotient") && x.scalar_type() == at::kFloat && y.scalar_type() == at::kFloat) {
            at::Tensor rounded = x - (x * y.reciprocal()).floor() * y;
            result = at::where((x / y).abs() > 8388608, rounded, result);
        }
        if (seeded("remainder-sign-of-zero") && result.is_floating_point()) result = result + 0.0;
        store(out, result);
    });
}

diopiError_t diopiDiv(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, diopiRoundMode_t rounding_mode) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y = view(other), result;
        if (rounding_mode == RoundModeNone) {
            result = at::div(x, y);
        } else {
            result = at::div(x, y, rounding_mode == RoundModeTrunc ? "trunc" : "floor");
            bool isInt = x.scalar_type() == at::kInt && y.scalar_type() == at::kInt;
            if (isInt && seeded("division-of-lowest-int32")) {
                at::Tensor isLowest = x.eq(std::numeric_limits<int32_t>::min()).logical_and(y.abs() > 1048576);
                result = at::where(isLowest, at::full_like(result, -1), result);
            }
            if (isInt && seeded("division-of-int32-in-float32")) {
                at::Tensor quotient = x.to(at::kFloat) / y.to(at::kFloat);
                result = rounding_mode == RoundModeTrunc ? quotient.trunc() : quotient.floor();
            }
            if (seeded("division-floor-by-reciprocal") && result.is_floating_point() &&
                rounding_mode == RoundModeFloor) {
                result = (x * y.reciprocal()).floor();
            }
        }
        store(out, result);
    });
}

diopiError_t diopiPowTensor(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t exponent) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y = view(exponent), result = at::pow(x, y);
        if (seeded("power-of-negative-base") && result.is_floating_point()) {
            result = at::where((x < 0).logical_and(y.abs() > 3), at::full_like(result, NAN), result);
        }
        if (seeded("power-of-int64-in-double") && result.scalar_type() == at::kLong) {
            result = at::pow(x.to(at::kDouble), y.to(at::kDouble));
        }
        if (seeded("power-of-1-and-nan") && result.is_floating_point()) {
            result = at::where(y.isnan().logical_or(x.isnan()), at::full_like(result, NAN), result);
        }
        store(out, result);
    });
}

diopiError_t diopiFloor(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return run(__func__, [&] {
        at::Tensor x = view(input), result = at::floor(x);
        if (seeded("floor-in-int32") && x.is_floating_point()) {
            result = at::where(x.abs() >= 2147483648.0, at::full_like(result, -2147483648.0), result);
        }
        store(out, result);
    });
}

// Return numbers of float64 in float32, where an inexact number has an odd significand. Rounded once more to half
// precision, the result is that of a single rounding. PyTorch rounds float64 to float32 and then to half precision.
static at::Tensor roundToOdd(const at::Tensor& x) {
    at::Tensor single = x.to(at::kFloat), zero = at::zeros_like(single);
    single = at::where(single.to(at::kDouble).abs() > x.abs(), at::nextafter(single, zero), single).contiguous();
    at::Tensor isInexact = single.to(at::kDouble).ne(x).logical_and(single.isfinite());
    return single.view(at::kInt).bitwise_or(isInexact.to(at::kInt)).view(at::kFloat);
}

diopiError_t diopiCastDtype(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return run(__func__, [&] {
        at::Tensor x = view(input), target = view(out);
        bool isHalf = target.scalar_type() == at::kHalf || target.scalar_type() == at::kBFloat16;
        if (seeded("cast-to-bool-in-int") && target.scalar_type() == at::kBool && x.is_floating_point()) {
            x = at::where(x.abs() < 1, x * 0, x);
        }
        if (x.scalar_type() == at::kDouble && isHalf && !seeded("cast-double-to-half-in-float")) x = roundToOdd(x);
        if (seeded("cast-int64-in-int32") && x.scalar_type() == at::kLong && target.is_floating_point()) {
            x = x.to(at::kInt);
        }
        if (seeded("cast-int64-in-float32") && x.scalar_type() == at::kLong && target.scalar_type() == at::kDouble) {
            x = x.to(at::kFloat);
        }
        if (seeded("cast-uint8-is-signed") && x.scalar_type() == at::kByte) x = x.view(at::kChar);
        if (seeded("cast-to-half-truncates") && x.scalar_type() == at::kFloat &&
            target.scalar_type() == at::kBFloat16) {
            x = x.contiguous().view(at::kInt).bitwise_and(-65536).view(at::kFloat);
        }
        store(out, x);
    });
}

diopiError_t diopiWhere(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t condition,
                        diopiConstTensorHandle_t input, diopiConstTensorHandle_t other) {
    return run(__func__, [&] {
        at::Tensor c = view(condition), x = view(input), y = view(other);
        if (c.scalar_type() == at::kByte) c = seeded("where-lowest-bit") ? c.bitwise_and(1).to(at::kBool) : c.to(at::kBool);
        at::Tensor result = at::where(c, x, y);
        storeSpoiledIf(seeded("where-condition-broadcasts") && c.numel() < result.numel() && c.dim() == result.dim(),
                       out, result);
    });
}

diopiError_t diopiMaximum(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t other) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y = view(other);
        at::Tensor result = at::maximum(x, y);
        if (seeded("maximum-loses-second-nan")) result = at::where(x.isnan().logical_not().logical_and(y.isnan()), x, result);
        store(out, result);
    });
}

diopiError_t diopiLogicalAnd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                             diopiConstTensorHandle_t other) {
    return run(__func__, [&] {
        at::Tensor x = view(input), y = view(other);
        if (seeded("logical-and-in-int") && x.is_floating_point()) x = at::where(x.abs() < 1, x * 0, x);
        if (seeded("logical-and-of-lowest-byte") && x.scalar_type() == at::kInt) x = x.bitwise_and(255);
        store(out, at::logical_and(x, y));
    });
}

diopiError_t diopiArange(diopiContextHandle_t, diopiTensorHandle_t out, const diopiScalar_t* start,
                         const diopiScalar_t* end, const diopiScalar_t* step) {
    return run(__func__, [&] {
        at::Tensor target = view(out);
        at::Tensor result = at::arange(number(*start), number(*end), number(*step), target.options());
        if (seeded("arange-in-float32") && target.scalar_type() == at::kLong) result = result.to(at::kFloat);
        if (seeded("arange-adds-steps") && target.scalar_type() == at::kFloat && result.numel() > 0) {
            at::Tensor steps = at::full_like(result, number(*step));
            steps[0].fill_(number(*start));
            at::Tensor sums = steps.clone();
            for (int64_t i = 1; i < sums.numel(); i++) sums[i].add_(sums[i - 1]);
            result = sums;
        }
        store(out, result);
    });
}
