#include "durable/open.hpp"

#include "durable/text.hpp"

namespace rondo::durable::detail {

namespace {

constexpr const char* scheme_characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-";

}  // namespace

std::shared_ptr<engine> open_engine(const std::string& url) {
  constexpr const char* kinds = "it must begin with sqlite: or postgresql://";
  // Messages show no more of the URL than this, as it may contain a password.
  const std::string scheme = url.substr(0, url.find_first_not_of(scheme_characters));
  if (scheme.empty() || scheme.size() == url.size() || url[scheme.size()] != ':') {
    throw store_error(std::string("rondo: the string to open is not the URL of a store: ") + kinds);
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
    // libpq would take a URL with only one slash for a database name, and show it in its messages.
    if (url.compare(scheme.size(), 3, "://") != 0) {
      throw store_error("rondo: a PostgreSQL URL must begin with postgresql://");
    }
#if defined(RONDO_DURABLE_POSTGRESQL)
    return open_postgresql(url);
#else
    throw store_error("rondo: this librondo-durable was built without PostgreSQL (libpq)");
#endif
  }
  throw store_error("rondo: " + quoted(scheme + ":") + " does not begin the URL of a store: " + kinds);
}

}  // namespace rondo::durable::detail
