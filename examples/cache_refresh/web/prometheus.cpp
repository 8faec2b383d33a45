#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "formats.hpp"

namespace cache_refresh {
namespace {

double seconds(rondo::duration d) { return std::chrono::duration<double>(d).count(); }

// Prometheus refuses the whole text if one label is not UTF-8, and a file name may contain any bytes.
std::string valid_utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

std::string label(const std::string& value) {
  std::string result;
  for (const char each : valid_utf8(value)) {
    if (each == '\n') {
      result += "\\n";
      continue;
    }
    if (each == '\\' || each == '"') result += '\\';
    result += each;
  }
  return result;
}

// The bounds are 1, 2.5 and 5 times the powers of ten in this range.
struct decades {
  rondo::duration first;
  rondo::duration last;
};
constexpr decades of_work = {std::chrono::microseconds(1), std::chrono::seconds(10)};
constexpr decades of_ages = {std::chrono::milliseconds(1), std::chrono::seconds(10'000)};

// Names and help texts are constants that need no escapes.
class exposition {
 public:
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    describe(name, "counter", help);
    add("{} {}\n", name, value);
  }
  template <class Value>
  void gauge(std::string_view name, std::string_view help, Value value) {
    describe(name, "gauge", help);
    add("{} {}\n", name, value);
  }
  void describe(std::string_view name, std::string_view type, std::string_view help) {
    add("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }

  // The source's buckets are narrow (1/32 or less). A bucket that contains a bound counts as above it.
  template <class Buckets>
  void histogram(std::string_view name, std::string_view help, const Buckets& buckets, rondo::duration sum,
                 decades range) {
    describe(name, "histogram", help);
    std::uint64_t count = 0;
    auto next = buckets.begin();
    for (rondo::duration decade = range.first; decade <= range.last; decade *= 10) {
      for (const int tenths : {10, 25, 50}) {
        const rondo::duration bound = decade / 10 * tenths;
        for (; next != buckets.end() && next->upper <= bound; ++next) count += next->count;
        add("{}_bucket{{le=\"{}\"}} {}\n", name, seconds(bound), count);
      }
    }
    // The count is the sum of the buckets, even if the snapshot was taken while durations were being recorded.
    for (; next != buckets.end(); ++next) count += next->count;
    add("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count, seconds(sum));
  }

  template <class... Argument>
  void add(fmt::format_string<Argument...> format, Argument&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Argument>(arguments)...);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_keys(exposition& out, const snapshot& now) {
  const key_counts& keys = now.keys;
  out.describe("cache_refresh_keys", "gauge",
               "Keys in the cache: fresh, stale but served, and without a value.");
  out.add("cache_refresh_keys{{state=\"fresh\"}} {}\n", keys.fresh);
  out.add("cache_refresh_keys{{state=\"stale\"}} {}\n", keys.stale);
  out.add("cache_refresh_keys{{state=\"empty\"}} {}\n", keys.empty);
  out.gauge("cache_refresh_keys_failing", "Keys whose last load failed.", keys.failing);
  if (now.served_for) {
    out.gauge("cache_refresh_served_for_seconds",
              "Every value that is served now will be served for this long.", seconds(*now.served_for));
  }
}

void add_reads(exposition& out, const snapshot& now) {
  const cache_statistics& cache = now.cache;
  out.counter("cache_refresh_hits_total", "Reads served at once, stale ones included.", cache.hits);
  out.counter("cache_refresh_stale_hits_total", "Reads served at once with a stale value.", cache.stale_hits);
  out.counter("cache_refresh_misses_total", "Reads for which there was nothing to serve.", cache.misses);
  out.counter("cache_refresh_unserved_total", "Reads that got no value.", now.unserved);
  out.histogram("cache_refresh_read_wait_seconds", "How long readers waited for an answer.",
                now.reads.buckets, now.reads.sum, of_work);
  out.histogram("cache_refresh_value_age_seconds", "Age of the values served, since the origin was asked.",
                now.ages.buckets, now.ages.sum, of_ages);
}

void add_loads(exposition& out, const snapshot& now) {
  const cache_statistics& cache = now.cache;
  out.counter("cache_refresh_loads_total", "Loads begun.", cache.loads);
  out.counter("cache_refresh_loads_changed_total", "Loads that brought a value.", cache.loaded);
  out.counter("cache_refresh_loads_confirmed_total", "Loads that reported that the value has not changed.",
              cache.confirmed);
  out.counter("cache_refresh_loads_failed_total", "Loads that failed or took too long.", cache.failed);
  out.gauge("cache_refresh_loads_failed_in_a_row",
            "Loads that have failed since the last one that succeeded.", cache.failed_in_a_row);
  out.counter("cache_refresh_loads_unread_total", "Loads of keys that nobody had read since the load before.",
              cache.unread_loads);
  out.counter("cache_refresh_late_answers_total",
              "Answers dropped because their load had been given up or their key was gone.",
              cache.late_answers);
  out.counter("cache_refresh_forgotten_keys_total", "Keys dropped because nobody read them.",
              cache.forgotten);
  out.gauge("cache_refresh_loads_in_progress", "Loads whose answers are awaited.", cache.in_progress);
  out.gauge("cache_refresh_loads_waiting", "Loads that wait for another one to end.", cache.waiting);
  out.counter("cache_refresh_edits_total", "Changes that this program made at the origin.", now.edits);
  out.histogram("cache_refresh_load_duration_seconds", "How long the origin took.", now.loads.buckets,
                now.loads.sum, of_work);
}

void add_timer(exposition& out, const rondo::statistics& timer) {
  out.gauge("cache_refresh_timer_pending", "Timers that are pending.", timer.pending);
  out.counter("cache_refresh_timer_scheduled_total", "Timers ever scheduled.", timer.scheduled);
  out.counter("cache_refresh_timer_fired_total", "Runs of the timers' tasks.", timer.fired);
  out.counter("cache_refresh_timer_completed_total", "Timers that ended by themselves.", timer.completed);
  out.counter("cache_refresh_timer_cancelled_total", "Timers cancelled.", timer.cancelled);
  out.counter("cache_refresh_timer_failed_total", "Runs that threw.", timer.failed);
  out.counter("cache_refresh_timer_wakeups_total", "Wake-ups of the timer's thread.", timer.wakeups);
  out.histogram("cache_refresh_timer_lateness_seconds", "From a timer's deadline to the start of its task.",
                timer.lateness.buckets(), timer.lateness.sum(), of_work);
  out.histogram("cache_refresh_timer_run_seconds", "How long the timers' tasks ran.",
                timer.run_time.buckets(), timer.run_time.sum(), of_work);
}

}  // namespace

std::string prometheus_text(const snapshot& now) {
  exposition out;
  out.describe("cache_refresh_info", "gauge", "The origin of this cache, and how it refreshes.");
  out.add("cache_refresh_info{{mode=\"{}\",origin=\"{}\"}} 1\n", label(now.mode), label(now.origin));
  out.gauge("cache_refresh_uptime_seconds", "Since the run began.", seconds(now.elapsed));
  add_keys(out, now);
  add_reads(out, now);
  add_loads(out, now);
  add_timer(out, now.timer);
  return out.take();
}

}  // namespace cache_refresh
