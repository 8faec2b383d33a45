// The package catalogue: Debian's control format (man deb822), read into single fields.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace cache_refresh {

// One field of one package, for example "adduser:all/Version" and "3.134".
struct field {
  std::string key;
  std::string value;
};

// Returns every field of every record, in the order of the file. Throws std::runtime_error, with the position, if the
// input is not such a catalogue.
std::vector<field> read_catalogue(const std::filesystem::path& file);
std::vector<field> read_catalogue(std::istream& in, const std::string& name);

}  // namespace cache_refresh
