// What the operators of the seeded vendor share: tensors of PyTorch for those of DIOPI, and the choice of a defect.
#pragma once

#include <ATen/ATen.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "../cpp/example.hpp"

// Choose the defect that the vendor has from now on; NULL makes the vendor correct.
extern "C" __attribute__((visibility("default"))) void chooseSeededDefect(const char* defect);

// Return whether the vendor has this defect. At first, it has the one that the environment variable
// DIOPI_SEEDED_DEFECT names.
bool seeded(const char* defect);

// Return a view of the memory of a tensor of DIOPI; NULL gives an undefined tensor.
at::Tensor view(diopiConstTensorHandle_t tensor);

// Write `result` to `out`, and convert its elements to the type of `out`.
void store(diopiConstTensorHandle_t out, const at::Tensor& result);

// Return a copy of `result` whose last element has another value.
at::Tensor spoiled(const at::Tensor& result);

// Write `result` to `out`; if `isWrong`, the last element has another value.
inline void storeSpoiledIf(bool isWrong, diopiConstTensorHandle_t out, const at::Tensor& result) {
    store(out, isWrong ? spoiled(result) : result);
}

inline at::IntArrayRef list(const diopiSize_t& size) {
    return at::IntArrayRef(size.data, static_cast<size_t>(size.len));
}

inline at::Scalar number(const diopiScalar_t& scalar) {
    if (scalar.stype == diopi_dtype_bool) return scalar.ival != 0;
    if (scalar.stype <= diopi_dtype_uint64) return scalar.ival;
    return scalar.fval;
}

inline std::optional<at::Tensor> optional(diopiConstTensorHandle_t tensor) {
    return tensor != nullptr ? std::optional<at::Tensor>(view(tensor)) : std::nullopt;
}

// Run `body`. A type that PyTorch does not support gives the error code for it.
template <typename Body>
diopiError_t run(const char* function, Body body) {
    return guarded(function, [&] {
        at::InferenceMode mode;
        try {
            body();
        } catch (const c10::Error& error) {
            std::string reason = error.what_without_backtrace();
            bool isType = reason.find("not implemented for") != std::string::npos;
            throw Failure(isType ? diopiDtypeNotSupported : diopiErrorOccurred, reason);
        }
    });
}
