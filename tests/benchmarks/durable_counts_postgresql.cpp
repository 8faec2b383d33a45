#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "durable_counts.hpp"

namespace durable_workloads {
namespace {

/// The number of statements that the server has logged.
std::uint64_t logged(const place& at) {
  const std::string url = at.url();
  const std::size_t host = url.find("host=") + 5;
  std::ifstream log(std::filesystem::path(url.substr(host, url.find('&', host) - host)) / "server.log");
  std::uint64_t count = 0;
  for (std::string line; std::getline(log, line);)
    count +=
        line.find("LOG:  execute ") != line.npos || line.find("LOG:  statement: ") != line.npos ? 1u : 0u;
  return count;
}

std::uint64_t changed(place& at) {
  at.ask("SELECT pg_stat_clear_snapshot()");
  return std::stoull(at.ask(
      "SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE relname = 'rondo_task'"));
}

/// The row changes of sessions, which reach the statistics a moment after the sessions end: waits until the number
/// stops changing. Throws std::runtime_error if it still changes after a minute, as then something else changes rows.
std::uint64_t settled(place& at) {
  const auto end = std::chrono::steady_clock::now() + 1min;
  std::uint64_t last = changed(at);
  for (int same = 0; same != 5;) {
    if (std::chrono::steady_clock::now() >= end)
      throw std::runtime_error("the statistics of PostgreSQL still change after a minute");
    std::this_thread::sleep_for(100ms);
    const std::uint64_t now = changed(at);
    same = now == last ? same + 1 : 0;
    last = now;
  }
  return last;
}

}  // namespace

counts count_postgresql(place& at, const timetable& t) {
  at.ask("ALTER ROLE CURRENT_USER SET log_statement = 'all'");  // affects sessions that begin from now on
  const std::uint64_t statements = logged(at), rows = settled(at);
  const std::uint64_t turns = run_counted(at, t);
  at.ask("ALTER ROLE CURRENT_USER RESET log_statement");
  const auto each = [n = t.n](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(n);
  };
  // n of the row changes came from filling the table.
  const counts result{each(logged(at) - statements), each(settled(at) - rows - t.n), each(turns)};
  at.clear();
  return result;
}

}  // namespace durable_workloads
