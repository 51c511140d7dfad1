// Operators on all real element types except half precision.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "example.hpp"

using Sizes = std::vector<int64_t>;

// A tensor's elements and geometry.
struct View {
    char* data;
    Sizes shape, strides;
    int64_t numel;
    diopiDtype_t dtype;

    explicit View(diopiConstTensorHandle_t tensor) {
        diopiSize_t sizes, steps;
        const void* address;
        check(diopiGetTensorDataConst(tensor, &address));
        check(diopiGetTensorShape(tensor, &sizes));
        check(diopiGetTensorStride(tensor, &steps));
        check(diopiGetTensorNumel(tensor, &numel));
        check(diopiGetTensorDtype(tensor, &dtype));
        data = static_cast<char*>(const_cast<void*>(address));
        shape.assign(sizes.data, sizes.data + sizes.len);
        strides.assign(steps.data, steps.data + steps.len);
    }

    int64_t rank() const { return static_cast<int64_t>(shape.size()); }

    int64_t axis(int64_t dim) const {
        if (dim < -rank() || dim >= std::max<int64_t>(rank(), 1)) {
            throw Failure(diopiErrorOccurred, "dim " + std::to_string(dim) + " is out of range");
        }
        return dim < 0 ? dim + rank() : dim;
    }

    // Return the position of the `index`-th element, in row-major order, of `expanded`, to which the view is expanded.
    int64_t place(const Sizes& expanded, int64_t index) const {
        int64_t position = 0, missing = static_cast<int64_t>(expanded.size()) - rank();
        for (int64_t i = static_cast<int64_t>(expanded.size()) - 1; i >= 0; index /= expanded[i--]) {
            if (i >= missing && shape[i - missing] != 1) position += index % expanded[i] * strides[i - missing];
        }
        return position;
    }

    int64_t place(int64_t index) const { return place(shape, index); }

    template <typename T>
    T& at(int64_t position) const {
        return reinterpret_cast<T*>(data)[position];
    }
};

// Call `body` with a value of the C++ type of `dtype`.
template <typename Body>
auto dispatch(diopiDtype_t dtype, Body body) {
    switch (dtype) {
        case diopi_dtype_bool: return body(bool());
        case diopi_dtype_uint8: return body(uint8_t());
        case diopi_dtype_int8: return body(int8_t());
        case diopi_dtype_int16: return body(int16_t());
        case diopi_dtype_int32: return body(int32_t());
        case diopi_dtype_int64: return body(int64_t());
        case diopi_dtype_float32: return body(float());
        case diopi_dtype_float64: return body(double());
        default: throw Failure(diopiDtypeNotSupported, "element type " + std::to_string(dtype) + " is not supported");
    }
}

template <typename T>
T load(const View& view, int64_t position) {
    return dispatch(view.dtype, [&](auto type) { return static_cast<T>(view.at<decltype(type)>(position)); });
}

// Integers wrap around.
template <typename T>
T product(T one, T two) {
    if constexpr (std::is_floating_point_v<T>) {
        return one * two;
    } else {
        return static_cast<T>(static_cast<uint64_t>(one) * static_cast<uint64_t>(two));
    }
}

template <typename T>
T negative(T x) {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return static_cast<T>(0 - static_cast<uint64_t>(x));
}

static void negate(const View& out, const View& input) {
    dispatch(out.dtype, [&](auto type) {
        using T = decltype(type);
        for (int64_t i = 0; i < out.numel; i++) out.at<T>(out.place(i)) = negative(load<T>(input, input.place(i)));
    });
}

diopiError_t diopiNeg(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return guarded(__func__, [&] { negate(View(out), View(input)); });
}

diopiError_t diopiNegInp(diopiContextHandle_t, diopiTensorHandle_t input) {
    return guarded(__func__, [&] { negate(View(input), View(input)); });
}

static void multiply(const View& out, const View& one, const View& two) {
    dispatch(out.dtype, [&](auto type) {
        using T = decltype(type);
        for (int64_t i = 0; i < out.numel; i++) {
            T x = load<T>(one, one.place(out.shape, i)), y = load<T>(two, two.place(out.shape, i));
            out.at<T>(out.place(i)) = product(x, y);
        }
    });
}

diopiError_t diopiMul(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other) {
    return guarded(__func__, [&] { multiply(View(out), View(input), View(other)); });
}

diopiError_t diopiMulInp(diopiContextHandle_t, diopiTensorHandle_t input, diopiConstTensorHandle_t other) {
    return guarded(__func__, [&] { multiply(View(input), View(input), View(other)); });
}

template <typename T>
T number(const diopiScalar_t& scalar) {
    bool integral = scalar.stype <= diopi_dtype_uint64 || scalar.stype == diopi_dtype_bool;
    return integral ? static_cast<T>(scalar.ival) : static_cast<T>(scalar.fval);
}

diopiError_t diopiMulScalar(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            const diopiScalar_t* other) {
    return guarded(__func__, [&] {
        View result(out), operand(input);
        dispatch(result.dtype, [&](auto type) {
            using T = decltype(type);
            for (int64_t i = 0; i < result.numel; i++) {
                result.at<T>(result.place(i)) = product(load<T>(operand, operand.place(i)), number<T>(*other));
            }
        });
    });
}

diopiError_t diopiClampScalar(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                              const diopiScalar_t* min, const diopiScalar_t* max) {
    return guarded(__func__, [&] {
        View result(out), operand(input);
        dispatch(result.dtype, [&](auto type) {
            using T = decltype(type);
            for (int64_t i = 0; i < result.numel; i++) {
                T x = load<T>(operand, operand.place(i));
                if (min != nullptr && x < number<T>(*min)) x = number<T>(*min);
                if (max != nullptr && x > number<T>(*max)) x = number<T>(*max);
                result.at<T>(result.place(i)) = x;
            }
        });
    });
}

static int64_t elementsBehind(const Sizes& shape, int64_t axis) {
    return std::accumulate(shape.begin() + axis + 1, shape.end(), int64_t(1), std::multiplies<>());
}

diopiError_t diopiProd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const int64_t* dim) {
    return guarded(__func__, [&] {
        View result(out), operand(input);
        bool whole = dim == nullptr || operand.rank() == 0;
        int64_t axis = whole ? 0 : operand.axis(*dim);
        int64_t size = whole ? operand.numel : operand.shape[axis];
        int64_t step = whole ? 1 : elementsBehind(operand.shape, axis);
        dispatch(result.dtype, [&](auto type) {
            using T = decltype(type);
            using Wide = std::conditional_t<std::is_floating_point_v<T>, double, T>;
            for (int64_t i = 0; i < result.numel; i++) {
                Wide total = 1;
                for (int64_t k = 0; k < size; k++) {
                    total = product(total, load<Wide>(operand, operand.place((i / step * size + k) * step + i % step)));
                }
                result.at<T>(result.place(i)) = static_cast<T>(total);
            }
        });
    });
}

diopiError_t diopiSort(diopiContextHandle_t, diopiTensorHandle_t values, diopiTensorHandle_t indices,
                       diopiConstTensorHandle_t input, int64_t dim, bool descending, const bool*) {
    return guarded(__func__, [&] {  // always stable
        View sorted(values), places(indices), operand(input);
        int64_t axis = operand.rank() > 0 ? operand.axis(dim) : 0;
        int64_t size = operand.rank() > 0 ? operand.shape[axis] : 1;
        int64_t step = operand.rank() > 0 ? elementsBehind(operand.shape, axis) : 1;
        dispatch(operand.dtype, [&](auto type) {
            using T = decltype(type);
            auto before = [&](T x, T y) { return x < y || (y != y && x == x); };  // NaN is the largest
            for (int64_t slice = 0; size > 0 && slice < operand.numel / size; slice++) {
                auto element = [&](int64_t k) { return (slice / step * size + k) * step + slice % step; };
                auto value = [&](int64_t k) { return operand.at<T>(operand.place(element(k))); };
                Sizes order(size);
                std::iota(order.begin(), order.end(), 0);
                std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
                    return descending ? before(value(b), value(a)) : before(value(a), value(b));
                });
                for (int64_t k = 0; k < size; k++) {
                    sorted.at<T>(sorted.place(element(k))) = value(order[k]);
                    places.at<int64_t>(places.place(element(k))) = order[k];
                }
            }
        });
    });
}

static diopiTensorHandle_t required(diopiContextHandle_t ctx, const Sizes& shape, diopiDtype_t dtype,
                                    const Sizes* strides = nullptr) {
    diopiTensorHandle_t made = nullptr;
    diopiSize_t size{shape.data(), static_cast<int64_t>(shape.size())}, steps{};
    if (strides != nullptr) steps = {strides->data(), static_cast<int64_t>(strides->size())};
    check(diopiRequireTensor(ctx, &made, &size, strides != nullptr ? &steps : nullptr, dtype, diopi_device));
    return made;
}

// Copy element `from(i)` of `input` to element i of `out`, both in row-major order, for all i.
template <typename From>
void gather(const View& out, const View& input, From from) {
    dispatch(out.dtype, [&](auto type) {
        using T = decltype(type);
        for (int64_t i = 0; i < out.numel; i++) out.at<T>(out.place(i)) = load<T>(input, input.place(from(i)));
    });
}

static Sizes broadcast(const Sizes& one, const Sizes& two) {
    Sizes result(std::max(one.size(), two.size()), 1);
    for (const Sizes* shape : {&one, &two}) {
        for (size_t i = 0; i < shape->size(); i++) {
            int64_t& size = result[result.size() - shape->size() + i];
            if ((*shape)[i] != 1) size = (*shape)[i];
        }
    }
    return result;
}

diopiError_t diopiMaskedSelect(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input,
                               diopiConstTensorHandle_t mask) {
    return guarded(__func__, [&] {
        View operand(input), chosen(mask);
        Sizes shape = broadcast(operand.shape, chosen.shape), places;
        int64_t numel = elementsBehind(shape, -1);
        for (int64_t i = 0; i < numel; i++) {
            if (load<bool>(chosen, chosen.place(shape, i))) places.push_back(operand.place(shape, i));
        }
        diopiTensorHandle_t made = required(ctx, {static_cast<int64_t>(places.size())}, operand.dtype);
        View result(made);
        dispatch(operand.dtype, [&](auto type) {
            using T = decltype(type);
            for (size_t i = 0; i < places.size(); i++) result.at<T>(i) = operand.at<T>(places[i]);
        });
        *out = made;
    });
}

diopiError_t diopiStack(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t* tensors,
                        int64_t numTensors, int64_t dim) {
    return guarded(__func__, [&] {
        View result(out);
        int64_t step = elementsBehind(result.shape, result.axis(dim));
        for (int64_t number = 0; number < numTensors; number++) {
            View operand(tensors[number]);
            dispatch(result.dtype, [&](auto type) {
                using T = decltype(type);
                for (int64_t i = 0; i < operand.numel; i++) {
                    int64_t target = (i / step * numTensors + number) * step + i % step;
                    result.at<T>(result.place(target)) = load<T>(operand, operand.place(i));
                }
            });
        }
    });
}

diopiError_t diopiMeshGrid(diopiContextHandle_t, diopiTensorHandle_t* outs, diopiConstTensorHandle_t* inputs,
                           int64_t inputsNum) {
    return guarded(__func__, [&] {
        for (int64_t number = 0; number < inputsNum; number++) {
            View result(outs[number]), operand(inputs[number]);
            int64_t step = elementsBehind(result.shape, number);
            gather(result, operand, [&](int64_t i) { return i / step % std::max<int64_t>(operand.numel, 1); });
        }
    });
}

// Advanced indexing only with one integer tensor along one axis.
diopiError_t diopiIndex(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input,
                        diopiConstTensorHandle_t* indices, int64_t nums) {
    return guarded(__func__, [&] {
        int64_t axis = std::find_if(indices, indices + nums, [](auto index) { return index != nullptr; }) - indices;
        if (std::count(indices, indices + nums, nullptr) != nums - 1) {
            throw Failure(diopiNoImplement, "more or less than one index tensor");
        }
        View operand(input), index(indices[axis]);
        if (index.dtype != diopi_dtype_int64 && index.dtype != diopi_dtype_int32) {
            throw Failure(diopiNoImplement, "a mask");
        }
        Sizes shape(operand.shape.begin(), operand.shape.begin() + axis);
        shape.insert(shape.end(), index.shape.begin(), index.shape.end());
        shape.insert(shape.end(), operand.shape.begin() + axis + 1, operand.shape.end());
        diopiTensorHandle_t made = required(ctx, shape, operand.dtype);
        int64_t size = operand.shape[axis], step = elementsBehind(operand.shape, axis);
        gather(View(made), operand, [&](int64_t i) {
            int64_t place = load<int64_t>(index, index.place(i / step % std::max<int64_t>(index.numel, 1)));
            if (place < -size || place >= size) throw Failure(diopiErrorOccurred, "an index is out of range");
            return (i / step / index.numel * size + (place < 0 ? place + size : place)) * step + i % step;
        });
        *out = made;
    });
}

// Only the mode "constant".
diopiError_t diopiPad(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, diopiSize_t pad,
                      const char* mode, const double* value) {
    return guarded(__func__, [&] {
        if (std::string(mode) != "constant") throw Failure(diopiNoImplement, std::string("mode ") + mode);
        View result(out), operand(input);
        dispatch(result.dtype, [&](auto type) {
            using T = decltype(type);
            T filling = value != nullptr ? static_cast<T>(*value) : T(0);
            for (int64_t i = 0; i < result.numel; i++) {
                int64_t position = 0, rest = i;
                bool inside = true;
                for (int64_t axis = result.rank() - 1; axis >= 0; rest /= result.shape[axis--]) {
                    int64_t fromEnd = 2 * (result.rank() - 1 - axis);
                    int64_t before = fromEnd < pad.len ? pad.data[fromEnd] : 0;
                    int64_t coordinate = rest % result.shape[axis] - before;
                    inside = inside && coordinate >= 0 && coordinate < operand.shape[axis];
                    position += coordinate * operand.strides[axis];
                }
                result.at<T>(result.place(i)) = inside ? load<T>(operand, position) : filling;
            }
        });
    });
}

// The largest integer that `random` draws without a bound. All integers up to 2^53 are exact in a double.
template <typename T>
double largest() {
    return std::is_floating_point_v<T> ? std::ldexp(1, std::numeric_limits<T>::digits)
                                       : static_cast<double>(std::numeric_limits<T>::max());
}

diopiError_t diopiRandomInp(diopiContextHandle_t, diopiTensorHandle_t inout, int64_t from, const int64_t* to,
                            diopiGeneratorHandle_t generator) {
    return guarded(__func__, [&] {
        View result(inout);
        uint64_t seed = 0, offset = 0;
        if (to != nullptr && from >= *to) throw Failure(diopiErrorOccurred, "from is not less than to");
        if (generator != nullptr) check(diopiGeneratorGetSeedAndOffset(generator, &seed, &offset));
        dispatch(result.dtype, [&](auto type) {
            using T = decltype(type);
            double count = (to != nullptr ? static_cast<double>(*to) : largest<T>() + 1) - static_cast<double>(from);
            const bool wide = std::is_same_v<T, int64_t> && count > 0x1p53;  // a double can't represent all of these
            const uint64_t end = to != nullptr ? static_cast<uint64_t>(*to) : uint64_t{1} << 63;
            for (int64_t i = 0; i < result.numel; i++) {
                uint64_t z = seed + (offset + i + 1) * 0x9E3779B97F4A7C15u;  // Steele, Lea, Flood (2014)
                z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
                z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
                z ^= z >> 31;
                double unit = static_cast<double>(z >> 11) * 0x1p-53;
                T& drawn = result.at<T>(result.place(i));
                if (wide) {
                    drawn = static_cast<T>(static_cast<uint64_t>(from) + z % (end - static_cast<uint64_t>(from)));
                } else {
                    drawn = static_cast<T>(static_cast<double>(from) + std::floor(unit * count));
                }
            }
        });
        if (generator != nullptr) check(diopiGeneratorSetSeedAndOffset(generator, seed, offset + result.numel));
    });
}

// Return the strides of a dense tensor whose axes vary in `order`, the slowest first.
static Sizes denseStrides(const Sizes& shape, const Sizes& order) {
    Sizes strides(shape.size());
    int64_t stride = 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
        strides[*axis] = stride;
        stride *= std::max<int64_t>(shape[*axis], 1);
    }
    return strides;
}

diopiError_t diopiContiguous(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input,
                             diopiMemoryFormat_t memoryFormat) {
    return guarded(__func__, [&] {
        View operand(input);
        Sizes order(operand.rank());
        std::iota(order.begin(), order.end(), 0);
        if (memoryFormat == ChannelsLast || memoryFormat == ChannelsLast3d || memoryFormat == ChannelsLast1d) {
            int64_t rank = memoryFormat == ChannelsLast ? 4 : memoryFormat == ChannelsLast3d ? 5 : 3;
            if (operand.rank() != rank) throw Failure(diopiErrorOccurred, "the rank does not fit the memory format");
            std::rotate(order.begin() + 1, order.begin() + 2, order.end());
        } else if (memoryFormat == Preserve) {
            std::stable_sort(order.begin(), order.end(),
                             [&](int64_t a, int64_t b) { return operand.strides[a] > operand.strides[b]; });
        }
        Sizes strides = denseStrides(operand.shape, order);
        diopiTensorHandle_t made = required(ctx, operand.shape, operand.dtype, &strides);
        gather(View(made), operand, [](int64_t i) { return i; });
        *out = made;
    });
}

diopiError_t diopiGetNativeMemoryFormat(diopiContextHandle_t, diopiConstTensorHandle_t input, int64_t* format) {
    return guarded(__func__, [&] {
        View operand(input);
        *format = operand.rank();
    });
}
