#include <rondo/recurrence.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <ostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "values/fresh_seed.hpp"

namespace rondo {
namespace {

/// Any number of points. (`unlimited` has 32 bits on some systems.)
constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();

std::string text_of(duration d) {
  struct unit {
    duration::rep length;
    const char* name;
  };
  static constexpr std::array<unit, 6> units{{{3'600'000'000'000, "h"},
                                              {60'000'000'000, "min"},
                                              {1'000'000'000, "s"},
                                              {1'000'000, "ms"},
                                              {1'000, "us"},
                                              {1, "ns"}}};
  if (d == duration::zero()) return "0s";
  const auto fits = [&](const unit& u) { return d.count() % u.length == 0; };
  const unit& u = *std::find_if(units.begin(), units.end(), fits);
  return std::to_string(d.count() / u.length) + u.name;
}

std::string text_of(double x) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), x);  // the shortest exact text
  return {digits.data(), end.ptr};
}

[[noreturn]] void refuse(const std::string& what, const std::string& value) {
  throw std::invalid_argument("rondo: " + what + ", not " + value);
}

duration checked_positive(const char* what, duration d) {
  if (d <= duration::zero()) refuse(std::string(what) + " must be positive", text_of(d));
  return d;
}

std::vector<duration> checked_gaps(std::vector<duration> gaps) {
  if (gaps.empty()) throw std::invalid_argument("rondo: the list of gaps is empty");
  for (const duration gap : gaps) checked_positive("each gap", gap);
  return gaps;
}

/// a − b in nanoseconds, which may exceed the longest duration. Precondition: a >= b.
std::uint64_t distance(time_point a, time_point b) noexcept {
  return static_cast<std::uint64_t>(a.time_since_epoch().count()) -
         static_cast<std::uint64_t>(b.time_since_epoch().count());
}

/// A random number, 0 <= result < 1. Equal arguments give equal results. (The mixing function is from SplitMix64;
/// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014.)
double draw(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

std::uint64_t random_seed() noexcept {
  try {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
  } catch (const std::exception&) {  // the system has no source, so all processes draw the same numbers
    return 0;
  }
}

}  // namespace

namespace detail {

void refuse_times(std::intmax_t n) { refuse("times() takes a positive number", std::to_string(n)); }

std::uint64_t fresh_seed() noexcept {
  static std::atomic<std::uint64_t> seeds{random_seed()};
  return seeds.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace detail

/// A point of the grid.
struct recurrence::point {
  time_point time;
  std::uint64_t gaps;  // how many were used so far
};

/// Gaps that repeat, taken together.
struct recurrence::stretch {
  duration length;
  std::uint64_t gaps;
};

recurrence every(any_duration period) {
  return {recurrence::kind::every, checked_positive("the period", period)};
}

recurrence after_completion(any_duration delay) {
  return {recurrence::kind::after_completion, checked_positive("the delay", delay)};
}

recurrence intervals(std::vector<duration> gaps) {
  recurrence r(recurrence::kind::intervals, duration::zero());
  r.gaps_ = std::make_shared<const std::vector<duration>>(checked_gaps(std::move(gaps)));
  return r;
}

recurrence intervals(std::initializer_list<duration> gaps) { return intervals(std::vector<duration>(gaps)); }

recurrence cycle(std::vector<duration> gaps) {
  recurrence r(recurrence::kind::cycle, duration::zero());
  r.gaps_ = std::make_shared<const std::vector<duration>>(checked_gaps(std::move(gaps)));
  for (const duration gap : *r.gaps_) r.gap_ = saturating_add(time_point(r.gap_), gap).time_since_epoch();
  return r;
}

recurrence cycle(std::initializer_list<duration> gaps) { return cycle(std::vector<duration>(gaps)); }

recurrence backoff(any_duration first, double factor, any_duration cap) {
  recurrence r(recurrence::kind::backoff, checked_positive("the first gap", first));
  r.factor_ = factor;
  r.cap_ = cap;
  if (!(factor >= 1)) refuse("the factor must be at least 1", text_of(factor));
  if (r.cap_ < r.gap_) refuse("the cap must be at least the first gap, " + text_of(first), text_of(cap));
  return r;
}

recurrence recurrence::times(std::uint64_t n) const {
  if (n == 0) detail::refuse_times(0);
  recurrence r = *this;
  r.times_ = n;
  return r;
}

recurrence recurrence::first_after(any_duration delay) const {
  recurrence r = *this;
  r.start_ = start::after;
  r.first_after_ = delay;
  r.first_at_ = {};
  return r;
}

recurrence recurrence::first_at(any_time_point t) const {
  recurrence r = *this;
  r.start_ = start::at;
  r.first_after_ = {};
  r.first_at_ = t;
  return r;
}

recurrence recurrence::aligned_to(any_time_point origin) const {
  if (kind_ != kind::every) {
    std::ostringstream text;
    text << *this;
    refuse("aligned_to() takes an every()", text.str());
  }
  recurrence r = *this;
  r.start_ = start::aligned;
  r.first_after_ = {};
  r.first_at_ = origin;
  return r;
}

recurrence recurrence::jitter(double fraction) const {
  if (!(fraction >= 0 && fraction <= 1)) refuse("the jitter must be in 0 … 1", text_of(fraction));
  recurrence r = *this;
  r.jitter_ = fraction;
  r.seed_.reset();
  return r;
}

recurrence recurrence::jitter(double fraction, std::uint64_t seed) const {
  recurrence r = jitter(fraction);
  r.seed_ = seed;
  return r;
}

recurrence recurrence::on_missed(missed_runs what, std::size_t burst_limit) const {
  if (burst_limit == 0) throw std::invalid_argument("rondo: the burst limit must be positive, not 0");
  recurrence r = *this;
  r.missed_ = what;
  r.burst_limit_ = burst_limit;
  return r;
}

recurrence recurrence::on_overlap(overlapping_runs what) const {
  recurrence r = *this;
  r.overlap_ = what;
  return r;
}

/// The gap after the first `index` gaps, or none at the end of a list.
std::optional<duration> recurrence::gap(std::uint64_t index) const noexcept {
  switch (kind_) {
    case kind::intervals:
      if (index >= gaps_->size()) return std::nullopt;
      return (*gaps_)[static_cast<std::size_t>(index)];
    case kind::cycle:
      return (*gaps_)[static_cast<std::size_t>(index % gaps_->size())];
    case kind::backoff: {
      const double grown = static_cast<double>(gap_.count()) * std::pow(factor_, static_cast<double>(index));
      if (!(grown < static_cast<double>(cap_.count()))) return cap_;
      return duration(std::llround(grown));
    }
    default:
      return gap_;
  }
}

std::optional<recurrence::stretch> recurrence::repeated_from(std::uint64_t gaps) const noexcept {
  switch (kind_) {
    case kind::intervals:
      return std::nullopt;
    case kind::cycle:
      if (gap_ == duration::max()) return std::nullopt;  // the true sum may be larger
      return stretch{gap_, gaps_->size()};
    case kind::backoff:
      if (factor_ != 1 && *gap(gaps) != cap_) return std::nullopt;
      return stretch{*gap(gaps), 1};
    default:
      return stretch{gap_, 1};
  }
}

/// Moves `p` forward to the last point that is not later than `until`, but by at most `limit` points. Returns the
/// number of points. Precondition: p.time <= until.
std::uint64_t recurrence::move_over(point& p, time_point until, std::uint64_t limit) const noexcept {
  std::uint64_t passed = 0;
  while (passed != limit) {
    if (const auto repeated = repeated_from(p.gaps)) {  // whole repetitions at once
      const auto length = static_cast<std::uint64_t>(repeated->length.count());
      const std::uint64_t turns =
          std::min(distance(until, p.time) / length, (limit - passed) / repeated->gaps);
      p.time = time_point(duration(static_cast<duration::rep>(
          static_cast<std::uint64_t>(p.time.time_since_epoch().count()) + turns * length)));
      p.gaps += turns * repeated->gaps;
      passed += turns * repeated->gaps;
      if (passed == limit) break;
    }
    const auto step = gap(p.gaps);
    if (!step || static_cast<std::uint64_t>(step->count()) > distance(until, p.time)) break;
    p = {p.time + *step, p.gaps + 1};
    ++passed;
  }
  return passed;
}

duration recurrence::jitter_of(duration before, const occurrence& o) const noexcept {
  // A draw is at most 1 − 2^-53, so the result is less than `before`, and the conversion cannot overflow.
  return duration(
      static_cast<duration::rep>(draw(o.seed, o.gaps) * jitter_ * static_cast<double>(before.count())));
}

/// The occurrence at `p`. Precondition: p.gaps > 0.
recurrence::occurrence recurrence::occurrence_at(const point& p, const occurrence& model) const noexcept {
  occurrence o = model;
  o.grid = p.time;
  o.gaps = p.gaps;
  o.due = saturating_add(o.grid, jitter_of(*gap(p.gaps - 1), o));
  return o;
}

/// The occurrence after the gap that follows `p`; the gap is counted from `from`.
std::optional<recurrence::occurrence> recurrence::after(const point& p, const occurrence& model,
                                                        time_point from) const noexcept {
  const auto step = gap(p.gaps);
  if (!step) return std::nullopt;
  // The longest gap means never, even if `from` + gap is before the end of the clock.
  const time_point next = *step == duration::max() ? time_point::max() : saturating_add(from, *step);
  return occurrence_at({next, p.gaps + 1}, model);
}

/// The first point of the grid of aligned_to() that is later than `now`.
time_point recurrence::aligned_after(time_point now) const noexcept {
  const time_point origin = first_at_;
  if (gap_ == duration::max())
    return origin > now ? origin : time_point::max();  // the longest gap means never
  const auto period = static_cast<std::uint64_t>(gap_.count());
  const std::uint64_t ahead =
      origin > now ? (distance(origin, now) - 1) % period + 1 : period - distance(now, origin) % period;
  return saturating_add(now, duration(static_cast<duration::rep>(ahead)));
}

recurrence::occurrence recurrence::first(time_point now, std::uint64_t seed) const {
  occurrence o;
  o.seed = seed_.value_or(seed);
  if (start_ == start::one_gap) return *after({now, 0}, o, now);
  if (start_ == start::aligned) return occurrence_at({aligned_after(now), 1}, o);
  time_point wanted = first_at_;
  if (start_ == start::after)
    wanted = first_after_ == duration::max() ? time_point::max() : saturating_add(now, first_after_);
  point p{wanted, 0};
  if (wanted < now) move_over(p, now, any_number);
  o.grid = p.time;
  o.gaps = p.gaps;
  const bool is_list = kind_ != kind::every && kind_ != kind::after_completion;
  const duration before = is_list ? saturating_difference(std::max(wanted, now), now) : gap_;
  o.due = saturating_add(std::max(wanted, now), jitter_of(before, o));
  return o;
}

recurrence::look recurrence::look_at(const occurrence& planned, time_point now) const {
  return look_at(planned, now, now);
}

recurrence::look recurrence::look_at(const occurrence& planned, time_point now, time_point tick) const {
  look l;
  l.run = planned;
  l.last = is_last(planned.run);
  if (counts_from_end()) return l;
  // A run that is late by less than a gap has missed nothing. So jitter must not count as lateness: neither the jitter
  // of this run nor, in a list, that of the previous run.
  const time_point expected = std::max(planned.due, planned.not_before);
  const time_point until = saturating_add(tick, -saturating_difference(expected, planned.grid));
  point p{planned.grid, planned.gaps};
  const std::uint64_t gone = until > planned.grid ? move_over(p, until, any_number) : 0;
  l.points = gone + 1;
  occurrence model = planned;
  if (missed_ == missed_runs::burst) {
    l.missed = gone >= burst_limit_ ? gone - (burst_limit_ - 1) : 0;
    for (;; --l.missed) {  // back to a run that its jitter no longer delays
      p = {planned.grid, planned.gaps};
      move_over(p, until, l.missed);
      l.run = l.missed == 0 ? planned : occurrence_at(p, planned);
      if (l.missed == 0 || l.run.due <= tick) break;
    }
  } else {
    l.missed = gone;
  }
  model.run = planned.run + 1;
  model.not_before = std::max(planned.not_before, l.run.due);
  const bool moves = missed_ == missed_runs::delay && gone != 0;
  l.next = after(p, model, moves ? now : p.time);
  l.last = l.last || !l.next;
  return l;
}

std::uint64_t recurrence::left(std::uint64_t runs, std::uint64_t gaps) const noexcept {
  const std::uint64_t by_times = times_ ? *times_ - runs : any_number;
  const std::uint64_t by_list = kind_ == kind::intervals ? gaps_->size() + 1 - gaps : any_number;
  return std::min(by_times, by_list);
}

std::optional<recurrence::occurrence> recurrence::next(const occurrence& previous, time_point now) const {
  if (!counts_from_end()) {
    const look l = look_at(previous, now);
    return l.last ? std::nullopt : l.next;
  }
  if (is_last(previous.run)) return std::nullopt;
  occurrence model = previous;
  ++model.run;
  return after({now, previous.gaps}, model, now);
}

bool operator==(const recurrence& a, const recurrence& b) noexcept {
  const bool same_gaps =
      (a.gaps_ == nullptr) == (b.gaps_ == nullptr) && (a.gaps_ == nullptr || *a.gaps_ == *b.gaps_);
  return same_gaps && a.kind_ == b.kind_ && a.gap_ == b.gap_ && a.factor_ == b.factor_ && a.cap_ == b.cap_ &&
         a.times_ == b.times_ && a.start_ == b.start_ && a.first_after_ == b.first_after_ &&
         a.first_at_ == b.first_at_ && a.jitter_ == b.jitter_ && a.seed_ == b.seed_ &&
         a.missed_ == b.missed_ && a.burst_limit_ == b.burst_limit_ && a.overlap_ == b.overlap_;
}

std::ostream& operator<<(std::ostream& out, const recurrence& r) {
  using kind = recurrence::kind;
  static constexpr std::array<const char*, 5> names{"every", "after_completion", "intervals", "cycle",
                                                    "backoff"};
  std::string text = names[static_cast<std::size_t>(r.kind_)];
  if (r.gaps_ != nullptr) {
    for (std::size_t i = 0; i != r.gaps_->size(); ++i)
      text += (i == 0 ? "({" : ", ") + text_of((*r.gaps_)[i]);
    text += "})";
  } else if (r.kind_ == kind::backoff) {
    text += '(' + text_of(r.gap_) + ", " + text_of(r.factor_) + ", " + text_of(r.cap_) + ')';
  } else {
    text += '(' + text_of(r.gap_) + ')';
  }
  if (r.times_) text += ".times(" + std::to_string(*r.times_) + ')';
  if (r.start_ == recurrence::start::after) text += ".first_after(" + text_of(r.first_after_) + ')';
  if (r.start_ == recurrence::start::at)
    text += ".first_at(time_point(" + text_of(r.first_at_.time_since_epoch()) + "))";
  if (r.start_ == recurrence::start::aligned)
    text += ".aligned_to(time_point(" + text_of(r.first_at_.time_since_epoch()) + "))";
  if (r.jitter_ != 0)
    text += ".jitter(" + text_of(r.jitter_) + (r.seed_ ? ", " + std::to_string(*r.seed_) : "") + ')';
  if (r.missed_ == missed_runs::delay) text += ".on_missed(missed_runs::delay)";
  if (r.missed_ == missed_runs::burst)
    text += ".on_missed(missed_runs::burst, " + std::to_string(r.burst_limit_) + ')';
  if (r.overlap_ == overlapping_runs::queue_one) text += ".on_overlap(overlapping_runs::queue_one)";
  if (r.overlap_ == overlapping_runs::allow) text += ".on_overlap(overlapping_runs::allow)";
  return out << text;
}

}  // namespace rondo
