#include "trace/trace_events.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ostream>

namespace rondo::detail {
namespace {

// The track of the deadlines; that of thread n is n after it.
constexpr std::uint32_t deadlines_track = 1;
constexpr std::size_t longest_line = 4096;
// Only what has a length can have arrows.
constexpr duration longest_deadline = std::chrono::microseconds(1);

const char* reason(woken why) noexcept {
  switch (why) {
    case woken::due:
      return "its time had come";
    case woken::rung:
      return "an earlier timer, or the end";
    case woken::awake:
      return "it did not sleep";
    case woken::polled:
      return "poll()";
    case woken::advanced:
      return "virtual time";
  }
  return "";
}

const char* verb(traced what) noexcept {
  switch (what) {
    case traced::pass:
      return "pass";
    case traced::run:
    case traced::job:
      return "";
    case traced::hand_over:
      return "hand over ";
    case traced::missed:
      return "missed: ";
    case traced::overlapped:
      return "dropped: ";
    case traced::rejected:
      return "rejected: ";
    case traced::threw:
      return "the executor threw: ";
  }
  return "";
}

/// The length that a slice is drawn with. Where it ends, the next one often begins, or the one around it ends. Viewers that
/// add begin and length as floating-point numbers would see some of them overlap, so a slice ends early by a nanosecond for
/// each level at which it may be.
duration drawn(duration length, int level) noexcept {
  return std::max(length - std::chrono::nanoseconds(level), duration::zero());
}

int level(traced what) noexcept { return what == traced::pass ? 1 : what == traced::hand_over ? 2 : 3; }

/// The length of the UTF-8 character at the beginning of `text`, or 0 if there is none.
std::size_t character(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i != length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool is_overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool is_none = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return is_overlong || is_none ? 0 : length;
}

}  // namespace

trace_events::trace_events(const snapshot& all) : all_(all), parts_(all.events.size()) {
  lateness why(all);
  for (std::size_t i = 0; i != all.events.size(); ++i) {
    const event& e = all.events[i];
    tracks_.insert({e.scheduler, e.thread});
    if (e.what == traced::pass) drivers_.insert({e.scheduler, e.thread});
    if (!e.is_run()) continue;
    parts_[i] = why.of(e);
    starts_[{e.timer, e.run}] = i;
    deadlines_.emplace_back(e.scheduler, e.due, i);
  }
  std::sort(deadlines_.begin(), deadlines_.end());
  line_.reserve(longest_line);
}

void trace_events::write(std::ostream& out) {
  line_ = R"({"displayTimeUnit":"ns","traceEvents":[)";
  write_line(out);
  write_names(out);
  write_deadlines(out);
  for (std::size_t i = 0; i != all_.events.size(); ++i) write_event(out, i);
  line_ = "\n]}\n";
  write_line(out);
}

void trace_events::write_names(std::ostream& out) {
  const auto name = [&](std::string_view what, std::uint32_t scheduler, std::uint32_t track) {
    begin('M', scheduler, track, {});
    add_text("name", what);
    add(R"(,"args":{"name":")");
  };
  const auto close = [&] {
    add(R"("})");
    end(out);
  };
  std::uint32_t last = 0;
  for (const auto& [scheduler, thread] : tracks_) {
    if (scheduler != last) {
      last = scheduler;
      name("process_name", scheduler, deadlines_track);
      const auto named = all_.schedulers.find(scheduler);
      if (named != all_.schedulers.end()) add_escaped(named->second);
      add(" (scheduler ");
      add_number(scheduler);
      add(")");
      close();
      name("thread_name", scheduler, deadlines_track);
      add("deadlines");
      close();
    }
    name("thread_name", scheduler, deadlines_track + thread);
    add(drivers_.contains({scheduler, thread}) ? "driver, thread " : "executor thread ");
    add_number(thread);
    close();
  }
}

/// One slice for each deadline, from which arrows lead to its runs.
void trace_events::write_deadlines(std::ostream& out) {
  for (std::size_t i = 0; i != deadlines_.size();) {
    const auto [scheduler, due, first] = deadlines_[i];
    std::size_t next = i;
    while (next != deadlines_.size() && std::get<0>(deadlines_[next]) == scheduler &&
           std::get<1>(deadlines_[next]) == due)
      ++next;
    duration length = longest_deadline;
    if (next != deadlines_.size() && std::get<0>(deadlines_[next]) == scheduler)
      length = std::min(length, saturating_difference(std::get<1>(deadlines_[next]), due));
    begin('X', scheduler, deadlines_track, due);
    add_duration("dur", drawn(length, 1));
    add(R"(,"name":")");
    add_timer(all_.events[first].timer);
    if (next - i > 1) {
      add(" and ");
      add_number(next - i - 1);
      add(" more");
    }
    add(R"(")");
    end(out);
    for (; i != next; ++i) {
      begin('s', scheduler, deadlines_track, due);
      add(R"(,"name":"wait","cat":"rondo","id":)");
      add_number(std::get<2>(deadlines_[i]) + 1);
      end(out);
    }
  }
}

void trace_events::write_event(std::ostream& out, std::size_t which) {
  const event& e = all_.events[which];
  const std::uint32_t track = deadlines_track + e.thread;
  const bool is_over = e.end != time_point::max();
  begin(!e.takes_time() ? 'i' : is_over ? 'X' : 'B', e.scheduler, track, e.begin);
  if (e.takes_time() && is_over) add_duration("dur", drawn(e.end - e.begin, level(e.what)));
  if (!e.takes_time()) add(R"(,"s":"t")");
  add(R"(,"name":")");
  add(verb(e.what));
  if (e.what != traced::pass) add_timer(e.timer);
  add(R"(","args":{)");
  if (e.what == traced::pass) {
    add(R"("woken by":")");
    add(reason(e.why));
    add(R"("})");
    return end(out);
  }
  add(R"("run":)");
  add_number(e.run);
  if (e.what == traced::missed || e.what == traced::overlapped) {
    add(R"(,"points":)");
    add_number(e.count);
  }
  add_duration("due", e.due.time_since_epoch());
  if (e.is_run()) add_lateness(which);
  add("}");
  end(out);
  const auto start = starts_.find({e.timer, e.run});
  if (!e.takes_time() || start == starts_.end()) return;
  begin(e.is_run() ? 'f' : 't', e.scheduler, track, e.begin);
  add(R"(,"bp":"e","name":"wait","cat":"rondo","id":)");
  add_number(start->second + 1);
  end(out);
  if (!e.is_run()) return;
  begin('C', e.scheduler, track, e.begin);
  add(R"(,"name":"lateness","args":{"us":)");
  add_microseconds(parts_[which].whole.count());
  add("}");
  end(out);
}

void trace_events::add_lateness(std::size_t which) noexcept {
  const lateness::parts& p = parts_[which];
  add_duration("late", p.whole);
  if (p.whole == duration::zero()) return;
  add_duration("woken late", p.woken_late);
  add_duration("behind tasks", p.behind_tasks);
  add_duration("in executor", p.in_executor);
  add_duration("in pass", p.in_pass);
  if (p.longest == tally::nobody) return;
  add(R"(,"waited most for":")");
  add_timer(p.longest);
  add(R"(")");
}

void trace_events::begin(char phase, std::uint32_t scheduler, std::uint32_t track, time_point t) noexcept {
  line_.assign(std::exchange(is_first_, false) ? "\n" : ",\n");
  add(R"({"ph":")");
  line_.push_back(phase);
  add(R"(","pid":)");
  add_number(scheduler);
  add(R"(,"tid":)");
  add_number(track);
  add(R"(,"ts":)");
  add_microseconds(t.time_since_epoch().count());
}

void trace_events::end(std::ostream& out) {
  add("}");
  write_line(out);
}

void trace_events::write_line(std::ostream& out) const {
  out.write(line_.data(), static_cast<std::streamsize>(line_.size()));
}

/// No line is longer than what is reserved, so none allocates: names have a limit.
void trace_events::add(std::string_view text) noexcept { line_.append(text); }

void trace_events::add_number(std::uint64_t number) noexcept {
  std::array<char, 20> digits{};
  char* const last = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  line_.append(digits.data(), last);
}

void trace_events::add_microseconds(std::int64_t nanoseconds) noexcept {
  const auto bits = static_cast<std::uint64_t>(nanoseconds);
  const std::uint64_t positive = nanoseconds < 0 ? -bits : bits;
  if (nanoseconds < 0) line_.push_back('-');
  add_number(positive / 1000);
  line_.push_back('.');
  for (const std::uint64_t unit : {100U, 10U, 1U})
    line_.push_back(static_cast<char>('0' + positive / unit % 10));
}

void trace_events::add_text(std::string_view key, std::string_view text) noexcept {
  add(R"(,")");
  add(key);
  add(R"(":")");
  add(text);
  add(R"(")");
}

void trace_events::add_duration(std::string_view key, duration d) noexcept {
  add(R"(,")");
  add(key);
  add(R"(":)");
  add_microseconds(d.count());
}

/// Its name or, if it has none, its id.
void trace_events::add_timer(std::size_t which) noexcept {
  const snapshot::timer& t = all_.timers[which];
  if (!t.name.empty()) return add_escaped(t.name);
  const timer_id_parts& id = timer_id_access::parts(t.id);
  add("timer ");
  add_number(id.scheduler);
  add(".");
  add_number(id.slot);
  add(".");
  add_number(id.generation);
}

void trace_events::add_escaped(std::string_view text) noexcept {
  constexpr std::string_view digits = "0123456789abcdef";
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t length = character(text);
    if (length == 0) {
      add("\\ufffd");
    } else if (c < 0x20 || c == 0x7f) {
      add("\\u00");
      line_.push_back(digits[c >> 4]);
      line_.push_back(digits[c & 15U]);
    } else {
      if (c == '"' || c == '\\') line_.push_back('\\');
      add(text.substr(0, length));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

}  // namespace rondo::detail
