// One run: a timer, a cache, those who load into it, read from it and change what it holds copies of.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <rondo/timer.hpp>

#include "landings.hpp"
#include "ledger.hpp"
#include "loader.hpp"
#include "measured.hpp"
#include "options.hpp"
#include "origin.hpp"
#include "readers.hpp"
#include "snapshot.hpp"
#include "writer.hpp"

namespace cache_refresh {

// How well the cache kept up: its values beside the origin's, after all changes have ended.
struct agreement {
  std::uint64_t equal = 0;   // the cache holds the origin's newest value
  std::uint64_t older = 0;   // an earlier one
  std::uint64_t empty = 0;   // none
  std::uint64_t wrong = 0;   // another text with the same validator: must stay 0
  std::uint64_t unread = 0;  // not compared
};

class station {
 public:
  // Loads begin, if the run is to be warm. `names`: the origin's keys.
  station(const options&, origin&, const std::vector<std::string>& names, const zipf&);
  ~station() { stop(); }

  // The first load of all keys of a warm run has begun.
  bool warm() const;

  // Readers and writer begin.
  void start();
  // The same; what has been loaded so far does not count.
  void start_warm();
  // All of them end, and nothing is loaded any more.
  void stop();

  // Thread-safe, but not beside start() and stop().
  snapshot look() const;
  wheel_picture wheel() const;

  // After stop(). Ends early, with the rest unread, at the first failure, after two seconds or when `enough` says so.
  agreement compare(const std::function<bool()>& enough) const;
  std::string last_error() const { return loader_.last_error(); }

 private:
  void news(const std::string& key);

  const options options_;
  origin& origin_;
  const std::vector<std::string>& names_;
  const zipf& popular_;
  std::unordered_map<std::string, key_number> numbers_;  // of the names; made when the first news comes
  const std::unique_ptr<origin> chaotic_;

  measured measured_;
  landings landings_;
  ledger ledger_;
  loader loader_;
  rondo::timer timer_;
  const rondo::time_point first_tick_ = timer_.now();
  record_cache cache_;
  std::unique_ptr<origin_news> news_;

  struct usage {
    rondo::time_point at;
    rondo::duration processor;  // of the process, and of this the timer's thread
    rondo::duration driver;
  };
  usage usage_now() const;

  usage before_;
  std::optional<usage> after_;      // once stopped
  cache_statistics before_counts_;  // of the cache, that do not count
  std::unique_ptr<readers> readers_;
  std::unique_ptr<writer> writer_;
};

}  // namespace cache_refresh
