// One run: a timer, a cache, the threads that load and read it, and the writer that changes the original values.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <rondo/timer.hpp>
#include <rondo/trace.hpp>

#include "loader.hpp"
#include "measured.hpp"
#include "options.hpp"
#include "origin.hpp"
#include "snapshot.hpp"
#include "users.hpp"

namespace cache_refresh {

// How well the cache kept up: its values compared with the origin's, after all changes have ended.
struct agreement {
  std::uint64_t equal = 0;   // the cache holds the origin's newest value
  std::uint64_t older = 0;   // it holds an earlier value
  std::uint64_t empty = 0;   // it holds none
  std::uint64_t wrong = 0;   // it holds another text with the same validator: must stay 0
  std::uint64_t unread = 0;  // not compared
};

// The error of the latest failure among the keys that fail now. None if no key fails. Visits every key twice.
std::optional<current_error> latest_error(const record_cache&, rondo::time_point now);

// The keys that fail now and whose name or error contains `find`; the case of ASCII letters does not matter. Keys that
// have nothing to serve come first, then those whose values end first. At most `most` of them are listed. Visits every
// key. `names`: of the keys.
failing_keys find_failing(const record_cache&, const std::vector<std::string>& names, const std::string& find,
                          rondo::time_point now, std::size_t most = 100);

class station {
 public:
  // In a warm run, loads begin at once. `names`: the origin's keys.
  station(const options&, origin&, const std::vector<std::string>& names, const zipf&);
  ~station() { stop(); }

  // Whether a warm run has begun the first load of all keys.
  bool warm() const;

  // Starts the readers and the writer.
  void start();
  // As start(), but loads up to now do not count.
  void start_warm();
  // Ends all of them. Nothing is loaded any more.
  void stop();

  // Thread-safe, but not concurrently with start() and stop().
  snapshot look() const;
  wheel_picture wheel() const;
  failing_keys failing(const std::string& find) const;  // see find_failing()
  // Why loads of the last minute began more than two ticks late, the most frequent reason first. None if the program does not
  // listen.
  std::vector<late_reason> late_reasons() const;
  void write_trace(std::ostream&) const;  // nothing if the program does not listen

  // Call it after stop(). Ends early, with the rest unread, at the first failure, after two seconds or when `enough`
  // returns true.
  agreement compare(const std::function<bool()>& enough) const;
  std::string last_error() const { return loader_.last_error(); }

 private:
  void news(const std::string& key);

  const options options_;
  origin& origin_;
  const std::vector<std::string>& names_;
  const zipf& popular_;
  std::unordered_map<std::string, key_number> numbers_;  // of the names; filled when the first news arrives
  const std::unique_ptr<origin> chaotic_;

  measured measured_;
  landings landings_;
  ledger ledger_;
  loader loader_;
  const std::shared_ptr<rondo::trace> trace_;  // null if the program does not listen
  rondo::timer timer_;
  const rondo::time_point first_tick_ = timer_.now();
  record_cache cache_;
  std::unique_ptr<origin_news> news_;

  struct usage {
    rondo::time_point at;
    rondo::duration processor;  // of the process, including the timer's thread
    rondo::duration driver;     // of the timer's thread
  };
  usage usage_now() const;

  usage before_;
  std::optional<usage> after_;      // once stopped
  cache_statistics before_counts_;  // of the cache, from before the measured run
  std::unique_ptr<readers> readers_;
  std::unique_ptr<writer> writer_;
};

}  // namespace cache_refresh
