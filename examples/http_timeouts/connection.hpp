// One connection of the server: reads requests, answers them one after another, and is closed when a timeout fires.
#pragma once

#include <utility>  // before Asio, because Boost 1.74 does not include it

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/histogram.hpp"
#include "options.hpp"
#include "timeouts.hpp"

namespace http_timeouts {

namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;
// The executor's type is known, so calling it needs no type erasure.
using tcp_socket = boost::asio::basic_stream_socket<tcp, boost::asio::io_context::executor_type>;

// The counters of all connections of a server.
struct counts {
  std::uint64_t requests = 0;
  std::uint64_t timeouts_set = 0;
  std::uint64_t closed_by_peer = 0;
  std::uint64_t bad_requests = 0;
  std::array<std::uint64_t, phases> cut_off{};
  std::uint64_t early = 0;
  std::uint64_t late = 0;
  std::uint64_t for_gone = 0;
  common::histogram lateness;
};

// What a connection uses of its server. Outlives the connection.
template <class Timeouts>
struct surroundings {
  Timeouts& timeouts;
  const options& chosen;
  counts& counted;
  std::function<void(std::uint64_t)> forget;  // forgets a connection, by its number
};

template <class Timeouts>
class connection : public std::enable_shared_from_this<connection<Timeouts>> {
 public:
  connection(tcp_socket socket, surroundings<Timeouts>& around, std::uint64_t number)
      : socket_(std::move(socket)),
        around_(around),
        number_(number),
        timeouts_{timeout(around.timeouts), timeout(around.timeouts), timeout(around.timeouts)} {
    due_.fill(not_set);
  }

  void start() {
    parser_.emplace();
    set(phase::idle, clock::now());
    read();
  }

  // Ends everything. Handlers that are already queued keep the object alive, and do nothing.
  void close() {
    if (!socket_.is_open()) return;
    for (const phase each : {phase::idle, phase::header, phase::request}) clear(each);
    boost::system::error_code ignored;
    socket_.close(ignored);
    around_.forget(number_);
  }

  // Called by the timeout `which`, which was set to `due`.
  void expired(phase which, clock::time_point due) {
    counts& counted = around_.counted;
    if (due_[index_of(which)] != due) {
      ++counted.for_gone;
      return;
    }
    const auto late = clock::now() - due;
    if (late < clock::duration::zero()) ++counted.early;
    if (late > late_after) ++counted.late;
    ++counted.cut_off[index_of(which)];
    close();
    counted.lateness.record(clock::now() - due);
  }

 private:
  using timeout = typename Timeouts::timeout;
  static constexpr clock::time_point not_set = clock::time_point::max();
  static constexpr std::size_t read_at_once = 1024;
  static constexpr std::size_t longest_body = 64 * 1024;

  void set(phase p, clock::time_point now) {
    due_[index_of(p)] = now + around_.chosen.limit(p);
    timeouts_[index_of(p)].set(due_[index_of(p)], *this, p);
    ++around_.counted.timeouts_set;
  }

  void clear(phase p) {
    if (due_[index_of(p)] == not_set) return;
    due_[index_of(p)] = not_set;
    timeouts_[index_of(p)].clear();
  }

  // Waits until there is something to read. async_read_some() would try to read at once, so on a busy server connections
  // whose next request has already arrived would be served again and again before those that wait in epoll's queue.
  void read() {
    socket_.async_wait(tcp_socket::wait_read,
                       [this, kept = this->shared_from_this()](boost::system::error_code failed) {
                         if (failed) return gone(failed);
                         const std::size_t n = socket_.read_some(input_.prepare(read_at_once), failed);
                         if (failed == boost::asio::error::would_block) return read();
                         if (failed) return gone(failed);
                         input_.commit(n);
                         parse();
                       });
  }

  // The input is a part of a request, at least its first byte.
  void parse() {
    if (due_[index_of(phase::idle)] != not_set) {
      const clock::time_point now = clock::now();
      clear(phase::idle);
      set(phase::header, now);
      set(phase::request, now);
      parser_->eager(true);
      parser_->body_limit(longest_body);
    }
    boost::system::error_code result;
    while (input_.size() > 0 && !parser_->is_done()) {
      input_.consume(parser_->put(input_.data(), result));
      if (result) break;
    }
    if (parser_->is_header_done()) clear(phase::header);
    if (parser_->is_done()) return answer(http::status::ok);
    // What the parser leaves in the input is one incomplete line, for example a chunk header. If there is no room for
    // more of it, prepare() would throw.
    const bool has_room = input_.size() + read_at_once <= input_.max_size();
    if (has_room && (!result || result == http::error::need_more)) return read();
    ++around_.counted.bad_requests;
    answer(http::status::bad_request);
  }

  void answer(http::status status) {
    const auto& request = parser_->get();
    response_.emplace(status, 11);
    response_->keep_alive(status == http::status::ok && request.keep_alive());
    response_->set(http::field::server, "http_timeouts");
    response_->set(http::field::content_type, "text/plain");
    response_->body() = "It took " + std::to_string(request.body().size()) + " bytes to say so.\n";
    response_->prepare_payload();
    if (request.method() == http::verb::head) response_->body().clear();  // its length stays
    http::async_write(socket_, *response_,
                      [this, kept = this->shared_from_this()](boost::system::error_code failed, std::size_t) {
                        if (failed) return gone(failed);
                        answered();
                      });
  }

  void answered() {
    ++around_.counted.requests;
    clear(phase::header);
    if (!response_->keep_alive()) return end_stream();
    clear(phase::request);
    parser_.emplace();
    set(phase::idle, clock::now());
    if (input_.size() == 0) return read();
    parse();  // the beginning of the next request has arrived with this one
  }

  // Closing while the peer still sends would discard the answer. So the peer closes first, or the request's timeout ends
  // the connection.
  void end_stream() {
    boost::system::error_code ignored;
    socket_.shutdown(tcp_socket::shutdown_send, ignored);
    discard_input();
  }

  void discard_input() {
    input_.clear();
    socket_.async_read_some(input_.prepare(read_at_once), [this, kept = this->shared_from_this()](
                                                              boost::system::error_code failed, std::size_t) {
      if (failed) return gone(failed);
      discard_input();
    });
  }

  // A read or write has failed: the peer has gone, unless close() was called.
  void gone(boost::system::error_code) {
    if (!socket_.is_open()) return;
    ++around_.counted.closed_by_peer;
    close();
  }

  tcp_socket socket_;
  surroundings<Timeouts>& around_;
  const std::uint64_t number_;
  boost::beast::flat_buffer input_{longest_body};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::array<clock::time_point, phases> due_{};
  std::array<timeout, phases> timeouts_;  // last: cleared first
};

}  // namespace http_timeouts
