// JSON, read strictly: for tests of what is written.
#pragma once

#include <cctype>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rondo::test {

/// A value. Strings are as they are written, with their escapes. Members that do not fit the value throw std::out_of_range.
class json {
 public:
  const json& at(const std::string& key) const { return members_.at(key); }
  const std::vector<json>& items() const { return items_; }
  const std::string& text() const { return text_; }
  double number() const { return std::stod(text_); }

 private:
  friend class json_reader;
  std::string text_;  // of strings and numbers
  std::vector<json> items_;
  std::map<std::string, json> members_;
};

class json_reader {
 public:
  explicit json_reader(const std::string& text) : text_(text) {}

  json whole() {
    json v = value();
    skip();
    if (at_ != text_.size()) fail();
    return v;
  }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error("no JSON: " + text_.substr(at_, 80)); }
  void skip() {
    while (at_ != text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char next() {
    skip();
    return at_ != text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }

  json value() {
    json v;
    if (take('{')) {
      if (take('}')) return v;
      do {
        const std::string key = string();
        expect(':');
        if (!v.members_.emplace(key, value()).second) fail();
      } while (take(','));
      expect('}');
    } else if (take('[')) {
      if (take(']')) return v;
      do v.items_.push_back(value());
      while (take(','));
      expect(']');
    } else if (next() == '"') {
      v.text_ = string();
    } else {
      v.text_ = number();
    }
    return v;
  }

  std::string string() {
    expect('"');
    const std::size_t begin = at_;
    while (at_ != text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) fail();
      at_ += text_[at_] == '\\' ? 2U : 1U;
    }
    if (at_ >= text_.size()) fail();
    return text_.substr(begin, at_++ - begin);
  }

  std::string number() {
    const std::size_t begin = at_;
    if (text_[at_] == '-') ++at_;
    if (text_[at_] == '0' && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0) fail();
    if (!digits()) fail();
    if (text_[at_] == '.' && (++at_, !digits())) fail();
    return text_.substr(begin, at_ - begin);
  }
  bool digits() {
    const std::size_t begin = at_;
    while (at_ != text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ != begin;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

/// Throws std::runtime_error if it is no JSON. (Without true, false, null and exponents.)
inline json parse_json(const std::string& text) { return json_reader(text).whole(); }

}  // namespace rondo::test
