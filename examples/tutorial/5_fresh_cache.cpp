// A cache that keeps itself fresh: what was asked for once is loaded again before it is a second old.
#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>

using namespace std::chrono_literals;

class fresh_cache {
 public:
  using loader = std::function<std::string(const std::string& key)>;

  fresh_cache(rondo::scheduler& timers, loader load) : load_(std::move(load)), reloads_(timers) {}

  std::string get(const std::string& key) {
    {
      const std::lock_guard hold(mutex_);
      if (const auto found = values_.find(key); found != values_.end()) return found->second;
    }
    reload(key);
    const std::lock_guard hold(mutex_);
    return values_[key];
  }

 private:
  void reload(const std::string& key, rondo::duration wait_after_failure = 100ms) {
    try {
      std::string value = load_(key);
      const std::lock_guard hold(mutex_);
      values_[key] = std::move(value);
    } catch (const std::exception&) {  // the old value will do meanwhile
      const rondo::duration next_wait = std::min<rondo::duration>(2 * wait_after_failure, 10s);
      reloads_.set_after(key, wait_after_failure, [=, this] { reload(key, next_wait); });
      return;
    }
    reloads_.set_after(key, 900ms, [=, this] { reload(key); });
  }

  const loader load_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> values_;
  rondo::keyed_timers<std::string> reloads_;  // the last member: its destructor waits for loads in progress
};

int main() {
  rondo::manual_timer time;
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
  look();  // has been loaded again
  edition = 3;
  is_down = true;
  time.advance(1h);
  look();  // the old one, and an attempt every ten seconds
  is_down = false;
  time.advance(10s);
  look();
}
