// Wakes the dispatchers of a store.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rondo::durable::detail::sqlite {

/// Says that tasks are due soon, to the sessions of the store that was told of them. SQLite tells a connection nothing, so
/// those of other stores find them when they look next.
class news {
 public:
  /// What a session knows.
  struct reader {
    std::uint64_t seen = 0;
    bool is_interrupted = false;
  };

  void publish() noexcept {
    const std::lock_guard hold(mutex_);
    ++published_;
    woken_.notify_all();
  }

  /// Waits until there are news that the reader has not seen, or it is interrupted. Returns whether there are news.
  bool wait(reader& by) {
    std::unique_lock hold(mutex_);
    woken_.wait(hold, [&] { return by.is_interrupted || by.seen != published_; });
    by.is_interrupted = false;
    const bool any = by.seen != published_;
    by.seen = published_;
    return any;
  }

  void interrupt(reader& by) noexcept {
    const std::lock_guard hold(mutex_);
    by.is_interrupted = true;
    woken_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  std::uint64_t published_ = 0;
};

}  // namespace rondo::durable::detail::sqlite
