#include "trace/snapshot.hpp"

#include <array>
#include <cstring>
#include <string_view>

namespace rondo::detail {
namespace {

time_point time_of(std::uint64_t bits) noexcept {
  return time_point(duration(static_cast<duration::rep>(bits)));
}

/// What is left of a name that may have been cut, without a part of a character.
std::string_view whole_characters(std::string_view name, std::size_t longest) noexcept {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; };
  if (name.size() != longest) return name;
  std::size_t last = longest - 1;
  while (last != 0 && continues(name[last])) --last;
  const auto lead = static_cast<unsigned char>(name[last]);
  const std::size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return last + length > longest ? name.substr(0, last) : name;
}

std::string scheduler_name(const trace_ring::content& says) {
  std::array<char, 33> text{};
  std::memcpy(text.data(), &says[2], 32);
  return std::string(whole_characters(text.data(), 32));
}

}  // namespace

snapshot::snapshot(const trace_ring& ring) {
  std::map<timer_id, std::size_t> known;
  ring.for_each([&](const trace_ring::event& e, std::string_view name) { add(e, name, known); });
  is_complete = ring.lost() == 0;
}

void snapshot::add(const trace_ring::event& e, std::string_view name,
                   std::map<timer_id, std::size_t>& known) {
  event made{};
  made.what = static_cast<traced>(e.what.kind);
  made.thread = e.what.thread;
  made.begin = time_of(e.says[0]);
  const bool in_progress = e.length < duration::zero();
  made.end = in_progress ? time_point::max() : saturating_add(made.begin, e.length);
  if (made.what == traced::pass) {
    made.scheduler = static_cast<std::uint32_t>(e.says[1] >> 8);
    made.why = static_cast<woken>(e.says[1] & 0xffU);
    schedulers.try_emplace(made.scheduler, scheduler_name(e.says));
  } else {
    made.scheduler = static_cast<std::uint32_t>(e.says[2] >> 32);
    const timer_id id =
        timer_id_access::make(made.scheduler, static_cast<std::uint32_t>(e.says[2]), e.says[3]);
    const auto [at, is_new] = known.try_emplace(id, timers.size());
    if (is_new) timers.push_back({id, {}});
    made.timer = at->second;
    if (timers[made.timer].name.empty())
      timers[made.timer].name = whole_characters(name, sizeof(trace_ring::content));
    made.due = time_of(e.says[1]);
    made.run = e.says[4];
    made.count = e.says[5];
    made.from = time_of(e.says[5]);
  }
  made.clock = e.what.is_virtual ? made.scheduler : 0;
  events.push_back(made);
}

}  // namespace rondo::detail
