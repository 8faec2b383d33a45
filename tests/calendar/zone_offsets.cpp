// What the files of zones say.
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "calendar/times.hpp"
#include "calendar/zone_files.hpp"
#include "calendar/zone_offsets.hpp"
#include "splitmix64.hpp"

namespace calendar_zone_offsets {

using namespace calendar_test;
using rondo::detail::constant_offset;
using rondo::detail::zone_offsets;
using std::chrono::seconds;
using std::chrono::sys_seconds;

sys_seconds at(const std::string& t) { return std::chrono::floor<seconds>(utc(t)); }

/// The offset at that time, in minutes.
long offset(const zone_offsets& zone, const std::string& t) { return zone.at(at(t)).offset / seconds(60); }

zone_offsets with_rule(const std::string& rule) { return zone_offsets(zone_file{.rule = rule}.bytes()); }

std::string refused(const std::string& contents) {
  try {
    static_cast<void>(zone_offsets(contents));
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "accepted";
}

/// What the C library says.
class local_time_of {
 public:
  explicit local_time_of(const std::string& zone) {
    if (const char* tz = std::getenv("TZ")) before_ = tz;
    set(zone.c_str());
  }
  local_time_of(const local_time_of&) = delete;
  local_time_of& operator=(const local_time_of&) = delete;
  ~local_time_of() { set(before_ ? before_->c_str() : nullptr); }

  seconds offset(sys_seconds t) const {
    const std::time_t time = t.time_since_epoch().count();
    std::tm result{};
    REQUIRE(::localtime_r(&time, &result) != nullptr);
    return seconds(result.tm_gmtoff);
  }

 private:
  static void set(const char* tz) {
    tz != nullptr ? ::setenv("TZ", tz, 1) : ::unsetenv("TZ");
    ::tzset();
  }
  std::optional<std::string> before_;
};

TEST_CASE("each zone of the system has the offsets that the C library gives it") {
  namespace fs = std::filesystem;
  const fs::path folder = "/usr/share/zoneinfo";
  if (!fs::exists(folder)) {
    MESSAGE("this system has no zones");
    return;
  }
  int zones = 0;
  for (auto each = fs::recursive_directory_iterator(folder); each != fs::end(each); ++each) {
    const std::string name = each->path().lexically_relative(folder).string();
    if (name == "posix" || name == "right") each.disable_recursion_pending();
    if (!each->is_regular_file()) continue;
    std::ifstream in(each->path(), std::ios::binary);
    const std::string contents{std::istreambuf_iterator<char>(in), {}};
    if (!zone_offsets::is_file(contents)) continue;
    ++zones;
    CAPTURE(name);
    const zone_offsets zone(contents);
    const local_time_of expected(name);
    int changes = 0;
    // Before the first change that it lists, the C library takes another offset than RFC 9636 says.
    for (sys_seconds t = at("1890-01-01 00:00:00"); t < at("2100-01-01 00:00:00");) {
      const constant_offset period = zone.at(t);
      REQUIRE(period.begin <= t);
      REQUIRE(period.end > t);
      const sys_seconds end = std::min(period.end, at("2100-01-01 00:00:00"));
      for (const sys_seconds inside : {t, t + (end - t) / 2, end - seconds(1)}) {
        CAPTURE(text(wall_time(inside)));
        REQUIRE(period.offset == expected.offset(inside));
      }
      t = end;
      ++changes;
    }
    REQUIRE(changes < 1000);
  }
  CHECK(zones > 300);
}

TEST_CASE("the rule at the end of a file holds after the changes that it lists") {
  const zone_file berlin{.types = {0, 3600, 7200},
                         .changes = {{at("2026-04-12 01:00:00").time_since_epoch().count(), 2}},
                         .rule = "CET-1CEST,M3.5.0,M10.5.0/3"};
  const zone_offsets zone(berlin.bytes());
  CHECK(offset(zone, "2026-04-12 00:59:59") == 0);
  CHECK(offset(zone, "2026-04-12 01:00:00") == 120);
  CHECK(zone.at(at("2026-05-01 00:00:00")).begin == at("2026-04-12 01:00:00"));
  CHECK(zone.at(at("2026-05-01 00:00:00")).end == at("2026-10-25 01:00:00"));
  CHECK(offset(zone, "2126-07-01 00:00:00") == 120);
  CHECK(offset(zone, "2126-12-01 00:00:00") == 60);
}

TEST_CASE("rules count days in three ways, with times before and after the day") {
  const zone_offsets nuuk = with_rule("<-02>2<-01>,M3.5.0/-1,M10.5.0/0");
  CHECK(offset(nuuk, "2027-03-28 00:59:59") == -120);
  CHECK(offset(nuuk, "2027-03-28 01:00:00") == -60);
  CHECK(offset(nuuk, "2027-10-31 00:59:59") == -60);
  CHECK(offset(nuuk, "2027-10-31 01:00:00") == -120);
  // The second Sunday in March, and a time two days after the last Thursday in October.
  const zone_offsets late = with_rule("AAA0BBB-0:30,M3.2.0/0,M10.5.4/50:30:15");
  CHECK(zone_offsets(late).at(at("2027-06-01 00:00:00")).begin == at("2027-03-14 00:00:00"));
  CHECK(zone_offsets(late).at(at("2027-06-01 00:00:00")).end == at("2027-10-30 02:00:15"));
  // J60 is 1 March in each year, 59 only in a common one.
  const zone_offsets julian = with_rule("AAA0BBB,J60/0,J300/0");
  CHECK(julian.at(at("2027-06-01 00:00:00")).begin == at("2027-03-01 00:00:00"));
  CHECK(julian.at(at("2028-06-01 00:00:00")).begin == at("2028-03-01 00:00:00"));
  CHECK(julian.at(at("2028-02-01 00:00:00")).end == at("2028-03-01 00:00:00"));
  const zone_offsets counted = with_rule("AAA0BBB,59/0,299/0");
  CHECK(counted.at(at("2027-06-01 00:00:00")).begin == at("2027-03-01 00:00:00"));
  CHECK(counted.at(at("2028-06-01 00:00:00")).begin == at("2028-02-29 00:00:00"));
  // South of the equator, the year begins in summer.
  const zone_offsets south = with_rule("<-04>4<-03>,M9.1.6/24,M4.1.6/24");
  CHECK(offset(south, "2027-01-01 00:00:00") == -180);
  CHECK(south.at(at("2027-01-01 00:00:00")).begin == at("2026-09-06 04:00:00"));
  CHECK(south.at(at("2027-01-01 00:00:00")).end == at("2027-04-04 03:00:00"));
}

TEST_CASE("a summer may last the whole year") {
  const zone_offsets zone = with_rule("XXX3EDT4,0/0,J365/23");
  for (const char* t :
       {"2026-12-31 23:59:59", "2027-01-01 00:00:00", "2027-01-01 04:30:00", "2027-07-01 00:00:00"}) {
    CAPTURE(t);
    CHECK(offset(zone, t) == -240);
  }
}

TEST_CASE("a summer that begins and ends by the times of one year may do both in the next") {
  // The times of 2026 are an hour less than seven days after 30 and 26 December.
  const zone_offsets zone = with_rule("AAA0BBB,J364/167,J360/167");
  const constant_offset summer = zone.at(at("2027-01-01 12:00:00"));
  CHECK(summer.offset == std::chrono::hours(1));
  CHECK(summer.begin == at("2026-01-05 23:00:00"));
  CHECK(summer.end == at("2027-01-01 22:00:00"));
  CHECK(offset(zone, "2027-01-03 12:00:00") == 0);
}

TEST_CASE("a file of the first version has 32 bits for a time, and no rule") {
  const zone_offsets zone(
      zone_file{.types = {-3600, 3600}, .changes = {{-1, 1}, {1'000'000'000, 0}}, .version = '\0'}.bytes());
  CHECK(zone.at(sys_seconds(seconds(-2))).offset == seconds(-3600));
  CHECK(zone.at(sys_seconds(seconds(-1))).offset == seconds(3600));
  CHECK(zone.at(sys_seconds(seconds(2'000'000'000))).offset == seconds(-3600));
}

TEST_CASE("files that cannot be right are refused") {
  CHECK(refused("") == "ends too early");
  CHECK(refused("# version 2026f") == "is not one of a zone");
  CHECK(refused(zone_file{.leap_seconds = 1}.bytes()) == "counts leap seconds");
  CHECK(refused(zone_file{.types = {}}.bytes()) == "has no offset of a zone");
  CHECK(refused(zone_file{.types = {48 * 3600}}.bytes()) == "has no offset of a zone");
  CHECK(refused(zone_file{.changes = {{5, 1}}}.bytes()) == "has changes in disorder");
  CHECK(refused(zone_file{.changes = {{5, 0}, {5, 0}}}.bytes()) == "has changes in disorder");
  for (const char* rule :
       {"C0", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,M10.5.0,",
        "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J5", "CET-1CEST,0,366", "CET-1CEST,0/168,5", "CET1:60", "<CET0", "CET0 "}) {
    CAPTURE(rule);
    CHECK(refused(zone_file{.rule = rule}.bytes()) == "ends with a rule that is none of POSIX");
  }
  CHECK(refused(zone_file{.rule = ""}.bytes()) == "accepted");
}

TEST_CASE("damaged files are refused or read, whatever the damage") {
  const std::string whole = zone_file{.types = {0, 3600},
                                      .changes = {{-5'000'000'000, 1}, {5, 0}, {7, 1}},
                                      .rule = "CET-1CEST,M3.5.0,M10.5.0/3"}
                                .bytes();
  CHECK(refused(whole) == "accepted");
  for (std::size_t size = 0; size != whole.size(); ++size) {
    CAPTURE(size);
    CHECK(refused(whole.substr(0, size)) != "accepted");
  }
  splitmix64 random(20261128);
  for (int i = 0; i != 4'000; ++i) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    if (refused(damaged) != "accepted") continue;
    const zone_offsets zone(damaged);
    for (sys_seconds t = at("1970-01-01 00:00:00"); t < at("1975-01-01 00:00:00");) {
      const constant_offset period = zone.at(t);
      REQUIRE(period.begin <= t);
      REQUIRE(period.end > t);
      const auto local = std::chrono::local_seconds((t + period.offset).time_since_epoch());
      REQUIRE(zone.first_reaching(local).begin <= t);
      t = std::min(period.end, t + std::chrono::days(100));
    }
  }
}

}  // namespace calendar_zone_offsets
