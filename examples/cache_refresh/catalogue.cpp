#include "catalogue.hpp"

#include <fmt/core.h>

#include <fstream>
#include <optional>
#include <stdexcept>

namespace cache_refresh {
namespace {

// Reads line by line. An empty line ends a record; a line that starts with a blank continues a field.
class catalogue_reader {
 public:
  explicit catalogue_reader(const std::string& name) : name_(name) {}

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

  const std::string& name_;
  std::size_t line_number_ = 0;
  std::vector<field> record_;
  std::vector<field> all_;
};

}  // namespace

std::vector<field> read_catalogue(std::istream& in, const std::string& name) {
  catalogue_reader reader(name);
  for (std::string line; std::getline(in, line);) reader.take(line);
  if (in.bad()) throw std::runtime_error(fmt::format("{}: could not be read completely", name));
  return reader.finish();
}

std::vector<field> read_catalogue(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be opened for reading", file.string()));
  return read_catalogue(in, file.string());
}

}  // namespace cache_refresh
