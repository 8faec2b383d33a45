#include "summary.hpp"

#include <fmt/core.h>

#include <functional>
#include <string>

#include "common/text.hpp"

namespace http_timeouts {
namespace {

using common::percent;
using common::readable;

const char* name_of(timers with) { return with == timers::rondo ? "rondo" : "asio"; }

std::string text_of(const quantiles& q) {
  return fmt::format("{}, {}, {}", readable(q.p50), readable(q.p99), readable(q.max));
}

std::string per_second(std::uint64_t n, std::chrono::nanoseconds time) {
  return fmt::format("{:.0f}", static_cast<double>(n) / std::chrono::duration<double>(time).count());
}

std::chrono::nanoseconds each(std::chrono::nanoseconds all, std::uint64_t n) {
  return n == 0 ? all : all / static_cast<std::int64_t>(n);
}

std::string share(std::chrono::nanoseconds used, std::chrono::nanoseconds time) {
  return fmt::format("{:.0f} %",
                     100.0 * static_cast<double>(used.count()) / static_cast<double>(time.count()));
}

std::string memory(const server_report& s) {
  const auto bytes = [](std::uint64_t n) { return static_cast<double>(n); };
  return fmt::format("{:.1f} MiB, {:.2f} KiB", bytes(s.memory) / (1 << 20),
                     (bytes(s.memory) - bytes(s.memory_before)) / 1024 / bytes(s.open == 0 ? 1 : s.open));
}

class table {
 public:
  explicit table(const std::vector<outcome>& all) : all_(all) {}

  void row(const char* title, const std::function<std::string(const outcome&)>& figure) const {
    fmt::print("  {:<40}", title);
    for (const outcome& one : all_) fmt::print(" {:<26}", figure(one));
    fmt::print("\n");
  }

 private:
  const std::vector<outcome>& all_;
};

void print_load(const table& t) {
  t.row("answers per second", [](const outcome& o) { return per_second(o.answers, o.measured); });
  t.row("server: processor time per request",
        [](const outcome& o) { return readable(each(o.server.processor, o.server.requests)); });
  t.row("server: share of one processor",
        [](const outcome& o) { return share(o.server.processor, o.measured); });
  t.row("clients: share of one processor",
        [](const outcome& o) { return share(o.clients_processor, o.measured); });
  t.row("server: memory, and per connection", [](const outcome& o) { return memory(o.server); });
  t.row("timeouts set per second",
        [](const outcome& o) { return per_second(o.server.timeouts_set, o.measured); });
  t.row("wait for an answer: p50, p99, max", [](const outcome& o) { return text_of(o.waits); });
}

void print_cut_offs(const table& t) {
  t.row("cut off idle, in header, in request", [](const outcome& o) {
    const auto& cut = o.server.cut_off;
    return fmt::format("{}, {}, {}", cut[0], cut[1], cut[2]);
  });
  t.row("closed after deadline: p50, p99, max", [](const outcome& o) {
    return text_of({o.server.lateness_p50, o.server.lateness_p99, o.server.lateness_max});
  });
  t.row("fired too early", [](const outcome& o) { return fmt::format("{}", o.server.early); });
  t.row(fmt::format("fired more than {} ms late", late_after.count()).c_str(),
        [](const outcome& o) { return fmt::format("{}", o.server.late); });
  t.row("fired although cleared or closed",
        [](const outcome& o) { return fmt::format("{}", o.server.for_gone); });
  t.row("slow clients: cut off, early, never", [](const outcome& o) {
    const auto& cut = o.slow.cut_off;
    return fmt::format("{}, {}, {}", cut[0] + cut[1] + cut[2], o.slow.early, o.slow.not_cut);
  });
  t.row("slow clients saw it after: p50, p99, max", [](const outcome& o) { return text_of(o.slow_seen); });
  t.row("others: under load, early, never", [](const outcome& o) {
    return fmt::format("{}, {}, {}", o.cut_under_load, o.regular_cut_early, o.regular_not_cut);
  });
}

}  // namespace

void print_plan(const options& chosen) {
  fmt::print(
      "{} connections and {} slow clients, {}, for {} s; timeouts: idle {} ms, header {} ms, request {} ms\n",
      chosen.connections, chosen.slow,
      chosen.rate == 0 ? "requests as fast as possible" : fmt::format("{} requests per second", chosen.rate),
      chosen.seconds, chosen.limits[0].count(), chosen.limits[1].count(), chosen.limits[2].count());
}

void print_summary(const options& chosen, const std::vector<outcome>& all) {
  const table t(all);
  fmt::print("\nSummary of {} s\n", chosen.seconds);
  t.row("", [](const outcome& o) { return std::string(name_of(o.with)); });
  print_load(t);
  print_cut_offs(t);
  if (all.size() < 2) return;
  const auto of = [](const outcome& o) {
    return static_cast<double>(each(o.server.processor, o.server.requests).count());
  };
  fmt::print("\nProcessor time per request, asio / rondo: {:.2f}\n", of(all[1]) / of(all[0]));
}

}  // namespace http_timeouts
