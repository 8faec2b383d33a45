// The mark that an editor writes at the end of a value.
#pragma once

#include <string>

namespace cache_refresh {

// Returns the text with this mark, which replaces an earlier one: "Priority [edit 12]".
inline std::string marked(std::string text, const std::string& mark) {
  constexpr const char* opens = " [edit ";
  const std::size_t earlier = text.ends_with(']') ? text.rfind(opens) : std::string::npos;
  if (earlier != std::string::npos) text.resize(earlier);
  return text.append(opens).append(mark).append("]");
}

}  // namespace cache_refresh
