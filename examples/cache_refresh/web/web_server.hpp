// The program's figures over HTTP: a page that draws the wheel, metrics for Prometheus, and a health check.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "../snapshot.hpp"

namespace cache_refresh {

// Where the server gets what it shows. It calls each of these functions on one thread at a time, `look` and `wheel` at
// most five times per second: requests in between get the same figures.
struct web_source {
  std::function<snapshot()> look{};
  std::function<wheel_picture()> wheel{};
  std::function<failing_keys(const std::string& find)> failing{};
  std::function<std::vector<history::sample>()> past{};
  std::function<std::vector<late_reason>()> late_reasons{};
  std::function<void(std::ostream&)> write_trace{};
};

class web_server {
 public:
  // Listens on an address such as "127.0.0.1:8080", "localhost:8080" or "[::1]:8080", and answers from threads of its
  // own. A connection has two seconds for its request, and then five to take the answer. Port 0 means any free port.
  // Throws std::runtime_error with one line for the user. /healthz fails if the share of stale or empty keys exceeds
  // `stale_limit`.
  web_server(const std::string& address, web_source, double stale_limit);
  // Waits for answers that are being sent, and a moment for connections that have not sent a whole request.
  ~web_server();
  web_server(const web_server&) = delete;
  web_server& operator=(const web_server&) = delete;

  std::string url() const;  // "http://127.0.0.1:8080/"

 private:
  class implementation;  // users need not compile the HTTP library
  std::unique_ptr<implementation> running_;
};

}  // namespace cache_refresh
