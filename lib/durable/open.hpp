// Opens the engine that a URL names.
#pragma once

#include <memory>
#include <string>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// Opens the engine for store::open(). Throws store_error.
std::shared_ptr<engine> open_engine(const std::string& url);

// Each is defined only if meson.build has found its library; meson.build then defines RONDO_DURABLE_SQLITE or
// RONDO_DURABLE_POSTGRESQL.
std::shared_ptr<engine> open_sqlite(const std::string& file);
std::shared_ptr<engine> open_postgresql(const std::string& url);

}  // namespace rondo::durable::detail
