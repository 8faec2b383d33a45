#include "calendar/zone_data.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <rondo/calendar.hpp>

#include "calendar/rule.hpp"
#include "calendar/step_listeners.hpp"

namespace rondo::detail {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_data(const std::string& why) {
  throw std::runtime_error("rondo: the time zone database " + why + " (Debian has it in the package tzdata)");
}

fs::path folder() {
  const char* const chosen = std::getenv("TZDIR");  // NOLINT(concurrency-mt-unsafe): the header says so
  return chosen != nullptr && *chosen != '\0' ? chosen : "/usr/share/zoneinfo";
}

fs::path text_of_database() { return folder() / "tzdata.zi"; }

/// Empty if the file cannot be read.
std::string contents(const fs::path& file) try {
  std::ifstream in(file, std::ios::binary);
  std::string result{std::istreambuf_iterator<char>(in), {}};
  return in ? result : "";
} catch (const std::ios_base::failure&) {  // thrown by libstdc++ where the system cannot read on
  return "";
}

/// The database, as it is in files.
struct zone_files {
  std::string version;
  std::map<std::string, std::string> by_zone;  // also empty ones, which cannot be read
};

/// Other files than those of zones are left out, unless they have taken the place of one in use.
zone_files read_files(const fs::path& from, const std::map<std::string, zone>& used) try {
  zone_files result;
  constexpr auto options = fs::directory_options::skip_permission_denied;
  for (auto each = fs::recursive_directory_iterator(from, options); each != fs::end(each); ++each) {
    const std::string name = each->path().lexically_relative(from).generic_string();
    // Copies of all zones, with and without leap seconds; and the machine's zone, which is no part of the data.
    if (name == "posix" || name == "right") each.disable_recursion_pending();
    std::error_code unknown;
    if (name == "localtime" || !each->is_regular_file(unknown)) continue;
    std::string file = contents(each->path());
    if (file.empty() || zone_offsets::is_file(file) || used.contains(name))
      result.by_zone.emplace(name, std::move(file));
  }
  std::ifstream text(text_of_database());
  result.version = version_in(text);
  const auto can_be_read = [](const auto& zone) { return !zone.second.empty(); };
  if (std::none_of(result.by_zone.begin(), result.by_zone.end(), can_be_read)) refuse_data("is empty");
  return result;
} catch (const fs::filesystem_error& e) {
  refuse_data("cannot be read: " + quoted_text(e.path1().string()) + ": " + e.code().message());
}

zone_offsets offsets_in(const std::string& file, const std::string& name) try {
  if (file.empty()) throw std::runtime_error("is empty or unreadable");
  return zone_offsets(file);
} catch (const std::runtime_error& e) {
  throw std::runtime_error("rondo: the time zone " + quoted_text(name) + " cannot be read: its file " +
                           e.what());
}

[[noreturn]] void refuse_zone(const std::string& name) {
  std::string message = "rondo: the time zone " + quoted_text(name) + " is unknown";
  std::ifstream text(text_of_database());
  const std::string newer = newer_name(text, name);
  if (!newer.empty())
    message += "; it is an old name of " + quoted_text(newer) +
               ", which Debian has in the package tzdata-legacy, since Debian 13";
  throw std::invalid_argument(message);
}

/// The state of the zone data that this process uses.
class zone_data {
 public:
  const zone& find(const std::string& name) {
    const std::lock_guard hold(mutex_);
    const auto file = files().by_zone.find(name);
    if (file == files().by_zone.end()) refuse_zone(name);
    const auto used = zones_.find(name);
    if (used != zones_.end()) return used->second;
    const zone_offsets& offsets = all_offsets_.emplace_back(offsets_in(file->second, name));
    return zones_.try_emplace(name, offsets).first->second;
  }

  std::string version() {
    const std::lock_guard hold(mutex_);
    return files().version;
  }

  /// Returns the number of an update that listeners are to be told of.
  std::optional<std::uint64_t> refresh() {
    const std::lock_guard hold(mutex_);
    if (files_.by_zone.empty()) return std::nullopt;  // the first request reads the newest
    zone_files now = read_files(folder(), zones_);
    if (now.by_zone == files_.by_zone) {
      files_.version = std::move(now.version);
      return told_ == updates_ ? std::nullopt : std::optional(updates_);
    }
    std::list<zone_offsets> read;
    std::vector<std::pair<zone*, const zone_offsets*>> changes;
    for (auto& [name, used] : zones_) {
      const auto file = now.by_zone.find(name);
      if (file == now.by_zone.end()) continue;
      const auto before = files_.by_zone.find(name);
      if (before != files_.by_zone.end() && before->second == file->second) continue;
      changes.emplace_back(&used, &read.emplace_back(offsets_in(file->second, name)));
    }
    for (const auto& [used, offsets] : changes) used->change(*offsets);
    all_offsets_.splice(all_offsets_.end(), read);
    files_ = std::move(now);
    return ++updates_;
  }

  void told(std::uint64_t update) {
    const std::lock_guard hold(mutex_);
    told_ = std::max(told_, update);
  }

 private:
  const zone_files& files() {
    if (files_.by_zone.empty()) files_ = read_files(folder(), zones_);
    return files_;
  }

  std::mutex mutex_;
  zone_files files_;
  std::map<std::string, zone> zones_;
  std::list<zone_offsets> all_offsets_;
  std::uint64_t updates_ = 0;
  std::uint64_t told_ = 0;  // the number of the last update that all listeners were told of
};

/// Never destroyed, because timers may end after static objects.
zone_data& data() {
  static auto& the_data = *new zone_data;
  return the_data;
}

step_listeners& listeners() {
  static auto& the_listeners = *new step_listeners;
  return the_listeners;
}

}  // namespace

const zone& utc() {
  static const zone& the_zone = *new zone(*new zone_offsets);  // never destroyed, as above
  return the_zone;
}

const zone& find_zone(const std::string& name) { return name == "UTC" ? utc() : data().find(name); }

std::shared_ptr<void> on_new_zone_data(std::function<void()> taken_over) {
  return listeners().add(std::move(taken_over));
}

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

std::string version_in(std::istream& text) {
  std::string hash;
  std::string word;
  std::string version;
  const bool says = static_cast<bool>(text >> hash >> word >> version) && hash == "#" && word == "version";
  return says ? version : "";
}

namespace {

/// The name of a zone in the path of its file, or the text as it is.
std::string name_in(const std::string& path) {
  constexpr std::string_view inside = "/zoneinfo/";
  const auto at = path.rfind(inside);
  return at == std::string::npos ? path : path.substr(at + inside.size());
}

}  // namespace

std::string zone_in(const std::string& tz) {
  std::string name = name_in(tz.starts_with(':') ? tz.substr(1) : tz);
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
  std::error_code none;
  const std::string target = std::filesystem::read_symlink(usual, none).string();
  std::string name = detail::name_in(target);
  if (name == target) {  // a copy, or nothing
    name.clear();
    std::ifstream("/etc/timezone") >> name;
  }
  if (name.empty())
    throw std::runtime_error(
        "rondo: the time zone of this machine is unknown: neither the link /etc/localtime nor the file "
        "/etc/timezone names one");
  return name;
}

std::string zone_data_version() { return detail::data().version(); }

bool refresh_zone_data() {
  const auto update = detail::data().refresh();
  if (!update) return false;
  detail::step_listeners::tell(detail::listeners().all());
  detail::data().told(*update);
  return true;
}

}  // namespace rondo
