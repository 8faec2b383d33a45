#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats.hpp"

namespace cache_refresh {
namespace {

using nlohmann::json;

double seconds(rondo::duration d) { return std::chrono::duration<double>(d).count(); }

json seconds(const std::optional<rondo::duration>& d) { return d ? json(seconds(*d)) : json(); }

// A key may contain any bytes.
std::string text_of(const json& all) { return all.dump(-1, ' ', false, json::error_handler_t::replace); }

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
          {"waiting", cache.waiting},
          {"failed_in_a_row", cache.failed_in_a_row}};
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

json of(const std::optional<current_error>& error) {
  if (!error) return {};
  return {{"text", error->text}, {"lasts", seconds(error->lasts)}};
}

const char* name_of(grade now) {
  return now == grade::good ? "good" : now == grade::part ? "part" : "outage";
}

// Keeps two hours of history small.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

health judge(const key_counts& keys, double stale_limit) {
  const double share = stale_share(keys);
  if (share <= stale_limit) return {true, "ok"};
  return {false,
          fmt::format("{} of {} keys are stale or empty: {:.1f} %, more than {:g} %", keys.stale + keys.empty,
                      keys.fresh + keys.stale + keys.empty, 100 * share, 100 * stale_limit)};
}

grade grade_of(const snapshot& now, double stale_limit) {
  const key_counts& keys = now.keys;
  if (now.cache.failed_in_a_row >= 10 && now.failing_for >= std::chrono::seconds(5)) return grade::outage;
  const double limit = stale_limit * static_cast<double>(keys.fresh + keys.stale + keys.empty);
  const bool part = stale_share(keys) > stale_limit || static_cast<double>(keys.failing) > limit;
  return part ? grade::part : grade::good;
}

std::string state_json(const snapshot& now, const wheel_picture& wheel, double stale_limit) {
  const json all = {{"origin", now.origin},
                    {"mode", now.mode},
                    {"elapsed", seconds(now.elapsed)},
                    {"grade", name_of(grade_of(now, stale_limit))},
                    {"stale_limit", stale_limit},
                    {"keys", of(now.keys)},
                    {"served_for", seconds(now.served_for)},
                    {"cache", of(now.cache)},
                    {"failing_for", seconds(now.failing_for)},
                    {"error", of(now.error)},
                    {"reads", of(now.reads)},
                    {"ages", of(now.ages)},
                    {"loads", of(now.loads)},
                    {"unserved", now.unserved},
                    {"edits", now.edits},
                    {"timer", of(now.timer)},
                    {"wheel", of(wheel)}};
  return text_of(all);
}

std::string failing_json(const failing_keys& all) {
  json first = json::array();
  for (const auto& each : all.first) {
    first.push_back({{"key", each.key},
                     {"error", each.error},
                     {"since", seconds(each.since)},
                     {"next_load", seconds(each.next_load)},
                     {"served_for", seconds(each.served_for)}});
  }
  return text_of({{"all", all.all}, {"matching", all.matching}, {"first", std::move(first)}});
}

std::string late_json(const std::vector<late_reason>& all) {
  json reasons = json::array();
  for (const late_reason& each : all)
    reasons.push_back({{"reason", each.reason}, {"runs", each.runs}, {"longest", seconds(each.longest)}});
  return text_of(reasons);
}

std::string history_json(const std::vector<history::sample>& all) {
  json at = json::array(), loads = json::array(), failed = json::array(), stale = json::array();
  for (const history::sample& each : all) {
    at.push_back(rounded(seconds(each.at)));
    loads.push_back(rounded(each.loads));
    failed.push_back(rounded(each.failed));
    stale.push_back(rounded(each.stale));
  }
  return text_of({{"at", std::move(at)},
                  {"loads", std::move(loads)},
                  {"failed", std::move(failed)},
                  {"stale", std::move(stale)}});
}

}  // namespace cache_refresh
