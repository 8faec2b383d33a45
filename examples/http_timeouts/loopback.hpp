// TCP on the loopback interface, as the clients and the parent of the server need it.
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

// Begins to connect to that port, without waiting. One source address has too few ports for all clients: the client's
// number chooses it.
descriptor begin_to_connect(std::uint16_t port, std::size_t client);

// Sends what the socket takes at once: all of what these clients send. A connection that has been closed shows when it is
// read.
void send_to(const descriptor&, std::string_view);

// Reads what is there, into `buffer`: a view of that; empty, if there is nothing. None: the peer has closed the
// connection.
std::optional<std::string_view> receive_from(const descriptor&, char* buffer, std::size_t size);

// Lets this process have so many file descriptors, or else as many as it may have. How many these are.
std::size_t allow_descriptors(std::size_t wanted);

// Tells which descriptors can be read. (Linux: epoll, level-triggered.)
class poller {
 public:
  poller();
  // `also_writable`: until watch_reading().
  void add(const descriptor&, std::uint64_t token, bool also_writable);
  void watch_reading(const descriptor&, std::uint64_t token);
  // Waits, and calls `ready` with the token of each that is ready. A closed descriptor is watched no longer.
  void wait(int milliseconds, const std::function<void(std::uint64_t)>& ready);

 private:
  descriptor epoll_;
};

}  // namespace http_timeouts
