// Conversion between the tensors of DIOPI and the memory of oneDNN, and what all operators share.
#pragma once

#include <diopi/functions.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;

// The failure of an operator: the code that it returns, and the reason for diopiGetLastErrorString.
struct Failure : std::runtime_error {
    Failure(diopiError_t code, const std::string& reason) : std::runtime_error(reason), code(code) {}
    diopiError_t code;
};

// Stores the last error of the calling thread and returns its code.
diopiError_t noteFailure(const char* function, diopiError_t code, const std::string& reason);

// Runs the body of an operator. Exceptions become an error code and the last error.
template <typename Body>
diopiError_t guarded(const char* function, Body body) {
    try {
        body();
        return diopiSuccess;
    } catch (const Failure& failure) {
        return noteFailure(function, failure.code, failure.what());
    } catch (const dnnl::error& error) {
        bool isMissing = error.status == dnnl_unimplemented;
        return noteFailure(function, isMissing ? diopiDtypeNotSupported : diopiErrorOccurred, error.what());
    } catch (const std::exception& error) {
        return noteFailure(function, diopiErrorOccurred, error.what());
    }
}

// Throws a Failure with this reason unless the condition holds.
void require(bool condition, const std::string& reason);

// The elements, the shape and the strides of a tensor of DIOPI.
class Tensor {
public:
    // Truth values are not numbers in oneDNN: only the results of comparisons accept them.
    Tensor(diopiConstTensorHandle_t handle, const std::string& name, bool acceptsTruth = false);

    int64_t rank() const { return static_cast<int64_t>(shape.size()); }

    // Returns the axis as a number from 0 on; a tensor without axes is treated like a tensor with one axis.
    int64_t axis(int64_t dim) const;

    // Returns a copy of the elements in row-major order, broadcast to `expanded` and described as `dims`.
    dnnl::memory load(const Dims& dims, const Dims& expanded) const;
    dnnl::memory load(const Dims& dims) const { return load(dims, shape); }

    // Writes elements in row-major order to the tensor. Elements of another type are converted by oneDNN.
    void store(dnnl::memory elements) const;

    std::string name;
    Dims shape, strides;
    int64_t numel;
    Type type;

private:
    char* data_;
};

// Throws a Failure unless a tensor has the type of another tensor.
void requireType(const Tensor& tensor, const Tensor& reference);

// Throws a Failure unless a tensor has this shape.
void requireShape(const Tensor& tensor, const Dims& shape);

// Returns the product of the sizes from axis `first` up to, but without, axis `last`.
int64_t count(const Dims& shape, size_t first, size_t last);

// Returns the shape to which two shapes are broadcast.
Dims broadcast(const Dims& left, const Dims& right);

// The CPU engine of oneDNN, which is created at the first use.
const dnnl::engine& engine();

// Returns a description of elements in row-major order.
dnnl::memory::desc rowMajor(const Dims& dims, Type type);

// Returns new memory for elements in row-major order.
dnnl::memory allocate(const Dims& dims, Type type);

// Returns the elements in another memory format or type; the same memory if nothing changes.
dnnl::memory convert(const dnnl::memory& source, const dnnl::memory::desc& wanted);

// Executes a primitive and waits for it.
void execute(const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory>& arguments);

// Returns the entries of a parameter that has one entry for all spatial axes or one entry per axis.
Dims spatial(const diopiSize_t& size, size_t axes, int64_t fallback);
