// For the script peers: prints when cron expressions are due. A line of the input is NUMBER|ZONE|FROM|UNTIL|EXPRESSION,
// perhaps with more fields; the times are in seconds since 1970. A line of the output is NUMBER|POINT; points are after
// FROM and before UNTIL. Six fields are those of cron_syntax::seconds_first.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>

#include <rondo/calendar.hpp>

rondo::wall_time at(const std::string& seconds) {
  return rondo::wall_time(std::chrono::seconds(std::stoll(seconds)));
}

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream fields(line);
    const auto next = [&] {
      std::string field;
      std::getline(fields, field, '|');
      return field;
    };
    const std::string number = next();
    const std::string zone = next();
    const rondo::wall_time from = at(next());
    const rondo::wall_time until = at(next());
    const std::string expression = next();
    const bool six = std::ranges::count(expression, ' ') == 5;
    const rondo::calendar points =
        rondo::cron(expression, zone, six ? rondo::cron_syntax::seconds_first : rondo::cron_syntax::standard);
    for (auto point = points.next(from); point && *point < until; point = points.next(*point))
      std::cout << number << '|'
                << std::chrono::duration_cast<std::chrono::seconds>(point->time_since_epoch()).count()
                << '\n';
  }
}
