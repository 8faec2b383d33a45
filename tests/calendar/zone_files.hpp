// Zone data that tests write themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <rondo/calendar.hpp>

namespace calendar_test {

/// A file of the format TZif, of which tests may change each part.
struct zone_file {
  struct change {
    std::int64_t at;  // in seconds since 1970
    unsigned char type;
  };
  std::vector<std::int32_t> types = {0};  // their offsets, in seconds
  std::vector<change> changes = {};
  std::string rule = "UTC0";
  char version = '2';
  std::uint32_t leap_seconds = 0;

  std::string bytes() const {
    const std::string old = part(4);
    return version == '\0' ? old : old + part(8) + '\n' + rule + '\n';
  }

 private:
  static std::string number(std::uint64_t value, int size) {
    std::string result;
    for (int i = size; i-- != 0;) result += static_cast<char>(value >> 8 * i & 0xff);
    return result;
  }

  std::string part(int time_size) const {
    std::string result = "TZif";
    result += version;
    result.append(15, '\0');
    for (const std::size_t count : {std::size_t{0}, std::size_t{0}, std::size_t{leap_seconds}, changes.size(),
                                    types.size(), std::size_t{4}})
      result += number(count, 4);
    for (const change& c : changes) result += number(static_cast<std::uint64_t>(c.at), time_size);
    for (const change& c : changes) result += static_cast<char>(c.type);
    for (const std::int32_t offset : types)
      result += number(static_cast<std::uint32_t>(offset), 4) + std::string(2, '\0');
    result.append("XYZ", 4);
    result.append(leap_seconds * static_cast<std::size_t>(time_size + 4), '\0');
    return result;
  }
};

/// As long as it lives, this process has the zone data of a folder in place of the system's.
class zone_folder {
 public:
  zone_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rondo_zones_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("there is no temporary folder");
    path_ = name;
    add("Test/Other", "UTC0");
    ::setenv("TZDIR", path_.c_str(), 1);
    rondo::zone_data_version();  // a request, so that refreshing changes something
    rondo::refresh_zone_data();
  }
  zone_folder(const zone_folder&) = delete;
  zone_folder& operator=(const zone_folder&) = delete;
  ~zone_folder() {
    ::unsetenv("TZDIR");
    rondo::refresh_zone_data();
    std::filesystem::remove_all(path_);
  }

  const std::filesystem::path& path() const { return path_; }
  /// Adds or replaces a zone that has this rule at all times.
  void add(const std::string& name, const std::string& rule) { write(name, zone_file{.rule = rule}.bytes()); }
  void remove(const std::string& name) { std::filesystem::remove(path_ / name); }
  void write(const std::string& name, const std::string& contents) {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << contents;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace calendar_test
