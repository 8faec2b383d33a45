#include <rondo/executor.hpp>

#include <stdexcept>
#include <utility>

namespace rondo {

on::on(executor where) {
  if (!where) throw std::invalid_argument("rondo: the executor is null");
  where_ = std::make_shared<const executor>(std::move(where));
}

}  // namespace rondo
