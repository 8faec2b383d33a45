#include "station.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/usage.hpp"

namespace cache_refresh {
namespace {

using clock = rondo::scheduler::clock;

constexpr const char* driver_name = "refresh";
// A minute of 2,000 loads per second. They take 8 MiB.
constexpr std::size_t traced_events = 131'072;

// A turn of the wheel takes 2.5 s, slow enough to watch.
rondo::options timer_options(std::shared_ptr<rondo::trace> trace = nullptr) {
  rondo::options chosen;
  chosen.traced_by = std::move(trace);
  chosen.tick = std::chrono::milliseconds(5);
  chosen.buckets = 512;
  chosen.name = driver_name;
  return chosen;
}

const char* name_of(refresh_mode mode) {
  switch (mode) {
    case refresh_mode::on_read:
      return "refresh-on-read";
    case refresh_mode::expire:
      return "expire-then-load";
    default:
      return "refresh-ahead";
  }
}

distribution of(const common::histogram& all) {
  distribution d;
  for (const auto& [upper, count] : all.buckets()) {
    d.buckets.push_back({upper, count});
    d.count += count;  // not all.count(), which would be larger, because others are recording
  }
  d.sum = all.sum();
  d.p50 = all.quantile(0.50);
  d.p99 = all.quantile(0.99);
  d.max = all.max();
  return d;
}

cache_statistics since(cache_statistics now, const cache_statistics& before) {
  for (const auto field : {&cache_statistics::hits, &cache_statistics::stale_hits, &cache_statistics::misses,
                           &cache_statistics::loads, &cache_statistics::loaded, &cache_statistics::confirmed,
                           &cache_statistics::failed, &cache_statistics::unread_loads,
                           &cache_statistics::late_answers, &cache_statistics::forgotten})
    now.*field -= before.*field;
  return now;
}

}  // namespace

station::station(const options& chosen, origin& from, const std::vector<std::string>& names,
                 const zipf& popular)
    : options_(chosen),
      origin_(from),
      names_(names),
      popular_(popular),
      chaotic_(with_chaos(from, chosen.chaos)),
      ledger_(names.size()),
      loader_({chosen.policy.loads_at_once, chosen.policy.load_deadline, chosen.soft_ttl}, *chaotic_, names,
              measured_, landings_),
      trace_(chosen.listen.empty() ? nullptr : std::make_shared<rondo::trace>(traced_events)),
      timer_(timer_options(trace_)),
      cache_(timer_, chosen.policy, [this](record_cache::load begun) { loader_.begin(std::move(begun)); }) {
  before_ = usage_now();
  news_ = from.watch([this](const std::string& key) { news(key); });
  if (chosen.warm) {
    for (key_number key = 0; key < names.size(); ++key) cache_.prefetch(key);
  }
}

bool station::warm() const { return !options_.warm || cache_.stats().loads >= names_.size(); }

void station::start() {
  writer_ = std::make_unique<writer>(writer_options{options_.edits, options_.seed + 2000}, origin_, names_,
                                     ledger_, measured_);
  readers_ =
      std::make_unique<readers>(reader_options{options_.readers, options_.reads,
                                               2 * options_.policy.load_deadline, options_.seed + 1000},
                                popular_, cache_, ledger_, measured_);
}

void station::start_warm() {
  before_counts_ = cache_.stats();
  before_ = usage_now();
  start();
}

void station::stop() {
  if (after_) return;
  if (readers_) readers_->stop();
  if (writer_) writer_->stop();
  after_ = usage_now();
  news_.reset();
  cache_.close();
  loader_.stop();
  timer_.stop();
}

station::usage station::usage_now() const {
  return {clock::now(), common::processor_time(), common::processor_time_of(driver_name)};
}

void station::news(const std::string& key) {
  if (key.empty()) {  // anything may have changed
    for (key_number each = 0; each < names_.size(); ++each) cache_.refresh(each);
    return;
  }
  if (numbers_.empty()) {
    for (key_number each = 0; each < names_.size(); ++each) numbers_.emplace(names_[each], each);
  }
  if (const auto found = numbers_.find(key); found != numbers_.end()) cache_.refresh(found->second);
}

snapshot station::look() const {
  const usage after = after_ ? *after_ : usage_now();
  snapshot now;
  now.origin = origin_.name();
  now.mode = name_of(options_.policy.mode);
  now.elapsed = after.at - before_.at;
  now.names = names_.size();
  now.keys = cache_.count();
  now.cache = since(cache_.stats(), before_counts_);
  const rondo::time_point moment = timer_.now();
  if (now.keys.failing != 0) now.error = latest_error(cache_, moment);
  if (now.cache.failed_in_a_row != 0) now.failing_for = moment - now.cache.failing_since;
  if (now.keys.served_until) now.served_for = *now.keys.served_until - moment;
  now.reads = of(measured_.reads);
  now.ages = of(measured_.ages);
  now.loads = of(measured_.loads);
  now.behind = of(measured_.behind);
  now.waited = measured_.waited;
  now.stale = measured_.stale;
  now.unserved = measured_.unserved;
  now.current = measured_.current;
  now.edits = measured_.edits;
  now.failed_edits = measured_.failed_edits;
  now.timer = timer_.stats();
  now.processor = after.processor - before_.processor;
  now.driver = after.driver - before_.driver;
  return now;
}

wheel_picture station::wheel() const {
  const rondo::options wheel = timer_options();
  const auto tick_of = [&](rondo::time_point at) { return (at - first_tick_) / wheel.tick; };
  const auto bucket_of = [&](rondo::time_point at) {
    return static_cast<std::size_t>(std::max<std::int64_t>(tick_of(at), 0)) % wheel.buckets;
  };
  wheel_picture picture;
  picture.tick = wheel.tick;
  const rondo::time_point now = timer_.now();
  picture.now = tick_of(now);
  picture.this_turn.resize(wheel.buckets);
  picture.later.resize(wheel.buckets);
  std::vector<std::pair<rondo::time_point, key_number>> all;
  cache_.for_each([&](key_number key, const key_state& state) {
    if (state.timer_due) all.emplace_back(*state.timer_due, key);
  });
  for (const auto& [due, key] : all) {
    const bool soon = due - now < wheel.tick * static_cast<std::int64_t>(wheel.buckets);
    ++(soon ? picture.this_turn : picture.later)[bucket_of(due)];
  }
  const auto earliest = all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(all.size(), 10));
  std::partial_sort(all.begin(), earliest, all.end());
  for (auto each = all.begin(); each != earliest; ++each)
    picture.next.push_back({names_[each->second], each->first - now});
  // The landings since the page last asked, with some overlap.
  for (const landings::landing& each : landings_.latest(now - std::chrono::seconds(1), 200)) {
    picture.landings.push_back(
        {each.number, names_[each.key], bucket_of(each.began), each.succeeded, each.ended - each.began});
  }
  return picture;
}

std::vector<late_reason> station::late_reasons() const {
  if (trace_ == nullptr) return {};
  std::vector<late_reason> found{{"the timer ran other tasks", 0, {}},
                                 {"the system woke the timer late", 0, {}},
                                 {"the timer's ticks and its own work", 0, {}}};
  const rondo::time_point a_minute_ago = timer_.now() - std::chrono::minutes(1);
  for (const rondo::trace::late_run& run : trace_->late(2 * timer_options().tick)) {
    if (run.due < a_minute_ago) continue;
    const std::array parts{run.behind_tasks, run.woken_late, run.in_executor + run.in_pass};
    const auto most = std::max_element(parts.begin(), parts.end());
    late_reason& reason = found[static_cast<std::size_t>(most - parts.begin())];
    ++reason.runs;
    reason.longest = std::max(reason.longest, run.lateness);
  }
  std::erase_if(found, [](const late_reason& reason) { return reason.runs == 0; });
  std::sort(found.begin(), found.end(),
            [](const late_reason& a, const late_reason& b) { return a.runs > b.runs; });
  return found;
}

void station::write_trace(std::ostream& out) const {
  if (trace_ != nullptr) trace_->write(out);
}

failing_keys station::failing(const std::string& find) const {
  return find_failing(cache_, names_, find, timer_.now());
}

agreement station::compare(const std::function<bool()>& enough) const {
  agreement all;
  const std::unique_ptr<origin_connection> truth = origin_.connect();
  const clock::time_point end = clock::now() + std::chrono::seconds(2);
  key_number key = 0;
  try {
    for (; key < names_.size() && clock::now() < end && !enough(); ++key) {
      const auto held = cache_.held(key);
      const answer got = truth->load(names_[key], nullptr, options_.policy.load_deadline);
      if (!held) {
        ++all.empty;
      } else if (got.changed->value == held->value) {
        ++all.equal;
      } else {
        // Without validators, only the texts can be compared.
        ++(got.changed->validator != held->validator || held->validator.empty() ? all.older : all.wrong);
      }
    }
  } catch (const origin_error&) {
    // The origin does not answer, so the rest cannot be compared.
  }
  all.unread = names_.size() - key;
  return all;
}

}  // namespace cache_refresh
