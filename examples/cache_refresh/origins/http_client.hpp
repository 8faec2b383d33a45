// Sends one GET after another on one keep-alive connection: what the origin needs of libcurl's easy interface.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <curl/curl.h>

#include "../origin.hpp"

namespace cache_refresh {

// An address in its parts.
class web_address {
 public:
  // Throws origin_error.
  explicit web_address(const std::string& url);

  // The URL of a key below this address: the key, percent-encoded except for slashes, is appended to the path.
  std::string of(const std::string& key) const;
  std::string whole() const { return of(""); }
  // Without user, password and query.
  std::string for_people() const;
  bool loopback() const;

 private:
  std::string part(CURLUPart which) const;

  struct cleaner {
    void operator()(CURLU* parts) const noexcept { curl_url_cleanup(parts); }
  };
  std::unique_ptr<CURLU, cleaner> parts_;
};

struct web_answer {
  long status = 0;
  std::string type;  // "application/json"
  std::string body;
  std::string validator;  // ETag or, if there is none, Last-Modified
  time_to_live ttl;
};

class http_client {
 public:
  // `direct`: ignores the proxy that the environment may name.
  explicit http_client(bool direct);

  // The validator may be empty. Any status other than 200 or, with a validator, 304 is an error. Throws origin_error.
  web_answer get(const std::string& url, const std::string& validator, rondo::duration limit,
                 std::size_t most_bytes);

 private:
  template <class Value>
  void set(CURLoption option, Value value);
  [[noreturn]] void fail(CURLcode, rondo::duration limit, std::size_t most_bytes) const;
  std::string header(const char* name) const;
  web_answer take_answer();

  struct cleaner {
    void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
  };
  std::unique_ptr<CURL, cleaner> handle_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::string body_;
  std::size_t most_bytes_ = 0;
};

}  // namespace cache_refresh
