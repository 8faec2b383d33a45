// The rows that a new database is filled with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "../origin.hpp"

namespace cache_refresh {

struct new_row {
  std::string key;
  std::string value;
  std::int64_t ttl_ms;
};

// Calls `add` for each row: the fields of the catalogue or made-up rows, as the options say. No key occurs twice. The
// same seed gives the same times to live. Throws origin_error if the catalogue cannot be read.
void make_rows(const origin_options&, const std::function<void(const new_row&)>& add);

}  // namespace cache_refresh
