// What queues, keys and payloads may be, the same for all engines; and texts of the user's in messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <rondo/durable.hpp>

namespace rondo::durable::detail {

/// In quotation marks, what is not printable as \xNN; of a long text the beginning.
std::string quoted(const std::string& text);

/// Whatever is no UTF-8 becomes \xNN. At most `most` bytes; of a longer text the beginning, and "...". Precondition:
/// most >= 3.
std::string as_utf8(std::string_view text, std::size_t most);

///@{
/// Throws std::invalid_argument, with the value.
void check_queue(const std::string& queue);
void check_key(const std::string& key);  // which may be empty
void check(const submission& what);
///@}

}  // namespace rondo::durable::detail
