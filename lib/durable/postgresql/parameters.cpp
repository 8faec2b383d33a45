#include "durable/postgresql/parameters.hpp"

#include <type_traits>
#include <utility>

namespace rondo::durable::detail::postgresql {
namespace {

std::string quoted(const std::string& text) {
  std::string in_quotes = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') in_quotes += '\\';
    in_quotes += c;
  }
  return in_quotes + '"';
}

template <class Values, class ToText>
std::string array(const Values& values, ToText to_text) {
  std::string literal = "{";
  for (const auto& value : values) {
    if (literal.size() > 1) literal += ',';
    literal += to_text(value);
  }
  return literal + '}';
}

template <class Integer>
void add_big_endian(std::string& to, Integer value) {
  for (int shift = 8 * int{sizeof(value)} - 8; shift >= 0; shift -= 8)
    to += static_cast<char>(static_cast<std::make_unsigned_t<Integer>>(value) >> shift);
}

/// `element` is the number of the elements' type.
std::string binary_array(std::int32_t element, const std::vector<std::string_view>& values,
                         bool empty_is_null) {
  std::string bytes;
  const auto count = static_cast<std::int32_t>(values.size());
  constexpr std::int32_t dimensions = 1;
  constexpr std::int32_t first_subscript = 1;
  const std::int32_t may_have_nulls = empty_is_null ? 1 : 0;
  for (const std::int32_t part : {dimensions, may_have_nulls, element, count, first_subscript})
    add_big_endian(bytes, part);
  for (const std::string_view value : values) {
    const bool null = empty_is_null && value.empty();
    add_big_endian(bytes, null ? -1 : static_cast<std::int32_t>(value.size()));
    bytes += value;
  }
  return bytes;
}

}  // namespace

parameters& parameters::integer(std::int64_t value) { return add(std::to_string(value), false); }
parameters& parameters::boolean(bool value) { return add(value ? "t" : "f", false); }
parameters& parameters::text(std::string value) { return add(std::move(value), false); }
parameters& parameters::bytes(std::string value) { return add(std::move(value), true); }
parameters& parameters::null() { return add(std::nullopt, false); }

parameters& parameters::integers(const std::vector<std::int64_t>& values) {
  return text(array(values, [](std::int64_t value) { return std::to_string(value); }));
}

// A server with array_nulls = off takes NULL in the text of an array for a value. 20 is bigint, in every server.
parameters& parameters::integers(const std::vector<std::optional<std::int64_t>>& values) {
  std::vector<std::string> bytes(values.size());
  for (std::size_t i = 0; i != values.size(); ++i)
    if (values[i]) add_big_endian(bytes[i], *values[i]);
  return add(binary_array(20, {bytes.begin(), bytes.end()}, true), true);
}

parameters& parameters::texts(const std::vector<std::string>& values) { return text(array(values, quoted)); }

parameters& parameters::booleans(const std::vector<bool>& values) {
  return text(array(values, [](bool value) { return std::string(value ? "t" : "f"); }));
}

// 25 is text and 17 is bytea, in every server.
parameters& parameters::texts_or_nulls(const std::vector<std::string_view>& values) {
  return add(binary_array(25, values, true), true);
}
parameters& parameters::byte_strings(const std::vector<std::string_view>& values) {
  return add(binary_array(17, values, false), true);
}

std::vector<const char*> parameters::pointers() const {
  std::vector<const char*> all;
  all.reserve(values_.size());
  for (const auto& value : values_) all.push_back(value.has_value() ? value->c_str() : nullptr);
  return all;
}

parameters& parameters::add(std::optional<std::string> value, bool is_binary) {
  lengths_.push_back(value.has_value() ? static_cast<int>(value->size()) : 0);
  formats_.push_back(is_binary ? 1 : 0);
  values_.push_back(std::move(value));
  return *this;
}

}  // namespace rondo::durable::detail::postgresql
