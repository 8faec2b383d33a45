#include "durable/open.hpp"

#include "durable/text.hpp"

namespace rondo::durable::detail {

std::shared_ptr<engine> open_engine(const std::string& url) {
  constexpr const char* kinds = "it begins with sqlite: or with postgresql://";
  // No more of the URL than this: it may hold a password.
  const std::string scheme = url.substr(0, url.find(':'));
  if (scheme.size() == url.size()) {
    throw store_error("rondo: " + quoted(url) + " is not the URL of a store: " + kinds);
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
#if defined(RONDO_DURABLE_POSTGRESQL)
    return open_postgresql(url);
#else
    throw store_error("rondo: this librondo-durable was built without PostgreSQL (libpq)");
#endif
  }
  throw store_error("rondo: " + quoted(scheme + ":") + " begins no URL of a store: " + kinds);
}

}  // namespace rondo::durable::detail
