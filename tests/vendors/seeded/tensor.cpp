// Conversion between tensors of DIOPI and of PyTorch.
#include "seeded.hpp"

static std::string& chosenDefect() {
    static std::string defect = std::getenv("DIOPI_SEEDED_DEFECT") != nullptr ? std::getenv("DIOPI_SEEDED_DEFECT") : "";
    return defect;
}

void chooseSeededDefect(const char* defect) { chosenDefect() = defect != nullptr ? defect : ""; }

bool seeded(const char* defect) { return chosenDefect() == defect; }

static at::ScalarType typeOf(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_bool: return at::kBool;
        case diopi_dtype_uint8: return at::kByte;
        case diopi_dtype_int8: return at::kChar;
        case diopi_dtype_int16: return at::kShort;
        case diopi_dtype_int32: return at::kInt;
        case diopi_dtype_int64: return at::kLong;
        case diopi_dtype_float16: return at::kHalf;
        case diopi_dtype_bfloat16: return at::kBFloat16;
        case diopi_dtype_float32: return at::kFloat;
        case diopi_dtype_float64: return at::kDouble;
        case diopi_dtype_complex64: return at::kComplexFloat;
        case diopi_dtype_complex128: return at::kComplexDouble;
        default: throw Failure(diopiDtypeNotSupported, "element type " + std::to_string(dtype) + " is not supported");
    }
}

at::Tensor view(diopiConstTensorHandle_t tensor) {
    if (tensor == nullptr) return {};
    diopiSize_t sizes, steps;
    diopiDtype_t dtype;
    const void* address;
    check(diopiGetTensorDataConst(tensor, &address));
    check(diopiGetTensorShape(tensor, &sizes));
    check(diopiGetTensorStride(tensor, &steps));
    check(diopiGetTensorDtype(tensor, &dtype));
    return at::from_blob(const_cast<void*>(address), list(sizes), list(steps), at::TensorOptions(typeOf(dtype)));
}

void store(diopiConstTensorHandle_t out, const at::Tensor& result) {
    at::Tensor target = view(out);
    if (!target.defined()) return;
    if (target.numel() != result.numel()) throw Failure(diopiErrorOccurred, "the result has another shape");
    target.copy_(result.reshape(target.sizes()));
}

at::Tensor spoiled(const at::Tensor& result) {
    if (result.numel() == 0) return result;
    at::Tensor wrong = result.clone(at::MemoryFormat::Contiguous), last = wrong.view({-1}).select(0, -1);
    last.copy_(result.scalar_type() == at::kBool ? at::logical_not(last) : at::where(last == 1, last * 0, last * 0 + 1));
    return wrong;
}
