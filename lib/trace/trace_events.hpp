// A trace as JSON, in the Trace Event Format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <rondo/time.hpp>

#include "trace/lateness.hpp"
#include "trace/snapshot.hpp"

namespace rondo::detail {

/// Writes what is in a snapshot. The format: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
class trace_events {
 public:
  /// Takes all memory that is needed. Throws std::bad_alloc.
  explicit trace_events(const snapshot&);

  /// Throws only what `out` throws.
  void write(std::ostream& out);

 private:
  using event = snapshot::event;
  /// Several runs may have one deadline.
  using deadline = std::tuple<std::uint32_t, time_point, std::size_t>;  // scheduler; which event

  void write_names(std::ostream&);
  void write_deadlines(std::ostream&);
  void write_event(std::ostream&, std::size_t);

  // One line.
  void begin(char phase, std::uint32_t scheduler, std::uint32_t track, time_point) noexcept;
  void add(std::string_view) noexcept;
  void add_number(std::uint64_t) noexcept;
  void add_microseconds(std::int64_t nanoseconds) noexcept;
  void add_text(std::string_view key, std::string_view) noexcept;
  void add_escaped(std::string_view) noexcept;
  void add_duration(std::string_view key, duration) noexcept;
  void add_timer(std::size_t) noexcept;
  void add_lateness(std::size_t which) noexcept;
  void end(std::ostream&);
  void write_line(std::ostream&) const;

  const snapshot& all_;
  std::vector<lateness::parts> parts_;                                   // of each event that is a run
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> starts_;  // of the runs of timers: which event
  std::vector<deadline> deadlines_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> drivers_;  // schedulers, and their drivers' threads
  std::set<std::pair<std::uint32_t, std::uint32_t>> tracks_;   // as above, all threads
  std::string line_;
  bool is_first_ = true;
};

}  // namespace rondo::detail
