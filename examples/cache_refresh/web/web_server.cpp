#include "web_server.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "formats.hpp"
#include "page.hpp"

namespace cache_refresh {
namespace {

struct endpoint {
  std::string host;
  int port = 0;
};

bool is_numeric(const std::string& host, int family) {
  in6_addr ignored{};
  return inet_pton(family, host.c_str(), &ignored) == 1;
}

// Addresses must be numeric, so that no name has to be resolved.
endpoint parse(const std::string& address) {
  const auto fail = [&]() -> endpoint {
    throw std::runtime_error(fmt::format(
        "{} is not an address to listen on; use one such as 127.0.0.1:8080 or [::1]:8080", address));
  };
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return fail();
  endpoint result{address.substr(0, colon), 0};
  const bool bracketed = result.host.size() > 2 && result.host.front() == '[' && result.host.back() == ']';
  if (bracketed) result.host = result.host.substr(1, result.host.size() - 2);
  if (!bracketed && result.host == "localhost") result.host = "127.0.0.1";
  if (!is_numeric(result.host, bracketed ? AF_INET6 : AF_INET)) return fail();

  const std::string_view port = std::string_view(address).substr(colon + 1);
  const auto read = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (read.ec != std::errc() || read.ptr != port.data() + port.size()) return fail();
  if (result.port < 0 || result.port > 65535) return fail();
  return result;
}

std::string random_nonce() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// Sends the page with a fresh nonce, and a policy that lets the browser run only what has this nonce.
void send_page(httplib::Response& response) {
  constexpr std::string_view placeholder = "%NONCE%";
  const std::string nonce = random_nonce();
  std::string page = page_html;
  for (std::size_t at = page.find(placeholder); at != std::string::npos; at = page.find(placeholder, at))
    page.replace(at, placeholder.size(), nonce);
  response.set_header(
      "Content-Security-Policy",
      fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; "
                  "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                  nonce));
  response.set_content(page, "text/html; charset=utf-8");
}

void send_line(httplib::Response& response, int status, const std::string& line) {
  response.status = status;
  response.set_content(line + "\n", "text/plain; charset=utf-8");
}

std::string what(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown error";
  }
}

using clock = std::chrono::steady_clock;

// A connection with deadlines for the whole request and for the whole answer. The library only limits each read, so a
// client that sends a byte now and then could keep a thread for as long as it liked.
class limited_stream final : public httplib::Stream {
 public:
  static constexpr auto request_within = std::chrono::seconds(2);
  static constexpr auto answer_within = std::chrono::seconds(5);

  // `goes_on` is asked while a read waits.
  limited_stream(socket_t socket, std::function<bool()> goes_on)
      : socket_(socket), goes_on_(std::move(goes_on)) {}
  ~limited_stream() {
    ::shutdown(socket_, SHUT_RDWR);
    ::close(socket_);
  }
  limited_stream(const limited_stream&) = delete;
  limited_stream& operator=(const limited_stream&) = delete;

  bool is_readable() const { return wait_for(POLLIN, read_until_); }
  bool is_writable() const {
    if (!write_until_) write_until_ = clock::now() + answer_within;
    return wait_for(POLLOUT, *write_until_);
  }
  // Later versions of the library have these in place of is_writable(). So none says `override`; but as all are pure in
  // the base class, none can be forgotten.
  bool wait_readable() const { return is_readable(); }
  bool wait_writable() const { return is_writable(); }
  time_t duration() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begun_).count();
  }

  ssize_t read(char* to, std::size_t size) {
    if (used_ == filled_) {
      if (!is_readable()) return -1;
      const ssize_t n = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (n <= 0) return n;
      used_ = 0;
      filled_ = static_cast<std::size_t>(n);
    }
    const std::size_t n = std::min(size, filled_ - used_);
    std::copy_n(buffer_.data() + used_, n, to);
    used_ += n;
    return static_cast<ssize_t>(n);
  }

  ssize_t write(const char* from, std::size_t size) {
    if (!is_writable()) return -1;
    return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // No handler asks for these.
  void get_remote_ip_and_port(std::string& ip, int& port) const { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const { ip.clear(), port = 0; }
  socket_t socket() const { return socket_; }

 private:
  bool wait_for(short event, clock::time_point until) const {
    constexpr std::chrono::milliseconds step{100};
    while (event == POLLOUT || goes_on_()) {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
      if (rest.count() <= 0) return false;
      pollfd one{.fd = socket_, .events = event, .revents = 0};
      if (::poll(&one, 1, static_cast<int>(std::min(rest, step).count())) > 0) return true;
    }
    return false;
  }

  const socket_t socket_;
  const std::function<bool()> goes_on_;
  const clock::time_point begun_ = clock::now();
  const clock::time_point read_until_ = begun_ + request_within;
  mutable std::optional<clock::time_point>
      write_until_;  // from when the answer begins: it may take long to make
  std::array<char, 1024> buffer_{};
  std::size_t used_ = 0, filled_ = 0;
};

// Answers one request per connection: a kept connection would occupy a thread, and if there were more viewers than
// threads, they would wait for each other.
class limited_server final : public httplib::Server {
 private:
  // A template, so that only the call that the installed library knows is compiled: later versions also want the
  // addresses of both ends.
  template <class Server>
  static bool answer(Server& self, limited_stream& stream) {
    bool closed = false;
    if constexpr (requires { self.process_request(stream, true, closed, nullptr); })
      return self.process_request(stream, true, closed, nullptr);
    else
      return self.process_request(stream, "", 0, "", 0, true, closed, nullptr);
  }

  bool process_and_close_socket(socket_t socket) override {
    limited_stream stream(socket, [this] { return is_running(); });
    return answer(*this, stream);
  }
};

}  // namespace

class web_server::implementation {
 public:
  implementation(const std::string& address, web_source source, double stale_limit)
      : source_(std::move(source)), stale_limit_(stale_limit) {
    set_up();
    add_routes();
    bind(address);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();  // before that, stop() would do nothing
  }

  ~implementation() {
    server_.stop();
    thread_.join();
  }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;

  const std::string& url() const { return url_; }

 private:
  struct state {
    snapshot figures;
    std::string json;
    std::chrono::steady_clock::time_point taken;
  };

  void set_up();
  void add_routes();
  void bind(const std::string& address);
  std::shared_ptr<const state> current();

  const web_source source_;
  const double stale_limit_;

  std::mutex lock_;
  std::shared_ptr<const state> latest_;
  std::mutex lists_;  // held while a list is made, which may take longer
  std::mutex trace_;  // held while the trace is read, which may take seconds and much memory

  limited_server server_;
  std::string url_;
  std::thread thread_;
};

void web_server::implementation::set_up() {
  // The library's default is SO_REUSEPORT, which would let two programs share a port without noticing.
  server_.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server_.set_tcp_nodelay(true);
  server_.set_payload_max_length(1024);
  server_.new_task_queue = [] { return new httplib::ThreadPool(8); };
  server_.set_default_headers({{"Cache-Control", "no-store"},
                               {"X-Content-Type-Options", "nosniff"},
                               {"Referrer-Policy", "no-referrer"}});
  server_.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, const std::exception_ptr& thrown) {
        send_line(response, 500, what(thrown));
      });
  server_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty()) send_line(response, response.status, "There is nothing here");
  });
}

void web_server::implementation::add_routes() {
  using httplib::Request;
  using httplib::Response;
  server_.Get("/", [](const Request&, Response& response) { send_page(response); });
  server_.Get("/state\\.json", [this](const Request&, Response& response) {
    response.set_content(current()->json, "application/json");
  });
  server_.Get("/failing\\.json", [this](const Request& request, Response& response) {
    const std::lock_guard guard(lists_);
    response.set_content(failing_json(source_.failing(request.get_param_value("find"))), "application/json");
  });
  server_.Get("/history\\.json", [this](const Request&, Response& response) {
    const std::lock_guard guard(lists_);
    response.set_content(history_json(source_.past()), "application/json");
  });
  server_.Get("/late\\.json", [this](const Request&, Response& response) {
    const std::lock_guard guard(trace_);
    response.set_content(late_json(source_.late_reasons()), "application/json");
  });
  server_.Get("/trace\\.json", [this](const Request&, Response& response) {
    const std::lock_guard guard(trace_);
    std::ostringstream out;
    source_.write_trace(out);
    response.set_header("Content-Disposition", "attachment; filename=trace.json");
    response.set_content(std::move(out).str(), "application/json");
  });
  server_.Get("/metrics", [this](const Request&, Response& response) {
    response.set_content(prometheus_text(current()->figures), "text/plain; version=0.0.4; charset=utf-8");
  });
  server_.Get("/healthz", [this](const Request&, Response& response) {
    const health now = judge(current()->figures.keys, stale_limit_);
    send_line(response, now.good ? 200 : 503, now.line);
  });
}

void web_server::implementation::bind(const std::string& address) {
  const endpoint wanted = parse(address);
  errno = 0;
  int port = wanted.port;
  bool bound = false;
  if (port == 0) {
    port = server_.bind_to_any_port(wanted.host);
    bound = port > 0;
  } else {
    bound = server_.bind_to_port(wanted.host, port);
  }
  if (!bound) {
    const int reason = errno == 0 ? EADDRNOTAVAIL : errno;
    throw std::runtime_error(fmt::format("cannot listen on {}: {}", address,
                                         std::error_code(reason, std::generic_category()).message()));
  }
  const bool six = wanted.host.find(':') != std::string::npos;
  url_ = fmt::format("http://{}{}{}:{}/", six ? "[" : "", wanted.host, six ? "]" : "", port);
}

auto web_server::implementation::current() -> std::shared_ptr<const state> {
  const std::lock_guard guard(lock_);
  if (latest_ && clock::now() < latest_->taken + std::chrono::milliseconds(200)) return latest_;
  auto fresh = std::make_shared<state>();
  fresh->figures = source_.look();
  fresh->json = state_json(fresh->figures, source_.wheel(), stale_limit_);
  fresh->taken = clock::now();  // not earlier: a look may take long
  latest_ = std::move(fresh);
  return latest_;
}

web_server::web_server(const std::string& address, web_source source, double stale_limit)
    : running_(std::make_unique<implementation>(address, std::move(source), stale_limit)) {}

web_server::~web_server() = default;

std::string web_server::url() const { return running_->url(); }

}  // namespace cache_refresh
