// TCP on the loopback interface, for the clients and the parent of the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "descriptor.hpp"

namespace http_timeouts {

// A socket that listens on a port that the system chooses.
descriptor listen_on_loopback();
std::uint16_t port_of(const descriptor&);

// Begins to connect to that port, without waiting. One source address has too few ports for all clients, so the
// client's number chooses the address.
descriptor begin_to_connect(std::uint16_t port, std::size_t client);

// Sends as much as the socket takes at once, and returns how many bytes that is. Small requests are sent whole. Only
// reading shows that a connection has been closed.
std::size_t send_to(const descriptor&, std::string_view);

// Reads what has arrived into `buffer`, and returns a view of it, which is empty if there is nothing. Returns none if
// the peer has closed the connection.
std::optional<std::string_view> receive_from(const descriptor&, char* buffer, std::size_t size);

// Allows this process `wanted` file descriptors, or as many as the system permits. Returns how many.
std::size_t allow_descriptors(std::size_t wanted);

// Reports which descriptors can be read. (Linux: epoll, level-triggered.)
class poller {
 public:
  poller();
  // `also_writable`: also reports when the descriptor is writable, until watch_reading().
  void add(const descriptor&, std::uint64_t token, bool also_writable);
  void watch_reading(const descriptor&, std::uint64_t token);
  // Waits, and calls `ready` with the token of each ready descriptor. A closed descriptor is no longer watched.
  void wait(int milliseconds, const std::function<void(std::uint64_t)>& ready);

 private:
  descriptor epoll_;
};

}  // namespace http_timeouts
