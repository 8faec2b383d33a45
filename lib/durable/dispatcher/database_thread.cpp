#include "durable/dispatcher/database_thread.hpp"

#include <chrono>
#include <thread>

namespace rondo::durable::detail {

using namespace std::chrono_literals;

namespace {

// How long stop() waits for a database that does not answer, and how often it tries. Both are real time, as a
// manual_timer may stand still.
constexpr auto last_wait = 2s;
constexpr auto last_rest = 50ms;

}  // namespace

void database_thread::run() noexcept {
  for (;;) {
    const turns::step done = turns_.next();
    if (done == turns::step::last) return tell_the_last();
    if (done == turns::step::nothing && session_.wait()) turns_.there_is_news();
  }
}

void database_thread::end() noexcept {
  end_at_ = std::chrono::steady_clock::now();
  inbox_.raise(inbox::last);
}

void database_thread::tell_the_last() noexcept {
  const auto is_over = [this] { return std::chrono::steady_clock::now() >= end_at_ + last_wait; };
  while (!turns_.all_is_told()) {
    if (turns_.has_failed() && is_over()) break;  // the turn that was in progress; the next may take as long
    if (turns_.tell()) continue;
    if (is_over()) break;
    std::this_thread::sleep_for(last_rest);
  }
  turns_.give_up();
}

}  // namespace rondo::durable::detail
