#include "durable/dispatcher/handler_threads.hpp"

#include <utility>

namespace rondo::durable::detail {

handler_threads::handler_threads(std::size_t threads, begun_runs& runs, std::function<void(run&)> body)
    : runs_(runs), body_(std::move(body)) {
  try {
    for (std::size_t i = 0; i != threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // the system cannot create another thread
    runs_.close();
    join();
    throw;
  }
}

handler_threads::~handler_threads() {
  runs_.close();
  join();
}

void handler_threads::join() {
  for (std::thread& t : threads_)
    if (t.joinable()) t.join();
}

void handler_threads::work() noexcept {
  do {
    while (const auto mine = runs_.begin_next()) {
      body_(**mine);
      runs_.end(*mine);
    }
  } while (runs_.wait());
}

}  // namespace rondo::durable::detail
