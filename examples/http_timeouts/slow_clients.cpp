#include "slow_clients.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace http_timeouts {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

constexpr auto beginning_of_a_header = "GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: "sv;
constexpr auto header_of_a_long_body =
    "POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n"sv;

// The number of single bytes sent within a limit. None of them may extend it.
constexpr int drips = 10;

// After this time a client counts as not cut off.
constexpr auto client_patience = 10s;

}  // namespace

slow_clients::slow_clients(poller& p, std::uint16_t port, std::uint64_t first_token, const options& chosen)
    : poller_(p), port_(port), first_token_(first_token), clients_(chosen.slow) {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    client& c = clients_[i];
    c.slow_in = static_cast<phase>(i % phases);
    c.limit = chosen.limit(c.slow_in);
    // While a header arrives, the request's timeout is set too.
    if (c.slow_in == phase::header) c.limit = std::min(c.limit, chosen.limit(phase::request));
  }
}

void slow_clients::open() {
  for (std::size_t i = 0; i < clients_.size(); ++i) open(i);
}

void slow_clients::open(std::size_t number) {
  client& c = clients_[number];
  c.connected = false;
  c.begun = clock::now();
  c.next_byte = clock::time_point::max();
  c.socket = begin_to_connect(port_, number);
  poller_.add(c.socket, first_token_ + number, true);
  ++open_;
}

void slow_clients::begin(client& c) {
  c.connected = true;
  if (c.slow_in == phase::idle) return;
  c.begun = clock::now();
  c.next_byte = c.begun + c.limit / drips;
  send_to(c.socket, c.slow_in == phase::header ? beginning_of_a_header : header_of_a_long_body);
}

void slow_clients::advance(clock::time_point now) {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    client& c = clients_[i];
    if (!c.socket.is_open()) continue;
    if (now > c.begun + c.limit + client_patience) {
      ++results_.counted.not_cut;
      close(i);
    } else if (now >= c.next_byte) {
      send_to(c.socket, "x"sv);
      c.next_byte = now + c.limit / drips;
    }
  }
}

void slow_clients::ready(std::uint64_t token) {
  const std::size_t number = token - first_token_;
  client& c = clients_[number];
  if (!c.socket.is_open()) return;
  std::array<char, 4096> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): nobody reads what arrives
  const bool cut = !receive_from(c.socket, buffer.data(), buffer.size());
  if (cut) {
    const auto after = clock::now() - c.begun;
    if (after < c.limit)
      ++results_.counted.early;
    else
      results_.seen_after.record(after - c.limit);
    ++results_.counted.cut_off[index_of(c.slow_in)];
    close(number);
  } else if (!c.connected) {
    poller_.watch_reading(c.socket, token);
    begin(c);
  }
}

void slow_clients::close(std::size_t number) {
  clients_[number].socket.close();
  --open_;
  if (!silent_) open(number);
}

}  // namespace http_timeouts
