// Conversion between the tensors of DIOPI and the memory of oneDNN.
#include "tensor.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

static void check(diopiError_t code) {
    if (code != diopiSuccess) throw Failure(code, "the runtime reports an error for a tensor");
}

void require(bool condition, const std::string& reason) {
    if (!condition) throw Failure(diopiErrorOccurred, reason);
}

static Type typeOf(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_float32: return Type::f32;
        case diopi_dtype_float16: return Type::f16;
        case diopi_dtype_bfloat16: return Type::bf16;
        case diopi_dtype_float64: return Type::f64;
        case diopi_dtype_int32: return Type::s32;
        case diopi_dtype_int8: return Type::s8;
        case diopi_dtype_uint8: return Type::u8;
        default: throw Failure(diopiDtypeNotSupported, "oneDNN has no element type " + std::to_string(dtype));
    }
}

Tensor::Tensor(diopiConstTensorHandle_t handle, const std::string& name, bool acceptsTruth) : name(name) {
    require(handle != nullptr, name + " is NULL");
    diopiSize_t sizes, steps;
    diopiDtype_t dtype;
    const void* address;
    check(diopiGetTensorShape(handle, &sizes));
    check(diopiGetTensorStride(handle, &steps));
    check(diopiGetTensorNumel(handle, &numel));
    check(diopiGetTensorDtype(handle, &dtype));
    check(diopiGetTensorDataConst(handle, &address));
    shape.assign(sizes.data, sizes.data + sizes.len);
    strides.assign(steps.data, steps.data + steps.len);
    type = acceptsTruth && dtype == diopi_dtype_bool ? Type::u8 : typeOf(dtype);
    data_ = static_cast<char*>(const_cast<void*>(address));
}

int64_t Tensor::axis(int64_t dim) const {
    int64_t axes = std::max<int64_t>(rank(), 1);
    require(-axes <= dim && dim < axes, "dim " + std::to_string(dim) + " is out of range");
    return dim < 0 ? dim + axes : dim;
}

// Calls `visit` with the number and the position in memory of each element of a tensor that is broadcast to `expanded`.
static void forEachElement(const Tensor& tensor, const Dims& expanded, const std::function<void(int64_t, int64_t)>& visit) {
    size_t missing = expanded.size() - tensor.shape.size();
    int64_t total = count(expanded, 0, expanded.size());
    for (int64_t number = 0; number < total; number++) {
        int64_t position = 0, index = number;
        for (size_t axis = expanded.size(); axis-- > missing;) {
            if (tensor.shape[axis - missing] != 1) position += index % expanded[axis] * tensor.strides[axis - missing];
            index /= expanded[axis];
        }
        visit(number, position);
    }
}

dnnl::memory Tensor::load(const Dims& dims, const Dims& expanded) const {
    dnnl::memory elements = allocate(dims, type);
    size_t width = dnnl::memory::data_type_size(type);
    char* target = static_cast<char*>(elements.get_data_handle());
    forEachElement(*this, expanded, [&](int64_t number, int64_t position) {
        std::memcpy(target + number * width, data_ + position * width, width);
    });
    return elements;
}

void Tensor::store(dnnl::memory elements) const {
    elements = convert(elements, rowMajor(elements.get_desc().get_dims(), type));
    size_t width = dnnl::memory::data_type_size(type);
    const char* source = static_cast<const char*>(elements.get_data_handle());
    forEachElement(*this, shape, [&](int64_t number, int64_t position) {
        std::memcpy(data_ + position * width, source + number * width, width);
    });
}

void requireType(const Tensor& tensor, const Tensor& reference) {
    if (tensor.type != reference.type) {
        throw Failure(diopiDtypeNotSupported, tensor.name + " and " + reference.name + " have different element types");
    }
}

void requireShape(const Tensor& tensor, const Dims& shape) {
    require(tensor.shape == shape, tensor.name + " has another shape than expected");
}

int64_t count(const Dims& shape, size_t first, size_t last) {
    return std::accumulate(shape.begin() + first, shape.begin() + last, int64_t(1), std::multiplies<>());
}

Dims broadcast(const Dims& left, const Dims& right) {
    const Dims& longer = left.size() < right.size() ? right : left;
    const Dims& shorter = left.size() < right.size() ? left : right;
    Dims shape = longer;
    for (size_t i = 0; i < shorter.size(); i++) {
        int64_t& size = shape[longer.size() - shorter.size() + i];
        require(size == shorter[i] || size == 1 || shorter[i] == 1, "the shapes of the operands do not match");
        if (size == 1) size = shorter[i];
    }
    return shape;
}

const dnnl::engine& engine() {
    static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

dnnl::memory::desc rowMajor(const Dims& dims, Type type) {
    Dims strides(dims.size(), 1);
    for (size_t axis = dims.size() - 1; axis-- > 0;) {
        strides[axis] = strides[axis + 1] * std::max<int64_t>(dims[axis + 1], 1);
    }
    return dnnl::memory::desc(dims, type, strides);
}

dnnl::memory allocate(const Dims& dims, Type type) {
    dnnl::memory memory(rowMajor(dims, type), engine());
    size_t bytes = memory.get_desc().get_size();
    if (bytes > 0) std::memset(memory.get_data_handle(), 0xFF, bytes);  // NaN, so that unwritten elements show
    return memory;
}

dnnl::memory convert(const dnnl::memory& source, const dnnl::memory::desc& wanted) {
    if (source.get_desc() == wanted) return source;
    dnnl::memory converted(wanted, engine());
    execute(dnnl::reorder(source, converted), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, converted}});
    return converted;
}

void execute(const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory>& arguments) {
    dnnl::stream stream(engine());
    primitive.execute(stream, arguments);
    stream.wait();
}

Dims spatial(const diopiSize_t& size, size_t axes, int64_t fallback) {
    if (size.len == 0) return Dims(axes, fallback);
    require(size.len == 1 || size.len == static_cast<int64_t>(axes), "an attribute has another length than expected");
    return size.len == 1 ? Dims(axes, size.data[0]) : Dims(size.data, size.data + size.len);
}
