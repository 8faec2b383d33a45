#include "postgresql_news.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "limits.hpp"
#include "postgresql_schema.hpp"

namespace cache_refresh {
namespace {

constexpr std::chrono::milliseconds first_pause{50};
constexpr std::chrono::milliseconds longest_pause{5000};

}  // namespace

postgresql_news::postgresql_news(std::string url, std::function<void(const std::string&)> changed)
    : url_(std::move(url)), changed_(std::move(changed)) {
  connect();
  thread_ = std::thread([this] { run(); });
}

postgresql_news::~postgresql_news() {
  stop_.set();
  thread_.join();
}

void postgresql_news::run() {
  auto pause = first_pause;
  bool missed = !connection_;
  while (true) {
    if (connection_) {
      if (std::exchange(missed, true)) changed_("");
      pause = first_pause;
      listen();
    }
    if (stop_.wait(static_cast<int>(pause.count()))) return;
    pause = std::min(2 * pause, longest_pause);
    connect();
  }
}

bool postgresql_news::connect() {
  try {
    connection_.emplace(url_, opening_patience, &stop_);
    connection_->execute(fmt::format("LISTEN {}", news_channel).c_str());
  } catch (const origin_error&) {
    connection_.reset();  // the failing loads report why
  }
  return connection_.has_value();
}

// Listens until the connection fails or the event is set.
void postgresql_news::listen() {
  PGconn* const handle = connection_->handle();
  do {
    while (PGnotify* const each = PQnotifies(handle)) {
      const std::string key = each->extra;
      PQfreemem(each);
      changed_(key);
    }
  } while (!stop_.wait(-1, PQsocket(handle)) && PQconsumeInput(handle) == 1);
  connection_.reset();
}

}  // namespace cache_refresh
