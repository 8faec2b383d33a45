#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "parts.hpp"

namespace cache_refresh {
namespace {

using factory = std::unique_ptr<origin> (*)(const origin_options&);

struct scheme {
  const char* name;
  factory open;         // null if not built
  const char* package;  // what building it requires
  bool queries;         // whether it takes the user's own queries
};

#ifdef RONDO_EXAMPLE_HTTP
constexpr factory http = open_http_origin;
#else
constexpr factory http = nullptr;
#endif
#ifdef RONDO_EXAMPLE_POSTGRESQL
constexpr factory postgresql = open_postgresql_origin;
#else
constexpr factory postgresql = nullptr;
#endif

constexpr scheme schemes[] = {
    {"file", open_file_origin, "", false},
    {"sqlite", open_sqlite_origin, "", true},
    {"http", http, "libcurl4-openssl-dev and nlohmann-json3-dev", false},
    {"https", http, "libcurl4-openssl-dev and nlohmann-json3-dev", false},
    {"postgresql", postgresql, "libpq-dev", true},
    {"postgres", postgresql, "libpq-dev", true},
};

std::string those_built() {
  std::string all;
  for (const scheme& each : schemes) {
    if (each.open == nullptr) continue;
    if (!all.empty()) all += ", ";
    all.append(each.name).append(":");
  }
  return all;
}

}  // namespace

std::unique_ptr<origin> open_origin(const origin_options& wanted) {
  const std::size_t colon = wanted.url.find(':');
  if (colon == std::string::npos)
    throw origin_error(fmt::format("is not a URL; a URL begins with one of {}", those_built()));
  std::string name = wanted.url.substr(0, colon);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char each) { return static_cast<char>(std::tolower(each)); });

  const auto* found =
      std::find_if(std::begin(schemes), std::end(schemes), [&](const scheme& s) { return name == s.name; });
  if (found == std::end(schemes))
    throw origin_error(fmt::format("{}: is unknown; known are {}", name, those_built()));
  if (found->open == nullptr)
    throw origin_error(
        fmt::format("{}: needs a build with {}; this one has {}", name, found->package, those_built()));
  if (wanted.list_query.empty() != wanted.load_query.empty())
    throw origin_error("give both the query that lists keys and the query that loads a value, or neither");
  if (!found->queries && !wanted.list_query.empty())
    throw origin_error(fmt::format("{}: takes no queries; sqlite: and postgresql: do", name));
  return found->open(wanted);
}

}  // namespace cache_refresh
