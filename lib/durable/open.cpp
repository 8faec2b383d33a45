#include "durable/open.hpp"

#include "durable/text.hpp"

namespace rondo::durable::detail {

namespace {

constexpr const char* scheme_characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-";

}  // namespace

std::shared_ptr<engine> open_engine(const std::string& url) {
  constexpr const char* kinds = "it begins with sqlite: or with postgresql://";
  // No more of the URL than this is told: it may hold a password.
  const std::string scheme = url.substr(0, url.find_first_not_of(scheme_characters));
  if (scheme.empty() || scheme.size() == url.size() || url[scheme.size()] != ':') {
    throw store_error(std::string("rondo: what is to be opened is not the URL of a store: ") + kinds);
  }
  if (url.find('\0') != std::string::npos) {
    throw store_error("rondo: the URL of the store (" + scheme + ":...) contains a zero byte");
  }
  if (scheme == "sqlite") {
#if defined(RONDO_DURABLE_SQLITE)
    return open_sqlite(url.substr(scheme.size() + 1));
#else
    throw store_error("rondo: this librondo-durable was built without SQLite");
#endif
  }
  if (scheme == "postgresql" || scheme == "postgres") {
    // libpq takes what has one slash for a name, and tells it.
    if (url.compare(scheme.size(), 3, "://") != 0) {
      throw store_error("rondo: a URL of PostgreSQL begins with postgresql://");
    }
#if defined(RONDO_DURABLE_POSTGRESQL)
    return open_postgresql(url);
#else
    throw store_error("rondo: this librondo-durable was built without PostgreSQL (libpq)");
#endif
  }
  throw store_error("rondo: " + quoted(scheme + ":") + " begins no URL of a store: " + kinds);
}

}  // namespace rondo::durable::detail
