// A refreshing_cache on real threads.
#include "refreshing_cache.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/timer.hpp>

#include "threads/patience.hpp"
#include "times_slower.hpp"

namespace cache_refresh_refreshing_cache_threads {

using namespace cache_refresh;
using namespace rondo::test;

using cache_type = refreshing_cache<int, int>;

// Threads that end loads by calling `end`.
class origin {
 public:
  using ending = std::function<void(cache_type::load&, std::mt19937_64&)>;

  origin(int threads, ending end) : end_(std::move(end)) {
    for (int i = 0; i != threads; ++i) threads_.emplace_back([this, i] { work(static_cast<unsigned>(i)); });
  }
  ~origin() {
    {
      const std::lock_guard hold(lock_);
      closed_ = true;
      changed_.notify_all();
    }
    for (std::thread& each : threads_) each.join();
  }
  origin(const origin&) = delete;
  origin& operator=(const origin&) = delete;

  void post(cache_type::load begun) {
    const std::lock_guard hold(lock_);
    waiting_.push_back(std::make_unique<cache_type::load>(std::move(begun)));
    changed_.notify_all();
  }

 private:
  void work(unsigned number) {
    std::mt19937_64 random(number);
    std::unique_lock hold(lock_);
    while (true) {
      changed_.wait(hold, [this] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      auto next = std::move(waiting_.front());
      waiting_.pop_front();
      hold.unlock();
      end_(*next, random);
      next.reset();
      hold.lock();
    }
  }

  const ending end_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<cache_type::load>> waiting_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

TEST_CASE("keys are loaded in their period even if nobody reads them, in real time") {
  std::atomic<int> loads{0};
  rondo::timer timer;
  refresh_policy policy;
  policy.soft_ttl = 20ms;
  gate sixth;
  cache_type cache(timer, policy, [&](cache_type::load begun) {
    begun.store(1);
    if (++loads == 6) sixth.open();
  });
  const auto began = std::chrono::steady_clock::now();
  cache.find(1);
  CHECK(sixth.wait());
  CHECK(std::chrono::steady_clock::now() - began >= 5 * 17ms);  // 0.85 of the soft TTL
  CHECK(cache.stats().unread_loads >= 5);
}

TEST_CASE("a thousand readers on many threads begin one load, and all get its value") {
  rondo::timer timer;
  std::optional<cache_type::load> begun;
  std::atomic<int> begins{0}, served{0};
  gate asked;
  cache_type cache(timer, {}, [&](cache_type::load load) {
    if (++begins == 1) begun.emplace(std::move(load));
  });
  std::vector<std::thread> readers;
  for (int i = 0; i != 10; ++i) {
    readers.emplace_back([&] {
      for (int k = 0; k != 99; ++k) {
        cache.find(1, [&](const lookup<int>& got) { served += got.value && *got.value == 7 ? 1 : 0; });
      }
      asked.open();
      const auto got = cache.wait_for(1, rondo::duration::max());
      served += got.value && *got.value == 7 ? 1 : 0;
    });
  }
  REQUIRE(asked.wait(10));
  let_pass(5ms);  // so that some of them wait
  begun->store(7);
  for (std::thread& each : readers) each.join();
  CHECK(served == 1000);
  CHECK(begins == 1);
}

TEST_CASE("close() returns when no call that begins a load is in progress") {
  rondo::timer timer;
  gate begins;
  std::atomic<bool> begun{false};
  std::optional<cache_type> cache(std::in_place, timer, refresh_policy(), [&](cache_type::load) {
    begins.open();
    let_pass(20ms);
    begun = true;
  });
  bool told = false;
  std::thread reader([&] { cache->find(1, [&](const lookup<int>& got) { told = got.value == nullptr; }); });
  REQUIRE(begins.wait());
  cache->close();
  CHECK(begun);
  reader.join();
  CHECK(told);
}

// What many threads do to a cache until it is closed in the middle of that.
struct trouble {
  std::size_t loads_at_once = 4;
  std::atomic<long> asked{0}, told{0}, wrong{0}, too_many{0};
  std::atomic<std::size_t> in_progress{0};
  std::array<std::atomic<int>, 64> of_key{};

  void begin(int key, bool alone) {
    if (in_progress.fetch_add(1) >= loads_at_once) ++too_many;
    if (of_key[static_cast<std::size_t>(key)].fetch_add(1) != 0 && alone) ++too_many;
  }
  void end(cache_type::load& load, std::mt19937_64& random) {
    spin(static_cast<unsigned>(random() % 2000));
    const int key = load.key();
    // Counted before the load ends, because then the next one may begin.
    --of_key[static_cast<std::size_t>(key)];
    --in_progress;
    switch (random() % 8) {
      case 0:
        return load.fail();
      case 1:
        return;
      case 2:
        return load.not_modified();
      case 3:
        return load.store(key, {.soft = 1ms});
      default:
        return load.store(key);
    }
  }
  void check(int key, const lookup<int>& got) {
    if (got.value && *got.value != key) ++wrong;
  }
  void act(cache_type& cache, std::mt19937_64& random, bool removes) {
    const int key = static_cast<int>(random() % of_key.size());
    switch (random() % 16) {
      case 0:
        cache.refresh(key);
        break;
      case 1:
        cache.prefetch(key);
        break;
      case 2:
        if (removes) cache.remove(key);
        break;
      case 3:
        check(key, cache.wait_for(key, 1ms));
        break;
      case 4:
        static_cast<void>(cache.stats());
        break;
      case 5:
        if (random() % 16 == 0) cache.for_each([](int, const cache_refresh::key_state&) {});
        if (random() % 16 == 0) static_cast<void>(cache.count());
        break;
      case 6:
      case 7:
      case 8:
        ++asked;
        cache.find(key, [this, key](const lookup<int>& got) {
          check(key, got);
          ++told;
        });
        break;
      default:
        check(key, cache.find(key));
    }
  }
};

void make_trouble(refresh_policy policy, bool removes, bool gives_up) {
  trouble t;
  policy.loads_at_once = t.loads_at_once;
  policy.soft_ttl = 10ms;
  policy.hard_ttl = 30ms;
  policy.first_retry = 1ms;
  policy.longest_retry = 5ms;
  if (gives_up) policy.load_deadline = 1ms;
  rondo::timer timer;
  std::optional<origin> threads(
      std::in_place, 3, [&](cache_type::load& load, std::mt19937_64& random) { t.end(load, random); });
  cache_type cache(timer, policy, [&](cache_type::load begun) {
    t.begin(begun.key(), !removes && !gives_up);
    threads->post(std::move(begun));
  });
  std::atomic<bool> ends{false};
  gate half;
  std::vector<std::thread> readers;
  for (unsigned i = 0; i != 4; ++i) {
    readers.emplace_back([&, i] {
      std::mt19937_64 random(100 + i);
      for (std::size_t n = 0; n != 20'000 / times_slower; ++n) t.act(cache, random, removes);
      half.open();
      while (!ends) t.act(cache, random, removes);
    });
  }
  CHECK(half.wait(4));
  cache.close();
  ends = true;
  for (std::thread& each : readers) each.join();
  threads.reset();  // now all loads have ended
  CHECK(t.told == t.asked);
  CHECK(t.wrong == 0);
  CHECK(t.too_many == 0);
  const auto stats = cache.stats();
  CHECK(stats.in_progress == 0);
  CHECK(stats.waiting == 0);
  CHECK(timer.pending() == 0);
  CHECK(stats.loads > 50);
  if (!gives_up) CHECK(stats.loads == stats.loaded + stats.confirmed + stats.failed + stats.late_answers);
  CHECK(stats.loads <= stats.loaded + stats.confirmed + stats.failed + stats.late_answers);
}

TEST_CASE(
    "whatever many threads do, each read gets one answer with its key's value, and loads keep their limit") {
  refresh_policy policy;
  SUBCASE("ahead") { make_trouble(policy, false, false); }
  SUBCASE("ahead, with keys that are removed") { make_trouble(policy, true, false); }
  SUBCASE("ahead, with loads that are given up") { make_trouble(policy, true, true); }
  SUBCASE("ahead, with keys that are dropped") {
    policy.forget_after = 5ms;
    make_trouble(policy, true, false);
  }
  SUBCASE("on read") {
    policy.mode = refresh_mode::on_read;
    make_trouble(policy, false, false);
  }
  SUBCASE("expire") {
    policy.mode = refresh_mode::expire;
    make_trouble(policy, true, false);
  }
}

TEST_CASE("a cache may be destroyed while loads end and timers fire, and its scheduler lives on") {
  rondo::timer timer;
  for (std::size_t i = 0; i != 200 / times_slower; ++i) {
    std::atomic<bool> alive{true};
    std::atomic<int> begun_late{0};
    origin threads(2, [&](cache_type::load& load, std::mt19937_64& random) {
      spin(static_cast<unsigned>(random() % 2000));
      load.store(1, {.soft = 1ms});
    });
    {
      cache_type cache(timer, {}, [&](cache_type::load load) {
        if (!alive) ++begun_late;
        threads.post(std::move(load));
      });
      for (int key = 0; key != 50; ++key) cache.find(key);
      spin(static_cast<unsigned>(i * 100));
      const auto got = cache.wait_for(0, 1s);
      static_cast<void>(got);
    }
    alive = false;
    CHECK(timer.pending() == 0);
    CHECK(begun_late == 0);
  }
}

}  // namespace cache_refresh_refreshing_cache_threads
