// A cache that keeps itself fresh: each value is reloaded before it is a second old.
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include <rondo/manual_timer.hpp>
#include <rondo/timer_scope.hpp>

using namespace std::chrono_literals;

class fresh_cache {
 public:
  using loader = std::function<std::string(const std::string& key)>;

  fresh_cache(rondo::scheduler& timers, loader load) : load_(std::move(load)), reloads_(timers) {}

  std::string get(const std::string& key) {
    if (const auto value = find(key)) return *value;
    std::string value = load_(key);  // first read: an exception goes to the caller
    const std::lock_guard hold(mutex_);
    if (!values_.contains(key)) {  // otherwise another thread was faster
      reloads_.schedule(rondo::every(900ms).jitter(0.1), [=, this] { reload(key); });
      values_[key] = std::move(value);
    }
    return values_[key];
  }

 private:
  std::optional<std::string> find(const std::string& key) {
    const std::lock_guard hold(mutex_);
    const auto found = values_.find(key);
    return found != values_.end() ? std::optional(found->second) : std::nullopt;
  }
  void reload(const std::string& key) {
    std::string value = load_(key);  // if it throws, on_error is called and the old value stays
    const std::lock_guard hold(mutex_);
    values_[key] = std::move(value);
  }

  const loader load_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> values_;
  rondo::timer_scope reloads_;  // last member: its destructor waits for loads in progress
};

int main() {
  int failed = 0;
  rondo::manual_timer time({.on_error = [&](std::exception_ptr, const rondo::firing&) { ++failed; }});
  int edition = 1;
  bool is_down = false;
  fresh_cache cache(time, [&](const std::string& key) {
    if (is_down) throw std::runtime_error("no connection");
    return key + ", edition " + std::to_string(edition);
  });
  const auto look = [&] { std::cout << cache.get("atlas") << '\n'; };

  look();
  edition = 2;
  time.advance(1s);
  look();  // has been reloaded
  edition = 3;
  is_down = true;
  time.advance(9s);
  look();  // still the old value
  std::cout << failed << " loads have failed\n";
  is_down = false;
  time.advance(1s);
  look();
}
