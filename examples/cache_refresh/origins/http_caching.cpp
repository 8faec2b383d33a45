// How long an answer of a web server may be used.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>

#include "parts.hpp"

namespace cache_refresh {
namespace {

using std::chrono::seconds;

constexpr const char* blanks = " \t";

// What a larger number counts as (RFC 9111, 1.2.2).
constexpr seconds longest{std::int64_t{1} << 31};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Takes the next directive from the list: up to a comma that is not between quotes.
std::string_view next_directive(std::string_view& list) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < list.size() && (quoted || list[end] != ','); ++end) {
    if (list[end] == '"') quoted = !quoted;
    if (list[end] == '\\' && quoted && end + 1 < list.size()) ++end;
  }
  const std::string_view directive = trimmed(list.substr(0, end));
  list.remove_prefix(std::min(end + 1, list.size()));
  return directive;
}

// Anything that is not a number counts as zero, so that the answer is stale.
seconds seconds_in(std::string_view text) {
  constexpr std::int64_t most = longest.count();
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return seconds(0);
  if (problem == std::errc::result_out_of_range) number = text.front() == '-' ? 0 : most;
  return seconds(std::clamp<std::int64_t>(number, 0, most));
}

struct directives {
  std::optional<seconds> max_age;
  std::optional<seconds> stale;   // the longer of the two
  bool stale_at_once = false;     // no-cache, no-store
  bool never_when_stale = false;  // these, must-revalidate and proxy-revalidate
};

directives read(std::string_view list) {
  directives all;
  while (!list.empty()) {
    const std::string_view each = next_directive(list);
    const std::size_t equals = std::min(each.find('='), each.size());
    std::string name(trimmed(each.substr(0, equals)));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string_view argument = trimmed(each.substr(std::min(equals + 1, each.size())));
    if (name == "max-age") all.max_age = std::min(all.max_age.value_or(seconds::max()), seconds_in(argument));
    if (name == "stale-while-revalidate" || name == "stale-if-error")
      all.stale = std::max(all.stale.value_or(seconds(0)), seconds_in(argument));
    if (name == "no-cache" || name == "no-store") all.stale_at_once = true;
    if (name == "must-revalidate" || name == "proxy-revalidate") all.never_when_stale = true;
  }
  all.never_when_stale |= all.stale_at_once;
  return all;
}

}  // namespace

time_to_live ttl_of(const http_caching& said) {
  const directives all = read(said.cache_control);
  std::optional<seconds> fresh = all.max_age;
  if (!fresh && said.expires) fresh = std::min(*said.expires, longest);
  if (all.stale_at_once) fresh = seconds(0);
  time_to_live ttl;
  if (fresh) {
    const seconds left = *fresh - said.age;
    ttl.soft = std::max<seconds>(left, shortest_ttl);
    if (all.stale) ttl.hard = std::max<rondo::duration>(left + *all.stale, *ttl.soft);
  }
  if (all.never_when_stale) ttl.hard = ttl.soft.value_or(rondo::duration::zero());
  return ttl;
}

}  // namespace cache_refresh
