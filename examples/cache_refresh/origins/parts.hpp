// What the origins share, and how each of them is opened.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "../origin.hpp"

namespace cache_refresh {

// A folder: its files are the values, and their names are the keys.
std::unique_ptr<origin> open_file_origin(const origin_options&);
// A database in a file: the default, which this program creates and fills, or one of the user's own.
std::unique_ptr<origin> open_sqlite_origin(const origin_options&);
// A web server: a URL returns a list of names, and the values are below it.
std::unique_ptr<origin> open_http_origin(const origin_options&);
// A PostgreSQL server: a table that this program creates and fills, or the user's own queries.
std::unique_ptr<origin> open_postgresql_origin(const origin_options&);

// ---- Limits and times to live

// How long opening an origin waits for a server that does not answer.
inline constexpr std::chrono::seconds opening_patience{5};

// For values that are stale at once at their origin. With a time to live of 0 they would be loaded without a pause.
inline constexpr std::chrono::seconds shortest_ttl{1};

// The time to live that a database gives; shortest_ttl if it is not positive.
inline time_to_live ttl_of(std::int64_t milliseconds) {
  if (milliseconds <= 0) return {.soft = shortest_ttl, .hard = {}};
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(rondo::duration::max()).count();
  return {.soft = std::chrono::milliseconds(std::min<std::int64_t>(milliseconds, most)), .hard = {}};
}

// A limit in the form that libraries take: from 1 ms to one hour.
inline std::chrono::milliseconds whole_milliseconds(rondo::duration limit) {
  return std::clamp<std::chrono::milliseconds>(
      std::chrono::ceil<std::chrono::milliseconds>(std::min<rondo::duration>(limit, std::chrono::hours(1))),
      std::chrono::milliseconds(1), std::chrono::hours(1));
}

// How long an answer of a web server may be used: RFC 9111, and RFC 5861 for stale answers.
struct http_caching {
  std::string_view cache_control;  // all Cache-Control lines, joined with commas
  std::chrono::seconds age{0};     // Age: how long other caches have held it
  // Expires, counted from Date. Ignored if there is a max-age.
  std::optional<std::chrono::seconds> expires;
};

// Fresh for max-age minus Age, and served while stale for the longer of stale-while-revalidate and stale-if-error.
// - An answer that is stale at once (no-cache, no-store, max-age=0) counts as fresh for shortest_ttl, one second.
//   Otherwise a cache that loads ahead would load it without a pause.
// - With must-revalidate, proxy-revalidate, no-cache or no-store, an answer is not served when stale: the hard TTL is not
//   longer than the soft one, and 0 if that is empty.
// - The soft TTL is empty if there is no max-age, Expires, no-cache or no-store.
time_to_live ttl_of(const http_caching&);

// ---- What databases are filled with, and how values change

struct new_row {
  std::string key;
  std::string value;
  std::int64_t ttl_ms;
};

// Calls `add` for each row: the fields of the catalogue or made-up rows, as the options say. No key occurs twice. The
// same seed gives the same times to live. Throws origin_error if the catalogue cannot be read.
void make_rows(const origin_options&, const std::function<void(const new_row&)>& add);

// Returns the text with the mark of an editor at its end, which replaces an earlier one: "Priority [edit 12]".
inline std::string marked(std::string text, const std::string& mark) {
  constexpr const char* opens = " [edit ";
  const std::size_t earlier = text.ends_with(']') ? text.rfind(opens) : std::string::npos;
  if (earlier != std::string::npos) text.resize(earlier);
  return text.append(opens).append(mark).append("]");
}

// ---- News

// Ends a thread that waits in poll().
class stop_event {
 public:
  stop_event() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  }
  ~stop_event() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  stop_event(const stop_event&) = delete;
  stop_event& operator=(const stop_event&) = delete;

  // From now on the descriptor is readable.
  void set() noexcept { static_cast<void>(!::write(ends_[1], "", 1)); }
  int descriptor() const noexcept { return ends_[0]; }

  // Waits for the event or for `other`, at most for the given time (-1: no limit). Returns true if the event was set.
  bool wait(int milliseconds, int other = -1) const noexcept {
    pollfd all[] = {{ends_[0], POLLIN, 0}, {other, POLLIN, 0}};  // poll() ignores a negative descriptor
    ::poll(all, 2, milliseconds);
    return all[0].revents != 0;
  }

 private:
  int ends_[2];
};

}  // namespace cache_refresh
