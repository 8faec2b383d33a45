// The five or six fields of cron.
#include <string>

#include "calendar/almanac.hpp"

namespace calendar_cron {

using namespace calendar_test;

std::string next(const std::string& expression, const std::string& from, int count = 1,
                 cron_syntax syntax = cron_syntax::standard) {
  return points(cron(expression, "UTC", syntax), from, count);
}

std::string refused(const std::string& expression, cron_syntax syntax = cron_syntax::standard) {
  const std::string said = refusal([&] { cron(expression, "UTC", syntax); });
  const std::string begin = "rondo: the cron expression \"" + expression + "\" ";
  return said.starts_with(begin) ? said.substr(begin.size()) : said;
}

TEST_CASE("values, lists, ranges and steps") {
  CHECK(next("30 6 * * *", "2026-05-01 06:30:00", 2) == "2026-05-02 06:30, 2026-05-03 06:30");
  CHECK(next("5,10,50 6 * * *", "2026-05-01 06:05:00", 3) ==
        "2026-05-01 06:10, 2026-05-01 06:50, 2026-05-02 06:05");
  CHECK(next("58-59 6-7 * * *", "2026-05-01 00:00:00", 5) ==
        "2026-05-01 06:58, 2026-05-01 06:59, 2026-05-01 07:58, 2026-05-01 07:59, 2026-05-02 06:58");
  CHECK(next("*/20 5 * * *", "2026-05-01 00:00:00", 4) ==
        "2026-05-01 05:00, 2026-05-01 05:20, 2026-05-01 05:40, 2026-05-02 05:00");
  CHECK(next("10-40/15,55 5 * * *", "2026-05-01 00:00:00", 5) ==
        "2026-05-01 05:10, 2026-05-01 05:25, 2026-05-01 05:40, 2026-05-01 05:55, 2026-05-02 05:10");
  CHECK(next("\t0  0 1\t1 * ", "2026-05-01 00:00:00") == "2027-01-01 00:00");
  CHECK(next("059 007 * * *", "2026-05-01 00:00:00") == "2026-05-01 07:59");
  CHECK(next("* * * * *", "2026-12-31 23:58:30", 3) ==
        "2026-12-31 23:59, 2027-01-01 00:00, 2027-01-01 00:01");
  CHECK(next("*/45 * * * *", "2026-05-01 00:00:00", 3) ==
        "2026-05-01 00:45, 2026-05-01 01:00, 2026-05-01 01:45");
}

TEST_CASE("months and days of the week have names, and Sunday has two numbers") {
  CHECK(next("0 0 1 FEB,nov *", "2026-05-01 00:00:00", 2) == "2026-11-01 00:00, 2027-02-01 00:00");
  CHECK(next("0 0 1 mar-May *", "2026-01-01 00:00:00", 4) ==
        "2026-03-01 00:00, 2026-04-01 00:00, 2026-05-01 00:00, 2027-03-01 00:00");
  // 2026-05-03 is a Sunday.
  for (const char* const sunday : {"0", "7", "sun", "Sun", "0,7", "7-7", "0-0", "sun-sun"}) {
    CAPTURE(sunday);
    CHECK(next(std::string("0 0 * * ") + sunday, "2026-05-01 00:00:00", 2) ==
          "2026-05-03 00:00, 2026-05-10 00:00");
  }
  CHECK(next("0 0 * * mon-fri", "2026-05-01 00:00:00", 2) == "2026-05-04 00:00, 2026-05-05 00:00");
  for (const char* const weekend : {"sat-sun", "6-7", "6,0", "sat,sun", "6-0"})
    CHECK(next(std::string("0 0 * * ") + weekend, "2026-05-01 00:00:00", 3) ==
          "2026-05-02 00:00, 2026-05-03 00:00, 2026-05-09 00:00");
  CHECK(next("0 0 * * fri-sun/2", "2026-05-01 00:00:00", 2) == "2026-05-03 00:00, 2026-05-08 00:00");
  CHECK(next("0 0 * * sun-tue", "2026-05-01 00:00:00", 4) ==
        "2026-05-03 00:00, 2026-05-04 00:00, 2026-05-05 00:00, 2026-05-10 00:00");
  CHECK(next("0 0 * * */2", "2026-05-01 00:00:00", 4) ==  // Sunday, Tuesday, Thursday, Saturday
        "2026-05-02 00:00, 2026-05-03 00:00, 2026-05-05 00:00, 2026-05-07 00:00");
}

TEST_CASE("a day matches either of two restricted fields; with a * it must match both") {
  // 2026-05-04 is a Monday.
  CHECK(next("0 0 13 * mon", "2026-05-01 00:00:00", 4) ==
        "2026-05-04 00:00, 2026-05-11 00:00, 2026-05-13 00:00, 2026-05-18 00:00");
  CHECK(next("0 0 13 * *", "2026-05-01 00:00:00", 2) == "2026-05-13 00:00, 2026-06-13 00:00");
  CHECK(next("0 0 * * mon", "2026-05-01 00:00:00", 2) == "2026-05-04 00:00, 2026-05-11 00:00");
  CHECK(next("0 0 */2 * mon", "2026-05-01 00:00:00", 2) == "2026-05-11 00:00, 2026-05-25 00:00");
  CHECK(next("0 0 1-31 * mon", "2026-05-01 00:00:00", 2) == "2026-05-02 00:00, 2026-05-03 00:00");
  CHECK(next("0 0 30 2 mon", "2026-01-01 00:00:00", 2) == "2026-02-02 00:00, 2026-02-09 00:00");
}

TEST_CASE("days that do not exist in every month or year") {
  CHECK(next("0 0 31 * *", "2026-04-01 00:00:00", 3) ==
        "2026-05-31 00:00, 2026-07-31 00:00, 2026-08-31 00:00");
  CHECK(next("0 0 29 feb *", "2026-01-01 00:00:00", 2) == "2028-02-29 00:00, 2032-02-29 00:00");
  CHECK(next("0 0 29 feb *", "2096-03-01 00:00:00") == "2104-02-29 00:00");  // 2100 is not a leap year
  CHECK(next("0 0 29 2 */7", "2026-01-01 00:00:00", 2) == "2032-02-29 00:00, 2060-02-29 00:00");  // a Sunday
  CHECK(next("0 0 29 2 *", "2260-03-01 00:00:00") == "none");
}

TEST_CASE("named times of day count once; a minute or an hour that begins with * asks for elapsed time") {
  const auto in_berlin = [](const char* expression, const char* from, int count) {
    return points(cron(expression, "Europe/Berlin"), from, count);
  };
  // 02:00 became 03:00 at 01:00 UTC. All skipped times, and any time due at that moment, count there as one point.
  const char* const spring = "2026-03-29 00:20:00";
  CHECK(in_berlin("30 2 * * *", spring, 2) == "2026-03-29 01:00, 2026-03-30 00:30");
  CHECK(in_berlin("0,30 1-3 * * *", spring, 4) ==
        "2026-03-29 00:30, 2026-03-29 01:00, 2026-03-29 01:30, 2026-03-29 23:00");
  CHECK(in_berlin("*/30 1-3 * * *", spring, 4) ==
        "2026-03-29 00:30, 2026-03-29 01:00, 2026-03-29 01:30, 2026-03-29 23:00");
  CHECK(in_berlin("*/30 2 * * *", spring, 2) == "2026-03-30 00:00, 2026-03-30 00:30");
  CHECK(in_berlin("0 */2 * * *", spring, 2) == "2026-03-29 02:00, 2026-03-29 04:00");
  CHECK(in_berlin("30 * * * *", spring, 3) == "2026-03-29 00:30, 2026-03-29 01:30, 2026-03-29 02:30");
  CHECK(in_berlin("30 0-23 * * *", spring, 3) == "2026-03-29 00:30, 2026-03-29 01:30, 2026-03-29 02:30");
  CHECK(in_berlin("* * 29 3 *", "2026-03-29 00:58:30", 3) ==
        "2026-03-29 00:59, 2026-03-29 01:00, 2026-03-29 01:01");
  // 03:00 became 02:00 at 01:00 UTC.
  const char* const autumn = "2026-10-25 00:10:00";
  CHECK(in_berlin("30 2 * * *", autumn, 2) == "2026-10-25 00:30, 2026-10-26 01:30");
  CHECK(in_berlin("0,30 2-3 * * *", "2026-10-24 23:10:00", 4) ==
        "2026-10-25 00:00, 2026-10-25 00:30, 2026-10-25 02:00, 2026-10-25 02:30");
  CHECK(in_berlin("*/30 2-3 * * *", "2026-10-24 23:10:00", 4) ==
        "2026-10-25 00:00, 2026-10-25 00:30, 2026-10-25 01:00, 2026-10-25 01:30");
  CHECK(in_berlin("*/15 0-22 * * *", "2026-10-25 00:35:00", 3) ==
        "2026-10-25 00:45, 2026-10-25 01:00, 2026-10-25 01:15");
  CHECK(in_berlin("0 */2 * * *", "2026-10-24 23:10:00", 3) ==
        "2026-10-25 00:00, 2026-10-25 01:00, 2026-10-25 03:00");
  CHECK(in_berlin("30 * * * *", autumn, 3) == "2026-10-25 00:30, 2026-10-25 01:30, 2026-10-25 02:30");
  CHECK(in_berlin("0,59 * * * *", autumn, 5) ==
        "2026-10-25 00:59, 2026-10-25 01:00, 2026-10-25 01:59, 2026-10-25 02:00, 2026-10-25 02:59");
}

TEST_CASE("in a zone whose offset has half hours or seconds, all hours are those that its clock shows") {
  CHECK(points(cron("0 * * * *", "Asia/Kathmandu"), "2026-05-01 00:00:00", 2) ==
        "2026-05-01 00:15, 2026-05-01 01:15");
  // On Lord Howe Island 02:00 became 01:30 at 15:00 UTC.
  CHECK(points(cron("45 * * * *", "Australia/Lord_Howe"), "2026-04-04 14:00:00", 3) ==
        "2026-04-04 14:45, 2026-04-04 15:15, 2026-04-04 16:15");
  // Amsterdam was 19 min 32 s ahead of Greenwich.
  CHECK(points(cron("0 * * * *", "Europe/Amsterdam"), "1930-01-01 12:00:00", 1).starts_with("19"));
}

TEST_CASE("with seconds_first, the first of six fields is the second") {
  const auto next_second = [](const std::string& expression, const std::string& from, int count = 1) {
    return next(expression, from, count, cron_syntax::seconds_first);
  };
  CHECK(next_second("15 30 6 * * *", "2026-05-01 06:30:15", 2) ==
        "2026-05-02 06:30+15000000000ns, 2026-05-03 06:30+15000000000ns");
  CHECK(next_second("0 30 6 * * *", "2026-05-01 06:00:00", 2) == "2026-05-01 06:30, 2026-05-02 06:30");
  CHECK(next_second("*/20 59 5 * * *", "2026-05-01 05:59:10", 3) ==
        "2026-05-01 05:59+20000000000ns, 2026-05-01 05:59+40000000000ns, 2026-05-02 05:59");
  CHECK(next_second("*/30 * * * * *", "2026-12-31 23:59:00", 3) ==
        "2026-12-31 23:59+30000000000ns, 2027-01-01 00:00, 2027-01-01 00:00+30000000000ns");
  CHECK(next_second("50-59/9 1,3 * * * *", "2026-05-01 00:01:59.5", 3) ==
        "2026-05-01 00:03+50000000000ns, 2026-05-01 00:03+59000000000ns, 2026-05-01 01:01+50000000000ns");
  CHECK(next_second("* * * * * *", "2026-05-01 00:00:00.25") == "2026-05-01 00:00+1000000000ns");
  CHECK(next_second("0 0 0 13 * mon", "2026-05-01 00:00:00", 2) == "2026-05-04 00:00, 2026-05-11 00:00");
}

TEST_CASE("seconds in an hour that occurs twice, or not at all") {
  const auto in_berlin = [](const char* expression, const char* from, int count) {
    return points(cron(expression, "Europe/Berlin", cron_syntax::seconds_first), from, count);
  };
  // 03:00 became 02:00 at 01:00 UTC. If the hour is named, the second pass does not count, but later hours do.
  CHECK(in_berlin("*/30 59 2 * * *", "2026-10-25 00:59:00", 2) ==
        "2026-10-25 00:59+30000000000ns, 2026-10-26 01:59");
  CHECK(in_berlin("* 0-59 2-3 * * *", "2026-10-25 00:59:59", 2) ==
        "2026-10-25 02:00, 2026-10-25 02:00+1000000000ns");
  CHECK(in_berlin("* 0-59 2-3 * * *", "2026-10-25 01:30:00.5", 1) == "2026-10-25 02:00");
  CHECK(in_berlin("* * 2-3 * * *", "2026-10-25 01:30:00.5", 1) == "2026-10-25 01:30+1000000000ns");
  CHECK(in_berlin("30 59 * * * *", "2026-10-25 00:59:00", 3) ==
        "2026-10-25 00:59+30000000000ns, 2026-10-25 01:59+30000000000ns, 2026-10-25 02:59+30000000000ns");
  // 02:00 became 03:00 at 01:00 UTC.
  CHECK(in_berlin("*/30 59 2 * * *", "2026-03-29 00:59:30", 2) == "2026-03-29 01:00, 2026-03-30 00:59");
}

TEST_CASE("a wrong expression is refused, and the message names the wrong part") {
  const std::string five = "fields, not 5 as cron_syntax::standard has";
  CHECK(refused("") == "has 0 " + five);
  CHECK(refused("* * * *") == "has 4 " + five);
  CHECK(refused("0 0 * * * * *") ==
        "has 7 " + five + ": name the syntax that is meant, cron_syntax::quartz or year_last");
  CHECK(refused("*/5 * * * * *") ==
        "has 6 " + five +
            ": name the syntax that is meant, cron_syntax::seconds_first, quartz, "
            "spring, eventbridge or year_last");
  CHECK(refused("* * * * *", cron_syntax::quartz) ==
        "has 5 fields, not 6 or 7 as cron_syntax::quartz has: name the syntax that is meant, "
        "cron_syntax::standard or year_last");
  CHECK(refused("60 * * * * *", cron_syntax::seconds_first) ==
        "is wrong in its second: \"60\" is not in 0-59");
  CHECK(refused("*") == "has 1 field, not 5 as cron_syntax::standard has");
  CHECK(refused("@noon") ==
        "is none of the names @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually");
  CHECK(refused("@reboot") == "is no calendar: at the start of the program, schedule a timer that runs once");
  CHECK(refused("@every 5m") == "is no calendar: schedule a periodic timer, every()");
  CHECK(refused("CRON_TZ=America/New_York 0 9 * * 1") ==
        "has a zone in it: that is the second argument of cron()");
  CHECK(refused("0 0 ? * 1") ==
        "is wrong in its day of the month: \"?\" is not a number: it is of cron_syntax::quartz, spring, "
        "eventbridge or year_last");
  CHECK(refused("60 * * * *") == "is wrong in its minute: \"60\" is not in 0-59");
  CHECK(refused("* 24 * * *") == "is wrong in its hour: \"24\" is not in 0-23");
  CHECK(refused("* * 0 * *") == "is wrong in its day of the month: \"0\" is not in 1-31");
  CHECK(refused("* * 32 * *") == "is wrong in its day of the month: \"32\" is not in 1-31");
  CHECK(refused("* * * 0 *") == "is wrong in its month: \"0\" is not in 1-12");
  CHECK(refused("* * * 13 *") == "is wrong in its month: \"13\" is not in 1-12");
  CHECK(refused("* * * * 8") == "is wrong in its day of the week: \"8\" is not in 0-7");
  CHECK(refused("* * * * 99999") ==
        "is wrong in its day of the week: \"99999\" is neither a number nor a name");
  CHECK(refused("1,,2 * * * *") == "is wrong in its minute: \"\" is not a number");
  CHECK(refused("1, * * * *") == "is wrong in its minute: \"\" is not a number");
  CHECK(refused("-5 * * * *") == "is wrong in its minute: \"\" is not a number");
  CHECK(refused("5- * * * *") == "is wrong in its minute: \"\" is not a number");
  CHECK(refused("1-2-3 * * * *") == "is wrong in its minute: \"2-3\" is not a number");
  CHECK(refused("30-10 * * * *") == "is wrong in its minute: \"30-10\" goes backwards");
  CHECK(refused("* * * nov-feb *") == "is wrong in its month: \"nov-feb\" goes backwards");
  CHECK(refused("* * * * wed-mon") == "is wrong in its day of the week: \"wed-mon\" goes backwards");
  CHECK(refused("5/15 * * * *") ==
        "is wrong in its minute: \"5/15\" has a step after a single value, not after * or a range");
  CHECK(refused("*/0 * * * *") == "is wrong in its minute: \"0\" is not a step in 1-59");
  CHECK(refused("0 */60 * * * ?", cron_syntax::quartz) ==
        "is wrong in its minute: \"60\" is not a step in 1-59");
  CHECK(refused("*/ * * * *") == "is wrong in its minute: \"\" is not a number");
  CHECK(refused("*/5/2 * * * *") == "is wrong in its minute: \"5/2\" is not a number");
  CHECK(refused("*-5 * * * *") == "is wrong in its minute: \"*\" is not a number");
  CHECK(refused("** * * * *") == "is wrong in its minute: \"**\" is not a number");
  CHECK(refused("jan * * * *") == "is wrong in its minute: \"jan\" is not a number");
  CHECK(refused("* * * monday *") == "is wrong in its month: \"monday\" is neither a number nor a name");
  CHECK(refused("* * * mon *") == "is wrong in its month: \"mon\" is neither a number nor a name");
  CHECK(refused("* * * anf *") == "is wrong in its month: \"anf\" is neither a number nor a name");
  CHECK(refused("* * L * *") ==
        "is wrong in its day of the month: \"L\" is not a number: L, W and # are of cron_syntax::quartz, "
        "spring, eventbridge or year_last");
  CHECK(refused("0 0 30 2 *") == "matches no day");
  CHECK(refused("0 0 31 2,4,6,9,11 *") == "matches no day");
  CHECK(refused("0 0 30-31 2 *") == "matches no day");
  CHECK(refusal([] { cron("*\n* * * *", "UTC"); }) ==
        "rondo: the cron expression \"*\\x0a* * * *\" has 4 fields, not 5 as cron_syntax::standard has");
}

}  // namespace calendar_cron
