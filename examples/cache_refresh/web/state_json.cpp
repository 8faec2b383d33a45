#include "state_json.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace cache_refresh {
namespace {

using nlohmann::json;

double seconds(rondo::duration d) { return std::chrono::duration<double>(d).count(); }

json of(const distribution& all) {
  return {
      {"count", all.count}, {"p50", seconds(all.p50)}, {"p99", seconds(all.p99)}, {"max", seconds(all.max)}};
}

json of(const rondo::histogram& all) {
  return {{"count", all.count()},
          {"p50", seconds(all.quantile(0.5))},
          {"p99", seconds(all.quantile(0.99))},
          {"max", seconds(all.max())}};
}

json of(const key_counts& keys) {
  return {{"all", keys.fresh + keys.stale + keys.empty},
          {"fresh", keys.fresh},
          {"stale", keys.stale},
          {"empty", keys.empty},
          {"failing", keys.failing}};
}

json of(const cache_statistics& cache) {
  return {{"hits", cache.hits},
          {"stale_hits", cache.stale_hits},
          {"misses", cache.misses},
          {"loads", cache.loads},
          {"loaded", cache.loaded},
          {"confirmed", cache.confirmed},
          {"failed", cache.failed},
          {"unread_loads", cache.unread_loads},
          {"late_answers", cache.late_answers},
          {"forgotten", cache.forgotten},
          {"in_progress", cache.in_progress},
          {"waiting", cache.waiting}};
}

json of(const rondo::statistics& timer) {
  return {{"pending", timer.pending},      {"scheduled", timer.scheduled}, {"fired", timer.fired},
          {"cancelled", timer.cancelled},  {"wakeups", timer.wakeups},     {"lateness", of(timer.lateness)},
          {"run_time", of(timer.run_time)}};
}

json of(const wheel_picture& wheel) {
  json next = json::array();
  for (const auto& each : wheel.next) next.push_back({{"key", each.key}, {"in", seconds(each.in)}});
  json landings = json::array();
  for (const auto& each : wheel.landings) {
    landings.push_back({{"number", each.number},
                        {"key", each.key},
                        {"bucket", each.bucket},
                        {"succeeded", each.succeeded},
                        {"took", seconds(each.took)}});
  }
  return {{"tick", seconds(wheel.tick)}, {"now", wheel.now},        {"this_turn", wheel.this_turn},
          {"later", wheel.later},        {"next", std::move(next)}, {"landings", std::move(landings)}};
}

}  // namespace

health judge(const key_counts& keys, double stale_limit) {
  const std::size_t all = keys.fresh + keys.stale + keys.empty;
  const double share = all == 0 ? 0 : static_cast<double>(keys.stale + keys.empty) / static_cast<double>(all);
  if (share <= stale_limit) return {true, "ok"};
  return {false, fmt::format("{} of {} keys are stale or empty: {:.1f} %, more than {:g} %",
                             keys.stale + keys.empty, all, 100 * share, 100 * stale_limit)};
}

std::string state_json(const snapshot& now, const wheel_picture& wheel, double stale_limit) {
  const health state = judge(now.keys, stale_limit);
  const json all = {{"origin", now.origin},  {"mode", now.mode},       {"elapsed", seconds(now.elapsed)},
                    {"healthy", state.good}, {"health", state.line},   {"stale_limit", stale_limit},
                    {"keys", of(now.keys)},  {"cache", of(now.cache)}, {"reads", of(now.reads)},
                    {"ages", of(now.ages)},  {"loads", of(now.loads)}, {"unserved", now.unserved},
                    {"edits", now.edits},    {"timer", of(now.timer)}, {"wheel", of(wheel)}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);  // a key may contain any bytes
}

}  // namespace cache_refresh
