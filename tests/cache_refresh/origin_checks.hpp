// Shared by the tests of origins.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "origin.hpp"

namespace cache_refresh_test {

// Generous: the events that tests wait for take milliseconds on an idle machine.
inline constexpr std::chrono::seconds patience{60};

// The text of an origin_error, or "" if none is thrown.
template <class Function>
std::string error_of(Function what) {
  try {
    what();
  } catch (const cache_refresh::origin_error& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string error_of_opening(const cache_refresh::origin_options& wanted) {
  return error_of([&] { cache_refresh::open_origin(wanted); });
}

// Waits until so() is true. Returns false if that takes too long.
template <class Condition>
bool becomes(Condition so) {
  const auto late = std::chrono::steady_clock::now() + patience;
  while (!so()) {
    if (std::chrono::steady_clock::now() > late) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

template <class Function>
std::chrono::steady_clock::duration time_of(Function what) {
  const auto before = std::chrono::steady_clock::now();
  what();
  return std::chrono::steady_clock::now() - before;
}

// Keys that an origin's news has reported.
class heard_keys {
 public:
  std::function<void(const std::string&)> listener() {
    return [this](const std::string& key) {
      const std::lock_guard guard(lock_);
      keys_.push_back(key);
      came_.notify_all();
    };
  }

  // Waits until this key has been reported `times` times.
  bool wait_for(const std::string& key, std::ptrdiff_t times = 1) {
    std::unique_lock guard(lock_);
    return came_.wait_for(guard, patience, [&] { return count(key) >= times; });
  }
  std::ptrdiff_t times(const std::string& key) {
    const std::lock_guard guard(lock_);
    return count(key);
  }

 private:
  std::ptrdiff_t count(const std::string& key) const { return std::count(keys_.begin(), keys_.end(), key); }

  std::mutex lock_;
  std::condition_variable came_;
  std::vector<std::string> keys_;
};

}  // namespace cache_refresh_test
