// Receives the announcements of PostgreSQL, with a thread and a connection of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "../origin.hpp"
#include "postgresql_connection.hpp"
#include "stop_event.hpp"

namespace cache_refresh {

// Receives everything from its creation on, if the server can be reached then. If the connection is lost, it opens
// another one, and then reports once that anything may have changed.
class postgresql_news : public origin_news {
 public:
  postgresql_news(std::string url, std::function<void(const std::string&)> changed);
  ~postgresql_news() override;

 private:
  void run();
  bool connect();
  void listen();

  const std::string url_;
  const std::function<void(const std::string&)> changed_;
  stop_event stop_;
  std::optional<postgresql_connection> connection_;  // used by the thread, once it runs
  std::thread thread_;
};

}  // namespace cache_refresh
