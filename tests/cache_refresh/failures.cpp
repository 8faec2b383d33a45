// Which keys fail, and why, on virtual time.
#include "cache_refresh/station.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rondo/manual_timer.hpp>

namespace cache_refresh_failures {

using namespace std::chrono_literals;
using cache_refresh::failing_keys;
using cache_refresh::find_failing;
using cache_refresh::key_number;
using cache_refresh::latest_error;
using cache_refresh::record_cache;
using cache_refresh::refresh_policy;

refresh_policy without_chance() {
  refresh_policy policy;
  policy.soft_ttl = 10s;
  policy.hard_ttl = 100s;
  policy.jitter = 0;
  policy.first_retry = policy.longest_retry = 1s;
  policy.loads_at_once = 1000;
  return policy;
}

// A cache with three keys. Loads end at once: those of keys with an error fail with it.
struct failing_cache {
  rondo::manual_timer time{{.tick = 1ns}};
  std::vector<std::string> names{"Ada", "bob", "cyn"};
  std::map<key_number, std::string> errors;
  record_cache cache{time, without_chance(), [this](record_cache::load begun) {
                       const auto error = errors.find(begun.key());
                       if (error == errors.end())
                         begun.store({"a value", "1"});
                       else
                         begun.fail(error->second);
                     }};

  void read_all() {
    for (key_number each = 0; each < names.size(); ++each) cache.find(each);
  }
  failing_keys find(const std::string& text, std::size_t most = 100) const {
    return find_failing(cache, names, text, time.now(), most);
  }
  std::string keys(const std::string& text, std::size_t most = 100) const {
    std::string all;
    for (const auto& each : find(text, most).first) all += each.key + ' ';
    return all;
  }
};

TEST_CASE_FIXTURE(failing_cache, "failures: no key is listed while none fails") {
  read_all();
  CHECK(find("").all == 0);
  CHECK(find("").first.empty());
  CHECK(!latest_error(cache, time.now()));
}

TEST_CASE_FIXTURE(failing_cache,
                  "failures: a failing key has its last error, its start, and the end of its value") {
  read_all();
  errors[1] = "gone";
  time.advance(9s);  // bob's load fails, and again and again
  errors[1] = "moved";
  time.advance(31s);
  const failing_keys found = find("");
  CHECK(found.all == 1);
  CHECK(found.matching == 1);
  REQUIRE(found.first.size() == 1);
  CHECK(found.first[0].key == "bob");
  CHECK(found.first[0].error == "moved");
  CHECK(found.first[0].since == 31s);
  REQUIRE(found.first[0].next_load);
  CHECK(*found.first[0].next_load > 0s);
  CHECK(*found.first[0].next_load <= 1s);
  CHECK(found.first[0].served_for == 60s);
  errors.clear();
  time.advance(1s);
  CHECK(find("").all == 0);
}

TEST_CASE_FIXTURE(failing_cache,
                  "failures: keys with nothing to serve come first, then those whose values end first") {
  cache.find(2);
  time.advance(1s);
  cache.find(1);
  errors = {{0, "x"}, {1, "x"}, {2, "x"}};
  time.advance(20s);
  cache.find(0);
  CHECK(keys("") == "Ada cyn bob ");
  CHECK(find("").first[0].served_for == 0s);
  CHECK(find("").first[1].served_for == 79s);
  time.advance(79s);  // cyn has nothing to serve either, and fails for longer than Ada
  CHECK(keys("") == "cyn Ada bob ");
  CHECK(find("").first[0].served_for == 0s);
}

TEST_CASE_FIXTURE(failing_cache, "failures: a search finds parts of keys and of errors, in either case") {
  errors = {{0, "No route"}, {1, "timeout"}, {2, "no answer"}};
  read_all();
  CHECK(keys("ADA") == "Ada ");
  CHECK(keys("o") == "Ada bob cyn ");
  CHECK(keys("NO") == "Ada cyn ");
  CHECK(keys("nobody").empty());
  CHECK(find("no").all == 3);
  CHECK(find("no").matching == 2);
}

TEST_CASE_FIXTURE(failing_cache, "failures: at most so many keys are listed, the most urgent ones") {
  names.clear();
  for (int i = 0; i < 500; ++i) names.push_back(std::to_string(i));
  for (key_number i = 0; i < 500; ++i) {
    errors[(i * 7) % 500] = "x";
    cache.find((i * 7) % 500);
    time.advance(1ms);
  }
  CHECK(find("").all == 500);
  CHECK(find("").matching == 500);
  CHECK(keys("", 4) == "0 7 14 21 ");
}

TEST_CASE_FIXTURE(failing_cache,
                  "failures: the latest error began when the first key failed that still fails with it") {
  errors = {{0, "slow"}};
  cache.find(0);
  time.advance(5s);
  errors[1] = "gone";
  cache.find(1);
  const auto gone = latest_error(cache, time.now());
  REQUIRE(gone);
  CHECK(gone->text == "gone");
  CHECK(gone->lasts == 0s);
  errors[2] = "slow";
  time.advance(1ns);
  cache.find(2);
  const auto slow = latest_error(cache, time.now());
  REQUIRE(slow);
  CHECK(slow->text == "slow");
  CHECK(slow->lasts == 5s + 1ns);
}

}  // namespace cache_refresh_failures
