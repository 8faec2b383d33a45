// Access to a store's internals for dispatchers, open() and tests.
#pragma once

#include <memory>
#include <utility>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

struct store_access {
  static std::unique_ptr<store> make(std::shared_ptr<engine> e) {
    return std::unique_ptr<store>(new store(std::move(e)));
  }
  static const std::shared_ptr<engine>& engine_of(const store& s) noexcept { return s.engine_; }
};

}  // namespace rondo::durable::detail
