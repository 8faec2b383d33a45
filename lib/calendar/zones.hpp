// Time zones by name, in the system's database.
#pragma once

#include <istream>
#include <string>

namespace date {
class time_zone;
}

namespace rondo::detail {

/// Loads everything that get_info() will need. Throws as daily() does.
const date::time_zone* find_zone(const std::string& name);

/// Returns the name that has replaced an old one, as the database's text, tzdata.zi, says. Returns an empty string if the
/// text does not say so.
std::string newer_name(std::istream& text, const std::string& old);

}  // namespace rondo::detail
