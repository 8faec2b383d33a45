#include "regular_clients.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace http_timeouts {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;

// What a typical small client sends.
constexpr auto request =
    "GET /status HTTP/1.1\r\n"
    "Host: localhost\r\n"
    "User-Agent: http_timeouts\r\n"
    "Accept: text/plain, */*;q=0.5\r\n"
    "Accept-Encoding: identity\r\n"
    "\r\n"sv;

// How many clients may connect at a time: fewer than fit into the system's queue. Further connects would be dropped,
// and retried after a second or more.
constexpr std::size_t opened_at_once = 256;

// The length of an answer that begins with this text; 0 if its header is not complete.
std::size_t answer_length(std::string_view text) {
  const auto header = text.find("\r\n\r\n"sv);
  if (header == std::string_view::npos) return 0;
  constexpr auto field = "Content-Length: "sv;
  const auto at = text.substr(0, header).find(field);
  std::size_t body = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + field.size(), text.data() + header, body);
  return header + 4 + body;
}

}  // namespace

regular_clients::regular_clients(poller& p, std::uint16_t port, const options& chosen)
    : poller_(p), port_(port), chosen_(chosen), clients_(chosen.connections), next_request_(clock::now()) {
  for (std::size_t i = 0; i < clients_.size(); ++i) unopened_.push_back(i);
}

void regular_clients::advance(clock::time_point now) {
  if (silent_) return;
  while (opening_ < opened_at_once && !unopened_.empty()) {
    open(unopened_.front());
    unopened_.pop_front();
  }
  if (measuring_ && chosen_.rate == 0)
    send_all();
  else
    send_due(now);
}

// Sends for the clients that were answered before measuring began and have waited since.
void regular_clients::send_all() {
  for (; !next_.empty(); next_.pop_front())
    if (clients_[next_.front()].now == state::answered) send_request(next_.front());
}

void regular_clients::send_due(clock::time_point now) {
  // "As fast as possible" applies only later. At first the rate is just high enough that no client is idle for too
  // long.
  const double rate = chosen_.rate > 0
                          ? chosen_.rate
                          : 2.0 * static_cast<double>(clients_.size()) /
                                std::chrono::duration<double>(chosen_.limit(phase::idle)).count();
  const auto gap = std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(1 / rate));
  // A generator that got no processor makes up for at most a second of requests.
  next_request_ = std::max(next_request_, now - 1s);
  for (; next_request_ <= now && !next_.empty(); next_request_ += gap) {
    const std::size_t number = next_.front();
    next_.pop_front();
    if (clients_[number].now == state::answered) send_request(number);
  }
}

void regular_clients::open(std::size_t number) {
  client& c = clients_[number];
  c.sent = c.heard_of = clock::now();
  c.socket = begin_to_connect(port_, number);
  c.now = state::connecting;
  c.opening = true;
  c.partial.clear();
  poller_.add(c.socket, number, true);
  ++opening_;
  ++open_;
}

void regular_clients::send_request(std::size_t number) {
  client& c = clients_[number];
  c.now = state::waiting;
  c.sent = clock::now();
  send_to(c.socket, request);
}

void regular_clients::ready(std::uint64_t token) {
  client& c = clients_[token];
  if (c.now == state::closed) return;
  std::array<char, 4096> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  const auto bytes = receive_from(c.socket, buffer.data(), buffer.size());
  if (!bytes) return closed(token);
  if (c.now == state::connecting) {
    poller_.watch_reading(c.socket, token);
    send_request(token);
  } else if (!bytes->empty()) {
    receive(token, *bytes);
  }
}

void regular_clients::receive(std::size_t number, std::string_view bytes) {
  client& c = clients_[number];
  if (!c.partial.empty()) bytes = c.partial.append(bytes);
  const std::size_t length = answer_length(bytes);
  if (length == 0 || bytes.size() < length) {
    if (c.partial.empty()) c.partial = bytes;
    return;
  }
  if (!bytes.starts_with("HTTP/1.1 200 "sv) || bytes.size() != length || c.now != state::waiting)
    ++results_.wrong;
  c.partial.clear();
  answered(number);
}

void regular_clients::answered(std::size_t number) {
  client& c = clients_[number];
  ++results_.answers;
  if (measuring_ && !silent_) results_.waits.record(clock::now() - c.sent);
  c.now = state::answered;
  c.heard_of = c.sent;
  if (c.opening) {
    c.opening = false;
    --opening_;
    if (!c.seen) ++connected_;
    c.seen = true;
  }
  if (silent_) return;
  if (measuring_ && chosen_.rate == 0)
    send_request(number);
  else
    next_.push_back(number);
}

void regular_clients::closed(std::size_t number) {
  client& c = clients_[number];
  if (clock::now() - c.heard_of < chosen_.limit(phase::idle)) ++results_.cut_early;
  if (!silent_) ++results_.cut_off;
  if (c.opening) --opening_;
  c.opening = false;
  c.now = state::closed;
  c.socket.close();
  --open_;
  if (!silent_) unopened_.push_back(number);
}

}  // namespace http_timeouts
