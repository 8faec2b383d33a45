// The program's figures over HTTP: a page that draws the wheel, metrics for Prometheus, and a health check.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "../snapshot.hpp"

namespace cache_refresh {

class web_server {
 public:
  // Listens on "127.0.0.1:8080", "localhost:8080" or "[::1]:8080" and answers from threads of its own; port 0 is any
  // free one. Throws std::runtime_error with one line for the user.
  //
  // `look` and `wheel` are called by one thread at a time, and at most five times a second: all who ask in between get
  // the same. /healthz fails if a larger share of the keys than `stale_limit` is stale or empty.
  web_server(const std::string& address, std::function<snapshot()> look, std::function<wheel_picture()> wheel,
             double stale_limit);
  // Waits for the answers that are being sent, and up to a second for connections that say nothing.
  ~web_server();
  web_server(const web_server&) = delete;
  web_server& operator=(const web_server&) = delete;

  std::string url() const;  // "http://127.0.0.1:8080/"

 private:
  class implementation;  // users need not compile the HTTP library
  std::unique_ptr<implementation> running_;
};

}  // namespace cache_refresh
