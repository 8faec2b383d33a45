// The parameters of a statement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::durable::detail::postgresql {

/// Parameters are added in order; the first is $1. All except bytes are sent as text, which the statement casts where
/// the type is not obvious.
class parameters {
 public:
  parameters& integer(std::int64_t value);
  parameters& boolean(bool value);
  parameters& text(std::string value);
  parameters& bytes(std::string value);
  parameters& null();
  ///@{
  /// Adds an array, as a literal.
  parameters& integers(const std::vector<std::int64_t>& values);
  parameters& integers(const std::vector<std::optional<std::int64_t>>& values);
  parameters& texts(const std::vector<std::string>& values);
  parameters& booleans(const std::vector<bool>& values);
  ///@}
  ///@{
  /// Adds an array, in the binary format, which costs least. An empty text becomes null.
  parameters& texts_or_nulls(const std::vector<std::string_view>& values);
  parameters& byte_strings(const std::vector<std::string_view>& values);
  ///@}

  int count() const noexcept { return static_cast<int>(values_.size()); }
  /// In the form that libpq takes. Valid until this object changes.
  std::vector<const char*> pointers() const;
  const std::vector<int>& lengths() const noexcept { return lengths_; }
  const std::vector<int>& formats() const noexcept { return formats_; }

 private:
  parameters& add(std::optional<std::string> value, bool is_binary);

  std::vector<std::optional<std::string>> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

}  // namespace rondo::durable::detail::postgresql
