// Time zones by name, in the system's database.
#pragma once

#include <istream>
#include <string>

namespace date {
class time_zone;
}

namespace rondo::detail {

/// Loads everything that get_info() will need. Returns null for "UTC". Throws as daily() does.
const date::time_zone* find_zone(const std::string& name);

/// Returns the name that has replaced an old one, as the database's text, tzdata.zi, says. Returns an empty string if the
/// text does not say so.
std::string newer_name(std::istream& text, const std::string& old);

/// The version that the database's text says in its first line; empty if that says none.
std::string version_in(std::istream& text);

/// The zone that a value of the environment variable TZ names. Throws std::runtime_error if it names none.
std::string zone_in(const std::string& tz);

}  // namespace rondo::detail
