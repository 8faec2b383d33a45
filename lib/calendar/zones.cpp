#include "calendar/zones.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <date/tz.h>

#include "calendar/rule.hpp"

namespace rondo::detail {

namespace {

[[noreturn]] void refuse_data(const std::string& why) {
  throw std::runtime_error("rondo: the time zone database " + why + " (Debian has it in the package tzdata)");
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

[[noreturn]] void refuse_zone(const std::string& name) {
  std::string message = "rondo: the time zone " + quoted_text(name) + " is unknown";
  std::ifstream text("/usr/share/zoneinfo/tzdata.zi");
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

}  // namespace rondo::detail
