#include "loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace http_timeouts {
namespace {

constexpr std::size_t clients_an_address = 8000;
constexpr std::size_t addresses = 200;

// 127.0.0.(1 + offset). All of these addresses are this machine.
sockaddr_in loopback(std::size_t offset, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<std::uint32_t>(offset));
  return address;
}

const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

void switch_on(const descriptor& socket, int level, int option) {
  const int on = 1;
  if (::setsockopt(socket.number(), level, option, &on, sizeof on) < 0) fail("setsockopt");
}

}  // namespace

descriptor listen_on_loopback() {
  descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  const sockaddr_in address = loopback(0, 0);
  if (::bind(socket.number(), generic(address), sizeof address) < 0) fail("bind");
  if (::listen(socket.number(), SOMAXCONN) < 0) fail("listen");
  return socket;
}

std::uint16_t port_of(const descriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) < 0) fail("getsockname");
  return ntohs(address.sin_port);
}

descriptor begin_to_connect(std::uint16_t port, std::size_t client) {
  descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
  switch_on(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);  // connect() chooses, knowing both ends
  const sockaddr_in source = loopback(client / clients_an_address % addresses, 0);
  if (::bind(socket.number(), generic(source), sizeof source) < 0) fail("bind");
  const sockaddr_in server = loopback(0, port);
  if (::connect(socket.number(), generic(server), sizeof server) < 0 && errno != EINPROGRESS) fail("connect");
  return socket;
}

std::size_t send_to(const descriptor& socket, std::string_view bytes) {
  const ssize_t n = ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::optional<std::string_view> receive_from(const descriptor& socket, char* buffer, std::size_t size) {
  const ssize_t n = ::recv(socket.number(), buffer, size, 0);
  if (n > 0) return std::string_view(buffer, static_cast<std::size_t>(n));
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::string_view();
  if (n < 0 && errno != ECONNRESET && errno != EPIPE) fail("recv");
  return std::nullopt;
}

std::size_t allow_descriptors(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) fail("getrlimit");
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  if (::setrlimit(RLIMIT_NOFILE, &limit) < 0) fail("setrlimit");
  return limit.rlim_cur;
}

poller::poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1") {}

void poller::add(const descriptor& d, std::uint64_t token, bool also_writable) {
  epoll_event event{.events = EPOLLIN | (also_writable ? EPOLLOUT : 0U), .data = {.u64 = token}};
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, d.number(), &event) < 0) fail("epoll_ctl");
}

void poller::watch_reading(const descriptor& d, std::uint64_t token) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = token}};
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, d.number(), &event) < 0) fail("epoll_ctl");
}

void poller::wait(int milliseconds, const std::function<void(std::uint64_t)>& ready) {
  std::array<epoll_event, 256> events{};
  const int n = ::epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), milliseconds);
  if (n < 0 && errno != EINTR) fail("epoll_wait");
  for (int i = 0; i < n; ++i) ready(events[static_cast<std::size_t>(i)].data.u64);
}

}  // namespace http_timeouts
