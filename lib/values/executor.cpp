#include <rondo/executor.hpp>

#include <stdexcept>
#include <utility>

namespace rondo {

on::on(executor where) {
  if (!where) throw std::invalid_argument("rondo: the executor is null");
  where_ = std::make_shared<const executor>(std::move(where));
}

on::operator timer_options() const {
  return {.run_on = [shared = where_](job j) { (*shared)(std::move(j)); }};
}

}  // namespace rondo
