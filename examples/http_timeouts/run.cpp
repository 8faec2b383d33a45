#include "run.hpp"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "loopback.hpp"
#include "common/usage.hpp"

namespace http_timeouts {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using clock = std::chrono::steady_clock;

// For connections other than the clients', and for the files that any program has open.
constexpr std::size_t other_descriptors = 64;

// The time allowed for connecting and, beyond the limits, for cutting off all clients at the end.
constexpr auto patience = 60s;

class server_process {
 public:
  explicit server_process(const options& chosen) {
    descriptor listening = listen_on_loopback();
    port_ = port_of(listening);
    int ends[2] = {};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) fail("socketpair");
    descriptor theirs(ends[0], "socketpair");
    orders_ = descriptor(ends[1], "socketpair");
    std::fflush(nullptr);  // otherwise both processes would write the buffered output
    process_ = ::fork();
    if (process_ < 0) fail("fork");
    if (process_ > 0) return;
    orders_.close();
    std::exit(be_server(chosen, std::move(listening), std::move(theirs)));
  }
  // A server ends when its stream of orders ends.
  ~server_process() {
    orders_.close();
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  void tell(char order) { send_to(orders_, {&order, 1}); }

  server_report end() {
    ::shutdown(orders_.number(), SHUT_WR);
    server_report report;
    const ssize_t n = ::recv(orders_.number(), &report, sizeof report, MSG_WAITALL);
    if (n != static_cast<ssize_t>(sizeof report)) throw std::runtime_error("the server has failed");
    return report;
  }

 private:
  static int be_server(const options& chosen, descriptor listening, descriptor orders) {
    try {
      serve(chosen, std::move(listening), std::move(orders));
      return 0;
    } catch (const std::exception& bad) {
      fmt::print(stderr, "http_timeouts: server: {}\n", bad.what());
      return 1;
    }
  }

  descriptor orders_;
  std::uint16_t port_ = 0;
  pid_t process_ = -1;
};

class clients {
 public:
  clients(const options& chosen, std::uint16_t port)
      : chosen_(chosen), regular_(poller_, port, chosen), slow_(poller_, port, chosen.connections, chosen) {}

  void connect() {
    const clock::time_point limit = clock::now() + patience;
    while (!regular_.all_connected()) {
      if (clock::now() > limit)
        throw std::runtime_error(fmt::format("after {} s only {} of {} connections had been answered",
                                             patience.count(), regular_.connected(), chosen_.connections));
      turn();
    }
  }

  void load_until(clock::time_point end) {
    while (clock::now() < end) turn();
  }

  // Falls silent, and waits until all clients have been cut off.
  void wait_for_the_end() {
    regular_.fall_silent();
    slow_.fall_silent();
    const auto limit =
        clock::now() + *std::max_element(chosen_.limits.begin(), chosen_.limits.end()) + patience;
    while (!(regular_.all_cut_off() && slow_.all_cut_off()) && clock::now() < limit) turn();
    regular_.give_up();
  }

  regular_clients& regular() { return regular_; }
  slow_clients& slow() { return slow_; }

 private:
  void turn() {
    regular_.advance(clock::now());
    slow_.advance(clock::now());
    poller_.wait(1, [this](std::uint64_t token) {
      if (token < chosen_.connections)
        regular_.ready(token);
      else
        slow_.ready(token);
    });
  }

  const options& chosen_;
  poller poller_;
  regular_clients regular_;
  slow_clients slow_;
};

// A request that can never be complete: the parser would have to buffer the whole line before the first chunk.
std::string endless_chunk_header() {
  return "POST /status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;" +
         std::string(100'000, 'x');
}

constexpr auto head = "HEAD /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"sv;

// Sends all of it, then returns everything that arrives until the server ends the connection.
std::string answer_to(std::string_view request, std::uint16_t port) {
  poller ready;
  const descriptor socket = begin_to_connect(port, 0);
  ready.add(socket, 0, true);
  std::string answer;
  for (const auto limit = clock::now() + patience; clock::now() < limit;) {
    ready.wait(100, [](std::uint64_t) {});
    std::array<char, 1024> buffer{};
    const auto bytes = receive_from(socket, buffer.data(), buffer.size());
    if (!bytes) break;
    answer += *bytes;
    request.remove_prefix(send_to(socket, request));
    if (request.empty()) ready.watch_reading(socket, 0);
  }
  return answer;
}

quantiles of(const common::histogram& all) { return {all.quantile(0.50), all.quantile(0.99), all.max()}; }

}  // namespace

std::optional<std::string> lack_for(const options& chosen) {
  const std::size_t connections = chosen.connections + chosen.slow;
  const std::size_t wanted = connections + other_descriptors;
  const std::size_t allowed = allow_descriptors(wanted);
  if (allowed >= wanted) return std::nullopt;
  return fmt::format(
      "{} connections take {} file descriptors in each process, but the system allows {} (ulimit -Hn)",
      connections, wanted, allowed);
}

outcome run(const options& chosen) {
  server_process server(chosen);
  const auto all = std::make_unique<clients>(chosen, server.port());
  outcome result;
  result.with = chosen.with;

  result.answer_to_endless = answer_to(endless_chunk_header(), server.port());
  result.answer_to_head = answer_to(head, server.port());
  all->connect();
  all->slow().open();
  const clock::time_point begin = clock::now();
  const auto processor_before = common::processor_time();
  const std::uint64_t answers_before = all->regular().get().answers;
  all->regular().begin_measuring();
  server.tell(measure_begin);
  all->load_until(begin + std::chrono::seconds(chosen.seconds));
  server.tell(measure_end);
  result.measured = clock::now() - begin;
  result.clients_processor = common::processor_time() - processor_before;
  result.answers = all->regular().get().answers - answers_before;
  all->wait_for_the_end();

  result.server = server.end();
  const regular_clients::results& regular = all->regular().get();
  result.wrong_answers = regular.wrong;
  result.waits = of(regular.waits);
  result.cut_under_load = regular.cut_off;
  result.regular_cut_early = regular.cut_early;
  result.regular_not_cut = regular.not_cut;
  result.slow = all->slow().get().counted;
  result.slow_seen = of(all->slow().get().seen_after);
  return result;
}

std::vector<std::string> faults_of(const options& chosen, const outcome& o) {
  std::vector<std::string> faults;
  const auto require_none = [&](std::uint64_t n, const char* what) {
    if (n > 0) faults.push_back(fmt::format("{} {}", n, what));
  };
  require_none(o.slow.early, "slow clients were cut off too early");
  require_none(o.slow.not_cut, "slow clients were not cut off");
  require_none(o.regular_cut_early, "connections were cut off although the server had just heard from them");
  require_none(o.regular_not_cut, "silent connections were not cut off");
  require_none(o.wrong_answers, "answers were wrong");
  if (!o.answer_to_endless.starts_with("HTTP/1.1 400 "))
    faults.push_back(fmt::format("an endless chunk header was answered with '{}'", o.answer_to_endless));
  if (!o.answer_to_head.starts_with("HTTP/1.1 200 ") || !o.answer_to_head.ends_with("\r\n\r\n"))
    faults.push_back(fmt::format("HEAD was answered with '{}'", o.answer_to_head));
  if (o.server.bad_requests != 1)
    faults.push_back(fmt::format("{} requests were refused as malformed, not 1", o.server.bad_requests));
  require_none(o.server.early, "timeouts fired too early");
  require_none(o.server.left_open, "connections were left open");
  // Asio calls handlers even for connections that have gone. Those handlers must notice that themselves.
  if (o.with == timers::rondo) require_none(o.server.for_gone, "timeouts fired that had been cleared");
  for (std::size_t i = 0; i < phases && i < chosen.slow; ++i)
    if (o.slow.cut_off[i] == 0) faults.push_back(fmt::format("no slow client of kind {} was cut off", i + 1));
  std::uint64_t ended = o.server.closed_by_peer + o.server.left_open;
  for (const std::uint64_t each : o.server.cut_off) ended += each;
  if (ended != o.server.accepted)
    faults.push_back(fmt::format("of {} connections, {} have ended", o.server.accepted, ended));
  return faults;
}

}  // namespace http_timeouts
