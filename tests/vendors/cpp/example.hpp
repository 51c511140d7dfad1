// Definitions that both files of the example vendor use.
#pragma once

#include <diopi/functions.h>

#include <stdexcept>
#include <string>

// The failure of an operator: its error code, and the reason for diopiGetLastErrorString.
struct Failure : std::runtime_error {
    Failure(diopiError_t code, const std::string& reason) : std::runtime_error(reason), code(code) {}
    diopiError_t code;
};

// Run `body`, and convert an exception to an error code and the last error.
diopiError_t noteFailure(const char* function, diopiError_t code, const std::string& reason);

template <typename Body>
diopiError_t guarded(const char* function, Body body) {
    try {
        body();
        return diopiSuccess;
    } catch (const Failure& failure) {
        return noteFailure(function, failure.code, failure.what());
    } catch (const std::exception& failure) {
        return noteFailure(function, diopiErrorOccurred, failure.what());
    }
}

inline void check(diopiError_t code) {
    if (code != diopiSuccess) throw Failure(code, "the runtime refused");
}
