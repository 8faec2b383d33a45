// Cron expressions of other tools.
#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "calendar/cron_dialects.hpp"

#include "calendar/almanac.hpp"
#include "calendar/dialect_values.hpp"

namespace calendar_dialects {

using namespace calendar_test;

std::string next(cron_syntax syntax, const std::string& expression, const std::string& from, int count = 3,
                 const std::string& zone = "UTC") {
  return points(cron(expression, zone, syntax), from, count);
}

std::string refused(cron_syntax syntax, const std::string& expression) {
  const std::string said = refusal([&] { cron(expression, "UTC", syntax); });
  const std::string begin = "rondo: the cron expression \"" + expression + "\" ";
  return said.starts_with(begin) ? said.substr(begin.size()) : said;
}

/// The days of these points, without their years.
std::string days(cron_syntax syntax, const std::string& expression, const std::string& from, int count = 3) {
  const auto c = cron(expression, "UTC", syntax);
  wall_time t = utc(from);
  std::string result;
  for (int i = 0; i != count; ++i) {
    t = c.next(t).value();
    result += (result.empty() ? "" : " ") + text(t).substr(5, 5);
  }
  return result;
}

constexpr auto quartz = cron_syntax::quartz, spring = cron_syntax::spring,
               eventbridge = cron_syntax::eventbridge, year_last = cron_syntax::year_last;
constexpr std::array all{
    cron_syntax::standard, cron_syntax::seconds_first, quartz, spring, eventbridge, year_last};

// In 2027, 1 January is a Friday, 1 February and 1 March are Mondays, and 1 May is a Saturday.

TEST_CASE("weekdays are 1 to 7 from Sunday in quartz and eventbridge, and 0 to 7 elsewhere") {
  const char* const from = "2027-01-01 12:00:00";
  CHECK(days(quartz, "0 0 0 ? * 2", from, 2) == "01-04 01-11");  // Mondays
  CHECK(days(eventbridge, "0 0 ? * 2 *", from, 2) == "01-04 01-11");
  CHECK(days(spring, "0 0 0 ? * 2", from, 2) == "01-05 01-12");
  CHECK(days(year_last, "0 0 * * 2", from, 2) == "01-05 01-12");
  for (const auto syntax : {quartz, spring})
    CHECK(days(syntax, "0 0 0 ? * MON-FRI", from, 6) == "01-04 01-05 01-06 01-07 01-08 01-11");
  CHECK(days(eventbridge, "0 0 ? * MON-FRI *", from, 6) == "01-04 01-05 01-06 01-07 01-08 01-11");
  CHECK(days(quartz, "0 0 0 ? * 7", from, 2) == "01-02 01-09");
  CHECK(days(spring, "0 0 0 ? * 7", from, 2) == "01-03 01-10");
  CHECK(days(spring, "0 0 0 ? * 0", from, 2) == "01-03 01-10");
  CHECK(refused(quartz, "0 0 0 ? * 0") == "is wrong in its day of the week: \"0\" is not in 1-7");
  CHECK(days(quartz, "0 0 0 ? * 1/2", from, 4) == "01-02 01-03 01-05 01-07");
  CHECK(days(spring, "0 0 0 ? * */2", from, 4) == "01-03 01-04 01-06 01-08");  // from Monday to Sunday
}

TEST_CASE("two day fields: one must be ? in quartz and eventbridge, both must match in spring") {
  const char* const from = "2027-01-01 12:00:00";
  const std::string one = "must have ? in exactly one of its two day fields, as in cron_syntax::";
  for (const char* const expression : {"0 0 3 * * *", "0 0 3 ? * ?", "0 0 3 13 * 6"})
    CHECK(refused(quartz, expression) == one + "quartz");
  CHECK(refused(eventbridge, "0 3 * * * *") == one + "eventbridge");
  CHECK(days(spring, "0 0 0 13 * FRI", from, 2) == "08-13 10-13");  // 2027 and 2028
  CHECK(days(year_last, "0 0 13 * FRI", from, 4) == "01-08 01-13 01-15 01-22");
  CHECK(days(year_last, "0 0 ? * FRI", from, 2) == "01-08 01-15");
  CHECK(days(year_last, "0 0 */2 * FRI", from, 4) == "01-03 01-05 01-07 01-08");  // not a whole *
  CHECK(refused(cron_syntax::seconds_first, "0 0 0 ? * 1").find("\"?\" is not a number") !=
        std::string::npos);
  CHECK(refused(quartz, "0 0 ? ? * 1").find("\"?\" is not a number") != std::string::npos);
}

TEST_CASE("the last day of a month, days before it, and days from Monday to Friday") {
  const char* const from = "2027-01-01 12:00:00";
  for (const auto syntax : {quartz, spring}) {
    CHECK(days(syntax, "0 0 0 L * ?", from, 4) == "01-31 02-28 03-31 04-30");
    CHECK(days(syntax, "0 0 0 l-3 * ?", from, 3) == "01-28 02-25 03-28");
    CHECK(days(syntax, "0 0 0 LW * ?", from, 4) == "01-29 02-26 03-31 04-30");
    CHECK(days(syntax, "0 0 0 15W * ?", from, 5) == "01-15 02-15 03-15 04-15 05-14");  // 15 May is a Saturday
    CHECK(days(syntax, "0 0 0 1W * ?", "2027-04-30 00:00:00", 2) == "05-03 06-01");    // not in April
    CHECK(days(syntax, "0 0 0 31W * ?", from, 3) == "01-29 03-31 05-31");              // the 31st is a Sunday
  }
  CHECK(days(quartz, "0 0 0 L 2 ?", "2028-01-01 00:00:00", 2) == "02-29 02-28");
  CHECK(days(quartz, "0 0 0 L-1W * ?", from, 2) ==
        "01-29 02-26");  // 30 January is a Saturday, 27 February too
  CHECK(days(eventbridge, "0 0 L * ? *", from, 2) == "01-31 02-28");
  CHECK(days(year_last, "0 0 L * *", from, 2) == "01-31 02-28");
  CHECK(days(year_last, "0 0 1,L * *", from, 3) == "01-31 02-01 02-28");
  for (const char* const wrong : {"L-31", "L3", "LL", "LWW", "W", "32W", "L-W"}) {
    CAPTURE(wrong);
    CHECK(refused(spring, std::string("0 0 0 ") + wrong + " * ?")
              .starts_with("is wrong in its day of the month"));
  }
}

TEST_CASE("the last and the n-th of a day of the week") {
  const char* const from = "2027-01-01 12:00:00";
  CHECK(days(quartz, "0 0 0 ? * 6L", from, 3) == "01-29 02-26 03-26");
  CHECK(days(quartz, "0 0 0 ? * 6L", "2027-09-01 00:00:00", 1) == "09-24");  // six days before the last
  CHECK(days(spring, "0 0 0 ? * 5L", from, 3) == "01-29 02-26 03-26");
  CHECK(days(spring, "0 0 0 ? * FRIL", from, 3) == "01-29 02-26 03-26");
  CHECK(days(quartz, "0 0 0 ? * 6#3", from, 3) == "01-15 02-19 03-19");
  CHECK(days(spring, "0 0 0 ? * FRI#1", "2026-12-31 12:00:00", 3) == "01-01 02-05 03-05");
  CHECK(days(eventbridge, "0 0 ? * 2#5 *", from, 2) == "03-29 05-31");  // a fifth Monday
  CHECK(days(year_last, "0 0 * * 1#2,FRI", from, 4) == "01-08 01-11 01-15 01-22");
  CHECK(days(quartz, "0 0 0 ? * L", from, 2) == "01-02 01-09");  // Saturday
  CHECK(refused(spring, "0 0 0 ? * L").starts_with("is wrong in its day of the week: \"L\""));
  for (const char* const wrong : {"6#0", "6#6", "6#", "#2", "8#1", "9L"}) {
    CAPTURE(wrong);
    CHECK(refused(quartz, std::string("0 0 0 ? * ") + wrong).starts_with("is wrong in its day of the week"));
  }
}

TEST_CASE("years") {
  CHECK(next(quartz, "0 15 10 * * ? 2028", "2027-05-01 00:00:00", 2) == "2028-01-01 10:15, 2028-01-02 10:15");
  CHECK(next(quartz, "0 15 10 * * ? 2005", "2027-05-01 00:00:00") == "none");
  CHECK(next(quartz, "0 0 0 1 1 ? 2027-2031/2", "2027-05-01 00:00:00") ==
        "2029-01-01 00:00, 2031-01-01 00:00, none");
  CHECK(next(quartz, "0 0 0 1 1 ? */4", "2027-05-01 00:00:00", 2) == "2030-01-01 00:00, 2034-01-01 00:00");
  CHECK(next(quartz, "0 0 0 1 1 ? *", "2150-05-01 00:00:00", 1) == "2151-01-01 00:00");
  CHECK(next(eventbridge, "0 0 1 1 ? 2198/1", "2027-05-01 00:00:00") ==
        "2198-01-01 00:00, 2199-01-01 00:00, none");
  CHECK(next(year_last, "0 0 29 2 * 2027,2028,2096", "2027-05-01 00:00:00") ==
        "2028-02-29 00:00, 2096-02-29 00:00, none");
  CHECK(next(year_last, "*/5 * * * * *", "2027-05-01 00:00:00", 2) == "2027-05-01 00:05, 2027-05-01 00:10");
  CHECK(next(year_last, "*/20 0 0 1 1 * 2028", "2027-05-01 00:00:00", 2) ==
        "2028-01-01 00:00, 2028-01-01 00:00+20000000000ns");
  CHECK(refused(quartz, "0 0 0 29 2 ? 2027") == "matches no day");
  CHECK(refused(quartz, "0 0 0 1 1 ? 1969") == "is wrong in its year: \"1969\" is not in 1970-2099");
  CHECK(refused(eventbridge, "0 0 1 1 ? 2200") == "is wrong in its year: \"2200\" is not in 1970-2199");
  CHECK(refused(quartz, "0 0 0 1 1 ? 2030-2029") == "is wrong in its year: \"2030-2029\" goes backwards");
}

TEST_CASE("steps after a value, steps beyond the range, and ranges that go round") {
  const char* const from = "2027-01-01 00:00:00";
  CHECK(next(quartz, "0 10/20 5 * * ?", from, 4) ==
        "2027-01-01 05:10, 2027-01-01 05:30, 2027-01-01 05:50, 2027-01-02 05:10");
  CHECK(next(spring, "*/60 */90 5 * * ?", from, 2) == "2027-01-01 05:00, 2027-01-02 05:00");
  CHECK(next(cron_syntax::standard, "*/60 */24 * * *", from, 2) == "2027-01-02 00:00, 2027-01-03 00:00");
  CHECK(next(cron_syntax::standard, "10-20/30 5 * * *", from, 2) == "2027-01-01 05:10, 2027-01-02 05:10");
  CHECK(refused(quartz, "0 0/60 * * * ?") == "is wrong in its minute: \"60\" is not a step in 1-59");
  CHECK(refused(cron_syntax::standard, "0/5 * * * *").find("has a step after a single value") !=
        std::string::npos);
  CHECK(next(quartz, "0 0 22-2/2 * * ?", "2027-01-01 12:00:00", 3) ==
        "2027-01-01 22:00, 2027-01-02 00:00, 2027-01-02 02:00");
  CHECK(days(quartz, "0 0 0 ? NOV-FEB FRI-MON", "2027-02-25 00:00:00", 5) == "02-26 02-27 02-28 11-01 11-05");
  CHECK(days(spring, "0 0 0 ? * 7-2", from, 4) == "01-03 01-04 01-05 01-10");
  CHECK(refused(cron_syntax::standard, "0 0 * * 7-2").ends_with("goes backwards"));
  CHECK(refused(eventbridge, "0 22-2 * * ? *").ends_with("goes backwards"));
}

std::vector<std::vector<std::string>> table(const char* text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(cell);
  }
  return rows;
}

cron_syntax syntax_of(const std::string& name) {
  const auto& dialects = detail::cron_dialects;
  return static_cast<cron_syntax>(std::ranges::find(dialects, name, &detail::cron_dialect::name) -
                                  dialects.begin());
}

TEST_CASE("points are those that Quartz and Spring gave for lines of public repositories") {
  const auto values = table(dialect_values);
  CHECK(values.size() == 112);
  for (const auto& row : values) {
    CAPTURE(row[1]);
    const auto c = cron(row[1], row[2], syntax_of(row[0]));
    wall_time t = utc(row[3]);
    const std::string& expected = row[4];
    if (expected == "none") {
      CHECK_FALSE(c.next(t).has_value());
      continue;
    }
    std::istringstream points(expected);
    for (std::string point; points >> point;) {
      t = c.next(t).value();
      CHECK(text(t) == text(utc(point)));
    }
  }
}

TEST_CASE("lines of public repositories are read, but for four that are no calendars or of another tool") {
  std::set<std::string> refusals;
  for (const auto& row : table(dialect_lines))
    if (refused(syntax_of(row[0]), row[1]) != "accepted") refusals.insert(row[1]);
  CHECK(refusals == std::set<std::string>{"10 0 * * 6#2", "@every 5m", "@reboot",
                                          "CRON_TZ=America/New_York 0 9 18 * * 1"});
}

TEST_CASE("macros, where the tool has them, are at the beginning of each period") {
  const char* const from = "2027-05-05 12:30:00";  // a Wednesday
  for (const auto syntax : {cron_syntax::standard, cron_syntax::seconds_first, spring, year_last}) {
    CHECK(next(syntax, "@hourly", from, 2) == "2027-05-05 13:00, 2027-05-05 14:00");
    CHECK(next(syntax, "@daily", from, 2) == "2027-05-06 00:00, 2027-05-07 00:00");
    CHECK(next(syntax, "@midnight", from, 1) == "2027-05-06 00:00");
    CHECK(next(syntax, "@weekly", from, 2) == "2027-05-09 00:00, 2027-05-16 00:00");
    CHECK(next(syntax, "@monthly", from, 2) == "2027-06-01 00:00, 2027-07-01 00:00");
    CHECK(next(syntax, "@yearly", from, 2) == "2028-01-01 00:00, 2029-01-01 00:00");
    CHECK(next(syntax, " @annually ", from, 1) == "2028-01-01 00:00");
  }
  for (const auto syntax : {quartz, eventbridge})
    CHECK(refused(syntax, "@daily").starts_with("is a name, which cron_syntax::"));
}

TEST_CASE("what Quartz reads as something else than it says is refused") {
  CHECK(refused(quartz, "0 0 0 ? * MON-FRI/2") ==
        "is wrong in its day of the week: \"MON-FRI/2\" has a step after a name, which Quartz ignores");
  CHECK(refused(quartz, "0 0 0 ? JAN/3 2").find("has a step after a name") != std::string::npos);
  for (const char* const list : {"1,15W", "L,15", "15,LW"})
    CHECK(refused(quartz, std::string("0 0 0 ") + list + " * ?").find("beside others") != std::string::npos);
  for (const char* const list : {"MON,WED#2", "2L,4L", "2,L"})
    CHECK(refused(quartz, std::string("0 0 0 ? * ") + list).find("beside others") != std::string::npos);
  CHECK(refused(quartz, "0 0 0 ? JAN,JUL MON,WED") == "accepted");
  CHECK(refused(quartz, "0 0 0 ? * */2") == "accepted");
}

TEST_CASE("a value that is no syntax is refused") {
  CHECK(refusal([] { cron("* * * * *", "UTC", static_cast<cron_syntax>(9)); }) ==
        "rondo: there is no cron_syntax 9");
}

TEST_CASE("eventbridge reads its expressions with and without cron(), and in its order") {
  const char* const from = "2027-01-01 12:00:00";
  CHECK(next(eventbridge, "cron(15 10 ? * 6L 2027-2028)", from, 2) == "2027-01-29 10:15, 2027-02-26 10:15");
  CHECK(next(eventbridge, "0/15 * * * ? *", from, 2) == "2027-01-01 12:15, 2027-01-01 12:30");
  CHECK(refused(eventbridge, " cron( 0/15 * * * ? * ) ") == "accepted");
  CHECK(refused(cron_syntax::standard, "cron(0 0 * * *)") != "accepted");
}

TEST_CASE("at clock changes the rule is the same in all syntaxes") {
  // 03:00 became 02:00 at 01:00 UTC.
  const std::array<std::string, 6> polls{"*/30 2 * * *",   "0 */30 2 * * *", "0 */30 2 * * ?",
                                         "0 */30 2 * * ?", "*/30 2 * * ? *", "*/30 2 * * *"};
  const std::array<std::string, 6> times{"0,30 2 * * *",   "0 0,30 2 * * *", "0 0/30 2 * * ?",
                                         "0 0/30 2 * * ?", "0/30 2 * * ? *", "0/30 2 * * *"};
  for (std::size_t i = 0; i != all.size(); ++i) {
    CHECK(next(all.at(i), polls.at(i), "2026-10-24 23:10:00", 5, "Europe/Berlin") ==
          "2026-10-25 00:00, 2026-10-25 00:30, 2026-10-25 01:00, 2026-10-25 01:30, 2026-10-26 01:00");
    CHECK(next(all.at(i), times.at(i), "2026-10-24 23:10:00", 3, "Europe/Berlin") ==
          "2026-10-25 00:00, 2026-10-25 00:30, 2026-10-26 01:00");
  }
}

}  // namespace calendar_dialects
