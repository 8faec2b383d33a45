// Shared by the tests of operations with a deadline. Boost 1.77 and later.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "adapters/asio_results.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace rondo::test {

using local = boost::asio::local::stream_protocol;

/// A connection in this process, whose ends are `ours`, which a test reads, and `theirs`.
struct line {
  manual_timer time;
  boost::asio::io_context io;
  journal notes;
  local::socket ours{io};
  local::socket theirs{io};
  std::array<char, 8> input{};

  line() { boost::asio::local::connect_pair(ours, theirs); }

  void say(std::string_view text) { theirs.send(boost::asio::buffer(text)); }

  static std::string read(error_code e, std::size_t n) { return name_of(e) + ' ' + std::to_string(n); }

  /// A handler that notes how a read ended.
  auto noting() {
    return [this](error_code e, std::size_t n) { notes.add(read(e, n)); };
  }
};

/// An operation that a test ends, and that notices its cancellation.
class cancelled_here {
 public:
  std::function<void(boost::asio::cancellation_type)> on_cancel;

  template <class Token>
  auto begin(Token&& token) {
    return boost::asio::async_initiate<Token, void(error_code)>(
        [this](auto handler) {
          auto slot = boost::asio::get_associated_cancellation_slot(handler);
          slot.assign([this](boost::asio::cancellation_type_t type) { on_cancel(type); });
          // std::function wants to copy
          end = [kept = std::make_shared<decltype(handler)>(std::move(handler))](error_code e) {
            std::move (*kept)(e);
          };
        },
        token);
  }
  std::function<void(error_code)> end;
};

}  // namespace rondo::test
