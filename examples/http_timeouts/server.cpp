#include "server.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <fstream>
#include <memory>
#include <rondo/trace.hpp>
#include <unordered_map>

#include "connection.hpp"
#include "common/usage.hpp"

namespace http_timeouts {
namespace {

template <class Timeouts>
class server {
 public:
  template <class... ForTimeouts>
  server(const options& chosen, descriptor listening, descriptor orders, const ForTimeouts&... more)
      : chosen_(chosen), timeouts_(more...), acceptor_(io_), orders_(io_, orders.release()) {
    acceptor_.assign(tcp::v4(), listening.release());
    acceptor_.non_blocking(true);
    timeouts_.drive(io_);
  }

  void run() {
    report_.memory_before = common::resident_memory();
    accept();
    listen_to_orders();
    io_.run();
    finish_report();
    const char* bytes = reinterpret_cast<const char*>(&report_);
    boost::asio::write(orders_, boost::asio::buffer(bytes, sizeof report_));
  }

 private:
  using acceptor = boost::asio::basic_socket_acceptor<tcp, boost::asio::io_context::executor_type>;

  // The most in one turn. With one, each new connection would wait until all readable connections have been served.
  static constexpr int accepted_at_once = 256;

  void accept() {
    acceptor_.async_wait(acceptor::wait_read, [this](boost::system::error_code stopped) {
      if (stopped) return;
      for (int i = 0; i < accepted_at_once; ++i)
        if (!accept_one()) break;
      accept();
    });
  }

  bool accept_one() {
    boost::system::error_code failed;
    tcp_socket socket(io_);
    acceptor_.accept(socket, failed);
    if (failed == boost::asio::error::connection_aborted) return true;
    if (failed == boost::asio::error::would_block) return false;
    if (failed) throw boost::system::system_error(failed, "accept");
    socket.non_blocking(true);
    socket.set_option(tcp::no_delay(true));
    const std::uint64_t number = report_.accepted++;
    const auto made = std::make_shared<connection<Timeouts>>(std::move(socket), around_, number);
    open_.emplace(number, made);
    made->start();
    return true;
  }

  void listen_to_orders() {
    orders_.async_read_some(boost::asio::buffer(&order_, 1),
                            [this](boost::system::error_code ended, std::size_t) {
                              if (ended) return end();
                              if (order_ == measure_begin) begin_measuring();
                              if (order_ == measure_end) end_measuring();
                              listen_to_orders();
                            });
  }

  void begin_measuring() {
    report_.requests = counted_.requests;
    report_.timeouts_set = counted_.timeouts_set;
    report_.processor = common::processor_time();
  }

  void end_measuring() {
    report_.requests = counted_.requests - report_.requests;
    report_.timeouts_set = counted_.timeouts_set - report_.timeouts_set;
    report_.processor = common::processor_time() - report_.processor;
    report_.memory = common::resident_memory();
    report_.open = open_.size();
  }

  // Makes run() return.
  void end() {
    report_.left_open = open_.size();
    acceptor_.close();
    while (!open_.empty()) {
      const auto last = open_.begin()->second;  // close() removes it from the table
      last->close();
    }
    timeouts_.stop();
  }

  void finish_report() {
    report_.closed_by_peer = counted_.closed_by_peer;
    report_.bad_requests = counted_.bad_requests;
    report_.cut_off = counted_.cut_off;
    report_.early = counted_.early;
    report_.late = counted_.late;
    report_.for_gone = counted_.for_gone;
    report_.lateness_p50 = counted_.lateness.quantile(0.50);
    report_.lateness_p99 = counted_.lateness.quantile(0.99);
    report_.lateness_max = counted_.lateness.max();
  }

  const options& chosen_;
  counts counted_;
  Timeouts timeouts_;
  surroundings<Timeouts> around_{timeouts_, chosen_, counted_,
                                 [this](std::uint64_t number) { open_.erase(number); }};
  server_report report_;
  char order_ = 0;
  boost::asio::io_context io_{1};  // after what handlers use, before what uses it
  std::unordered_map<std::uint64_t, std::shared_ptr<connection<Timeouts>>> open_;
  acceptor acceptor_;
  boost::asio::posix::stream_descriptor orders_;
};

}  // namespace

void serve(const options& chosen, descriptor listening, descriptor orders) {
  if (chosen.with == timers::asio)
    return server<asio_timeouts>(chosen, std::move(listening), std::move(orders)).run();
  std::shared_ptr<rondo::trace> trace;
  std::ofstream file;
  if (!chosen.trace.empty()) {
    trace = std::make_shared<rondo::trace>();
    file.exceptions(std::ios::failbit | std::ios::badbit);
    file.open(chosen.trace);
  }
  server<rondo_timeouts>(chosen, std::move(listening), std::move(orders), trace).run();
  if (trace != nullptr) trace->write(file);
}

}  // namespace http_timeouts
