// Which queues, keys and payloads are valid, for all engines; how messages show texts of the user; the names of states in statements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// Returns the text in quotation marks, with unprintable bytes as \xNN. A long text is truncated.
std::string quoted(const std::string& text);

/// Returns the text with bytes that are not UTF-8 as \xNN. A text longer than `most` bytes is truncated and ends in
/// "...". Precondition: most >= 3.
std::string as_utf8(std::string_view text, std::size_t most);

/// Returns the statement with numbers in place of the names of row_state, such as `{held}`, and with those of several:
/// `{not_begun}` (neither begun nor dead), `{any_waiting}`, `{begun}` and `{claimed}`. Throws std::logic_error if it has
/// another name in braces.
std::string with_states(std::string_view statement);

/// Returns the text on one line: with a space in place of each control character.
std::string on_one_line(std::string text);

///@{
/// Throws std::invalid_argument, whose message contains the value, if it is not valid.
void check_queue(const std::string& queue);
void check_key(const std::string& key);  // may be empty
void check(const submission& what);
void check(std::span<const planned> all);
void check(const repeated& what);
///@}

/// The place of the first submission that has the queue and key of an earlier one; the size of the list if there is
/// none.
std::size_t first_repeated_key(std::span<const planned> all);

/// A task without a point is refused: throws std::invalid_argument.
zoned_point checked_point(const repeated& what, std::optional<zoned_point> point);

[[noreturn]] void refuse_key(const submission& what, std::int64_t of_task);

}  // namespace rondo::durable::detail
