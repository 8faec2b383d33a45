#include "calendar/zones.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <date/tz.h>

#include "calendar/rule.hpp"

namespace rondo::detail {

namespace {

[[noreturn]] void refuse_data(const std::string& why) {
  throw std::runtime_error("rondo: the time zone database " + why + " (Debian has it in the package tzdata)");
}

constexpr const char* database_text = "/usr/share/zoneinfo/tzdata.zi";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

[[noreturn]] void refuse_zone(const std::string& name) {
  std::string message = "rondo: the time zone " + quoted_text(name) + " is unknown";
  std::ifstream text(database_text);
  const std::string newer = newer_name(text, name);
  if (!newer.empty())
    message += "; it is an old name of " + quoted_text(newer) +
               ", which Debian has in the package tzdata-legacy, since Debian 13";
  throw std::invalid_argument(message);
}

}  // namespace

std::string newer_name(std::istream& text, const std::string& old) {
  // Lines such as "L Europe/London GB" are links. The text lists all of them, also those whose files are elsewhere.
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string kind;
    std::string newer;
    std::string name;
    if (words >> kind >> newer >> name && kind == "L" && name == old) return newer;
  }
  return "";
}

const date::time_zone* find_zone(const std::string& name) {
  if (name == "UTC") return nullptr;
  bool empty = false;
  try {
    empty = date::get_tzdb().zones.empty();
  } catch (const std::runtime_error& e) {
    refuse_data("cannot be read: " + first_line(e.what()));
  }
  if (empty) refuse_data("is empty");
  const date::time_zone* zone = nullptr;
  try {
    zone = date::locate_zone(name);
  } catch (const std::runtime_error&) {
    refuse_zone(name);
  }
  try {
    static_cast<void>(zone->get_info(date::sys_seconds{}));  // reads the zone's file
  } catch (const std::runtime_error& e) {
    throw std::runtime_error("rondo: the time zone " + quoted_text(name) +
                             " cannot be read: " + first_line(e.what()));
  }
  return zone;
}

std::string version_in(std::istream& text) {
  std::string hash;
  std::string word;
  std::string version;
  const bool says = static_cast<bool>(text >> hash >> word >> version) && hash == "#" && word == "version";
  return says ? version : "";
}

std::string zone_in(const std::string& tz) {
  std::string name = tz.starts_with(':') ? tz.substr(1) : tz;
  constexpr std::string_view folder = "/zoneinfo/";
  if (const auto at = name.rfind(folder); at != std::string::npos) name.erase(0, at + folder.size());
  if (name.empty()) return "UTC";
  try {
    find_zone(name);
  } catch (const std::invalid_argument&) {
    throw std::runtime_error("rondo: the environment variable TZ is " + quoted_text(tz) +
                             ", which is no zone of the database");
  }
  return name;
}

}  // namespace rondo::detail

namespace rondo {

std::string current_zone() {
  const char* const tz = std::getenv("TZ");  // NOLINT(concurrency-mt-unsafe): the header says so
  constexpr std::string_view usual = "/etc/localtime";
  if (tz != nullptr && tz != usual && tz != ':' + std::string(usual)) return detail::zone_in(tz);
  try {
    return date::current_zone()->name();
  } catch (const std::runtime_error& e) {
    throw std::runtime_error("rondo: the time zone of this machine is unknown: " +
                             detail::first_line(e.what()));
  }
}

std::string zone_data_version() {
  std::ifstream text(detail::database_text);
  return detail::version_in(text);
}

}  // namespace rondo
