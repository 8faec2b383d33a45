// Collects error messages from any thread, until they are shown.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace order_timeout {

// Databases often report more than one line.
inline std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

class messages {
 public:
  void add(std::string text) {
    const std::lock_guard guard(lock_);
    texts_.push_back(one_line(std::move(text)));
  }
  std::vector<std::string> take() {
    const std::lock_guard guard(lock_);
    return std::exchange(texts_, {});
  }

 private:
  std::mutex lock_;
  std::vector<std::string> texts_;
};

}  // namespace order_timeout
