#include "durable/cutting_proxy.hpp"

#include <array>
#include <cstddef>
#include <list>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace durable_test {
namespace {

sockaddr_in local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<in_port_t>(port));
  return address;
}

int new_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

/// Returns the port that the socket gets.
int listen_on(int socket) {
  auto address = local(0);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, plain, size) != 0 || ::listen(socket, 16) != 0 ||
      ::getsockname(socket, plain, &size) != 0)
    throw std::runtime_error("no port to listen on");
  return ntohs(address.sin_port);
}

bool send_all(int to, const char* bytes, std::size_t size) {
  while (size > 0) {
    const auto sent = ::send(to, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

class cutting_proxy::pair {
 public:
  pair(int client, int server, passes what) noexcept : client_(client), server_(server), passes_(what) {}
  ~pair() {
    ::close(client_);
    ::close(server_);
  }
  pair(const pair&) = delete;
  pair& operator=(const pair&) = delete;

  int client() const noexcept { return client_; }
  int server() const noexcept { return server_; }

  /// Returns false if the connection ends.
  bool pass_on(bool from_client, cutting_proxy& of) {
    std::array<char, 65536> bytes;
    const auto got = ::recv(from_client ? client_ : server_, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    auto where = from_client ? cut::request : cut::answer;
    if (of.next_cut_.compare_exchange_strong(where, cut::nowhere)) return false;
    if (passes_ == passes::all && of.passes_ != passes::all) return false;
    if (from_client && passes_ == passes::handshakes && (bytes[0] == 'Q' || bytes[0] == 'P'))
      passes_ = passes::nothing;
    if (passes_ == passes::nothing) {
      if (from_client) of.withheld_.open();
      return true;
    }
    return send_all(from_client ? server_ : client_, bytes.data(), static_cast<std::size_t>(got));
  }

 private:
  int client_;
  int server_;
  passes passes_;
};

silent_port::silent_port() : listener_(new_socket()), port_(listen_on(listener_)) {}
silent_port::~silent_port() { ::close(listener_); }

cutting_proxy::cutting_proxy(int server_port)
    : server_port_(server_port), listener_(new_socket()), port_(listen_on(listener_)) {
  if (::pipe(end_) != 0) throw std::runtime_error("no pipe");
  thread_ = std::thread([this] { serve(); });
}

cutting_proxy::~cutting_proxy() {
  ::close(end_[1]);
  thread_.join();
  ::close(end_[0]);
  ::close(listener_);
}

void cutting_proxy::serve() {
  std::list<pair> pairs;
  for (;;) {
    std::vector<pollfd> sockets{{.fd = end_[0], .events = POLLIN, .revents = 0},
                                {.fd = listener_, .events = POLLIN, .revents = 0}};
    for (const auto& p : pairs) {
      sockets.push_back({.fd = p.client(), .events = POLLIN, .revents = 0});
      sockets.push_back({.fd = p.server(), .events = POLLIN, .revents = 0});
    }
    ::poll(sockets.data(), sockets.size(), -1);
    if (sockets[0].revents != 0) return;
    std::size_t at = 2;
    for (auto p = pairs.begin(); p != pairs.end(); at += 2) {
      const bool goes_on = (sockets[at].revents == 0 || p->pass_on(true, *this)) &&
                           (sockets[at + 1].revents == 0 || p->pass_on(false, *this));
      p = goes_on ? std::next(p) : pairs.erase(p);
    }
    if (sockets[1].revents == 0) continue;
    const auto& made =
        pairs.emplace_back(::accept(listener_, nullptr, nullptr), new_socket(), passes_.load());
    const auto server = local(server_port_);
    if (::connect(made.server(), reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0)
      pairs.pop_back();
  }
}

}  // namespace durable_test
