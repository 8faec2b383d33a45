// Which keys fail, why, and since when: what the person on duty asks first.
#include "station.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cache_refresh {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// `part` is in lower case.
bool contains(const std::string& text, const std::string& part) {
  const auto same = [](char in_text, char wanted) { return lower(in_text) == wanted; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

struct candidate {
  rondo::time_point served_until;
  rondo::time_point since;
  key_number key;
  std::optional<rondo::time_point> next_load;
  std::string why;

  bool operator<(const candidate& other) const {
    return std::tie(served_until, since, key) < std::tie(other.served_until, other.since, other.key);
  }
};

}  // namespace

std::optional<current_error> latest_error(const record_cache& cache, rondo::time_point now) {
  std::optional<key_state::failure> latest;
  cache.for_each([&](key_number, const key_state& key) {
    if (key.failing && (!latest || key.failing->latest > latest->latest)) latest = *key.failing;
  });
  if (!latest) return std::nullopt;
  rondo::time_point since = latest->since;
  cache.for_each([&](key_number, const key_state& key) {
    if (key.failing && key.failing->why == latest->why) since = std::min(since, key.failing->since);
  });
  return current_error{latest->why, now - since};
}

failing_keys find_failing(const record_cache& cache, const std::vector<std::string>& names,
                          const std::string& find, rondo::time_point now, std::size_t most) {
  std::string wanted = find;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), lower);
  failing_keys found;
  std::vector<candidate> first;  // a heap with the last of them in front
  cache.for_each([&](key_number key, const key_state& state) {
    if (!state.failing) return;
    ++found.all;
    const key_state::failure& failing = *state.failing;
    if (!contains(names[key], wanted) && !contains(failing.why, wanted)) return;
    ++found.matching;
    // A value that has ended is as good as none.
    const rondo::time_point end = std::max(state.served_until.value_or(now), now);
    candidate each{end, failing.since, key, state.next_load, {}};
    if (first.size() == most) {
      if (!(each < first.front())) return;
      std::pop_heap(first.begin(), first.end());
      first.pop_back();
    }
    each.why = failing.why;
    first.push_back(std::move(each));
    std::push_heap(first.begin(), first.end());
  });
  std::sort_heap(first.begin(), first.end());
  for (candidate& each : first) {
    found.first.push_back({names[each.key], std::move(each.why), now - each.since,
                           each.next_load ? std::optional(*each.next_load - now) : std::nullopt,
                           each.served_until - now});
  }
  return found;
}

}  // namespace cache_refresh
