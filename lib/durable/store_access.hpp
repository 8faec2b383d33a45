// Access to a store's internals for dispatchers and tests, and how stores are opened.
#pragma once

#include <memory>
#include <string>
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

/// Opens the engine for store::open(). Throws store_error.
std::shared_ptr<engine> open_engine(const std::string& url);

// Each is defined only if meson.build has found its library; meson.build then defines RONDO_DURABLE_SQLITE or
// RONDO_DURABLE_POSTGRESQL.
std::shared_ptr<engine> open_sqlite(const std::string& file);
std::shared_ptr<engine> open_postgresql(const std::string& url);

}  // namespace rondo::durable::detail
