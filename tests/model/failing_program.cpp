#include "model/failing_program.hpp"

#include <optional>
#include <sstream>

#include "model/random_program.hpp"
#include "model/shrinker.hpp"

namespace rondo::test {

namespace {

/// `text` as C++ comments.
std::string commented(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) all += "  // " + line + '\n';
  return all;
}

std::string listed(const choices::list& made) {
  constexpr std::size_t longest_line = 100;
  std::string text;
  std::size_t line_start = 0;
  for (const auto number : made) {
    const std::string next = std::to_string(number);
    if (!text.empty()) text += ',';
    if (text.size() + next.size() + 2 - line_start > longest_line) {
      text += "\n                 ";
      line_start = text.size();
    }
    text += (text.empty() || text.back() == ' ' ? "" : " ") + next;
  }
  return text;
}

}  // namespace

outcome run_program(choices c, std::size_t steps, std::ostream* trace, limits most) {
  random_program program(c, steps, trace, most);
  std::string wrong = program.run();
  return {std::move(wrong), c.made(), program.looks()};
}

std::string as_test(choices::list failing, std::chrono::milliseconds limit) {
  const auto still_fails = [](const choices::list& l) -> std::optional<choices::list> {
    outcome o = run_program(choices::replayed(l), 1);
    return o.wrong.empty() ? std::nullopt : std::optional(std::move(o.made));
  };
  const choices::list simplest = shrunk(std::move(failing), still_fails, limit);
  std::ostringstream trace;
  const std::string wrong = run_program(choices::replayed(simplest), 1, &trace).wrong;
  return "TEST_CASE(\"what went wrong in a random program: …\") {\n" + commented(trace.str()) +
         commented("Wrong: " + wrong) + "  CHECK(wrong_in({" + listed(simplest) + "}) == \"\");\n}\n";
}

}  // namespace rondo::test
