// From a URL to an engine.
#pragma once

#include <memory>
#include <string>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// What store::open() opens. Throws store_error.
std::shared_ptr<engine> open_engine(const std::string& url);

// Each is defined where meson.build has found its library, and defines RONDO_DURABLE_SQLITE or RONDO_DURABLE_POSTGRESQL.
std::shared_ptr<engine> open_sqlite(const std::string& file);
std::shared_ptr<engine> open_postgresql(const std::string& url);

}  // namespace rondo::durable::detail
