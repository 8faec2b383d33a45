#include "command_line.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace common {

std::filesystem::path cached(const std::string& file) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  std::filesystem::path folder = variable("XDG_CACHE_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") / ".cache";
  if (folder.empty()) folder = "/tmp";
  return folder / "rondo" / file;
}

void make_folder_of(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
}

std::optional<int> read(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& bad) {
    fmt::print(stderr, "{}: {} (--help explains the options)\n", app.get_name(), bad.what());
    return 2;
  }
  return std::nullopt;
}

}  // namespace common
