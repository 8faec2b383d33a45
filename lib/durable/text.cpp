#include "durable/text.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace rondo::durable::detail {

namespace {

constexpr std::size_t longest_name = 255;
constexpr std::size_t largest_payload = std::size_t{64} << 20;

unsigned byte_at(std::string_view text, std::size_t place) { return static_cast<unsigned char>(text[place]); }

/// The number of bytes of the character at the beginning of `text`, or 0 if it is not UTF-8. Surrogates, overlong forms
/// and values beyond U+10FFFF are not UTF-8. Precondition: `text` is not empty.
std::size_t character_size(std::string_view text) {
  struct form {
    unsigned mask, lead, smallest;
  };
  static constexpr std::array<form, 4> forms{
      {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}}};
  for (std::size_t more = 0; more < forms.size(); ++more) {
    const auto [mask, lead, smallest] = forms[more];
    if ((byte_at(text, 0) & mask) != lead) continue;
    if (text.size() <= more) return 0;
    unsigned character = byte_at(text, 0) & ~mask & 0xFFU;
    for (std::size_t i = 1; i <= more; ++i) {
      if ((byte_at(text, i) & 0xC0U) != 0x80U) return 0;
      character = character << 6U | (byte_at(text, i) & 0x3FU);
    }
    const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
    return character < smallest || character > 0x10FFFF || surrogate ? 0 : more + 1;
  }
  return 0;
}

std::string escaped(unsigned byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'\\', 'x', digits[byte >> 4U], digits[byte & 0xFU]};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

void check_name(const char* what, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(std::string("rondo: the ") + what + ' ' + quoted(name) + ' ' + why);
  };
  if (name.size() > longest_name) {
    refuse("has " + std::to_string(name.size()) + " bytes; at most " + std::to_string(longest_name) +
           " are allowed");
  }
  if (name.find('\0') != std::string::npos) refuse("contains a zero byte");
  if (!is_utf8(name)) refuse("is not UTF-8");
}

/// The numbers of the states with that name, see with_states().
std::string_view numbers_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> named{
      {{"waiting", "0"},
       {"held", "1"},
       {"running", "2"},
       {"dead", "3"},
       {"cancelled", "4"},
       {"in_lane", "5"},
       {"behind", "6"},
       {"any_waiting", "0, 5, 6"},
       {"not_begun", "0, 1, 5, 6"},
       {"begun", "2, 4"},
       {"claimed", "1, 2, 4"}}};
  for (const auto& [known, numbers] : named)
    if (known == name) return numbers;
  throw std::logic_error("rondo: no state has the name " + std::string(name));
}

}  // namespace

std::string quoted(const std::string& text) {
  constexpr std::size_t enough = 80;
  std::string result = "\"";
  const bool readable = is_utf8(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = byte_at(text, i);
    // Truncates only between two characters.
    if (i >= enough && (!readable || (byte & 0xC0U) != 0x80U)) return result + "...\"";
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !readable)) {
      result += escaped(byte);
    } else {
      result += text[i];
    }
  }
  return result + '"';
}

std::string as_utf8(std::string_view text, std::size_t most) {
  constexpr std::string_view dots = "...";
  std::string result;
  std::size_t before_dots = 0;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const bool storable = size != 0 && text.front() != '\0';  // PostgreSQL's texts contain no zero byte
    result += storable ? std::string(text.substr(0, size)) : escaped(byte_at(text, 0));
    text.remove_prefix(storable ? size : 1);
    if (result.size() > most) {
      result.resize(before_dots);
      return result.append(dots);
    }
    if (result.size() + dots.size() <= most) before_dots = result.size();
  }
  return result;
}

std::string with_states(std::string_view statement) {
  std::string numbered;
  for (;;) {
    const auto open = statement.find('{');
    numbered += statement.substr(0, open);
    if (open == std::string_view::npos) return numbered;
    const auto close = statement.find('}', open);
    const bool is_closed = close != std::string_view::npos;
    numbered += numbers_of(is_closed ? statement.substr(open + 1, close - open - 1) : statement.substr(open));
    statement.remove_prefix(close + 1);
  }
}

std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

void check_queue(const std::string& queue) {
  if (queue.empty()) throw std::invalid_argument("rondo: the queue \"\" is empty");
  check_name("queue", queue);
}

void check_key(const std::string& key) { check_name("key", key); }

void check(const submission& what) {
  check_queue(what.queue);
  check_key(what.key);
  check_name("lane", what.lane);
  if (what.max_attempts < 0) {
    throw std::invalid_argument("rondo: max_attempts must not be negative: " +
                                std::to_string(what.max_attempts));
  }
  if (what.payload.size() > largest_payload) {
    throw std::invalid_argument("rondo: the payload has " + std::to_string(what.payload.size()) +
                                " bytes; at most " + std::to_string(largest_payload) +
                                " (64 MiB) are allowed");
  }
}

void check(std::span<const planned> all) {
  for (std::size_t i = 0; i != all.size(); ++i) {
    try {
      check(all[i].what);
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(std::string(e.what()) + " (number " + std::to_string(i) + " of the list)");
    }
  }
}

void check(const repeated& what) {
  if (what.key.empty()) throw std::invalid_argument("rondo: the key \"\" of a repeated task is empty");
  check(submission{.queue = what.queue, .payload = what.payload, .key = what.key, .lane = what.lane});
  switch (what.missed) {
    case missed_points::run_once:
    case missed_points::run_all:
    case missed_points::skip:
      return;
  }
  throw std::invalid_argument("rondo: there is no missed_points " +
                              std::to_string(static_cast<int>(what.missed)));
}

zoned_point checked_point(const repeated& what, std::optional<zoned_point> point) {
  if (point) return *point;
  throw std::invalid_argument("rondo: the schedule " + quoted(what.when.text()) +
                              " has no point before the end of the clock");
}

std::size_t first_repeated_key(std::span<const planned> all) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (std::size_t i = 0; i != all.size(); ++i) {
    const submission& what = all[i].what;
    if (!what.key.empty() && !seen.emplace(what.queue, what.key).second) return i;
  }
  return all.size();
}

void refuse_key(const submission& what, std::int64_t of_task) {
  const std::string who =
      of_task == 0 ? "an earlier task of the list and of" : "task " + std::to_string(of_task) + " of";
  throw key_taken("rondo: " + who + " the queue " + quoted(what.queue) + " has the key " + quoted(what.key),
                  of_task);
}

}  // namespace rondo::durable::detail
