// The rows of a new database, from a package catalogue: Debian's control format (man deb822), read into single fields.
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include <fmt/core.h>

#include "parts.hpp"

namespace cache_refresh {
namespace {

// One field of one package, for example "adduser:all/Version" and "3.134".
struct field {
  std::string key;
  std::string value;
};

// Reads line by line. An empty line ends a record; a line that starts with a blank continues a field.
class catalogue_reader {
 public:
  explicit catalogue_reader(std::string name) : name_(std::move(name)) {}

  void take(const std::string& line) {
    ++line_number_;
    if (line.empty()) {
      end_record();
    } else if (line.front() == ' ' || line.front() == '\t') {
      continue_field(line);
    } else {
      start_field(line);
    }
  }

  std::vector<field> finish() {
    end_record();
    if (all_.empty()) throw std::runtime_error(fmt::format("{}: contains no package records", name_));
    return std::move(all_);
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", name_, line_number_, what));
  }

  void start_field(const std::string& line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0)
      fail("is not a \"Name: value\" line of a package catalogue");
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    record_.push_back({line.substr(0, colon), value == std::string::npos ? "" : line.substr(value)});
  }

  void continue_field(const std::string& line) {
    if (record_.empty()) fail("continues a field, but no field precedes it");
    record_.back().value.append("\n").append(line, 1);
  }

  // Fields get their full names only here, because Architecture may be anywhere in the record.
  void end_record() {
    if (record_.empty()) return;
    const auto package = value_of("Package");
    if (!package) fail("the record that ends here has no Package field");
    const auto architecture = value_of("Architecture");
    const std::string prefix = architecture ? *package + ":" + *architecture + "/" : *package + "/";
    for (field& each : record_) all_.push_back({prefix + each.key, std::move(each.value)});
    record_.clear();
  }

  std::optional<std::string> value_of(const char* field_name) const {
    for (const field& each : record_) {
      if (each.key == field_name) return each.value;
    }
    return std::nullopt;
  }

  const std::string name_;
  std::size_t line_number_ = 0;
  std::vector<field> record_;
  std::vector<field> all_;
};

// Returns every field of every record, in the order of the file. Throws std::runtime_error, with the position, if the
// input is not such a catalogue.
std::vector<field> read_catalogue(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be opened for reading", file.string()));
  catalogue_reader reader(file.string());
  for (std::string line; std::getline(in, line);) reader.take(line);
  if (in.bad()) throw std::runtime_error(fmt::format("{}: could not be read completely", file.string()));
  return reader.finish();
}

constexpr std::int64_t shortest_ttl_ms = 1000;
constexpr std::int64_t longest_ttl_ms = 8000;

std::vector<field> fields_of(const std::filesystem::path& catalogue) {
  if (catalogue.empty()) throw origin_error("is new, and there is no catalogue to fill it from");
  try {
    return read_catalogue(catalogue);
  } catch (const std::exception& bad) {
    throw origin_error(bad.what());
  }
}

}  // namespace

void make_rows(const origin_options& wanted, const std::function<void(const new_row&)>& add) {
  std::mt19937_64 random(wanted.seed);
  std::uniform_int_distribution<std::int64_t> ttl(shortest_ttl_ms, longest_ttl_ms);
  if (wanted.rows != 0) {
    for (std::size_t i = 1; i <= wanted.rows; ++i)
      add({fmt::format("item/{:07}", i), fmt::format("{:016x}", random()), ttl(random)});
    return;
  }
  // If a key occurs twice, as in a catalogue with several versions of a package, the first one counts.
  std::unordered_set<std::string> known;
  for (field& each : fields_of(wanted.catalogue)) {
    if (!known.insert(each.key).second) continue;
    add({std::move(each.key), std::move(each.value), ttl(random)});
  }
}

}  // namespace cache_refresh
