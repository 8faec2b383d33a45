// Throws the exceptions of the headers. These contain no `throw`, so that they compile under -fno-exceptions.
#include <functional>
#include <stdexcept>
#include <system_error>

#include <rondo/errors.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

void refuse_nan() { throw std::invalid_argument("rondo: a duration is not a number (NaN)"); }

void refuse_empty_task() { throw std::invalid_argument("rondo: the task is empty"); }

void refuse_empty_call() { throw std::bad_function_call(); }

void refuse_system(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace rondo::detail
