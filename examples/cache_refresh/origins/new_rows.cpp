#include "new_rows.hpp"

#include <random>
#include <unordered_set>
#include <vector>

#include <fmt/core.h>

#include "../catalogue.hpp"

namespace cache_refresh {
namespace {

constexpr std::int64_t shortest_ttl_ms = 1000;
constexpr std::int64_t longest_ttl_ms = 8000;

std::vector<field> fields_of(const std::filesystem::path& catalogue) {
  if (catalogue.empty()) throw origin_error("is new, and there is no catalogue to fill it from");
  try {
    return read_catalogue(catalogue);
  } catch (const std::exception& bad) {
    throw origin_error(bad.what());
  }
}

}  // namespace

void make_rows(const origin_options& wanted, const std::function<void(const new_row&)>& add) {
  std::mt19937_64 random(wanted.seed);
  std::uniform_int_distribution<std::int64_t> ttl(shortest_ttl_ms, longest_ttl_ms);
  if (wanted.rows != 0) {
    for (std::size_t i = 1; i <= wanted.rows; ++i)
      add({fmt::format("item/{:07}", i), fmt::format("{:016x}", random()), ttl(random)});
    return;
  }
  // If a key occurs twice, as in a catalogue with several versions of a package, the first one counts.
  std::unordered_set<std::string> known;
  for (field& each : fields_of(wanted.catalogue)) {
    if (!known.insert(each.key).second) continue;
    add({std::move(each.key), std::move(each.value), ttl(random)});
  }
}

}  // namespace cache_refresh
