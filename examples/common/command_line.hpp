// What the command lines of the examples have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

namespace common {

// The path of `file` in the user's cache folder. Creates nothing.
std::filesystem::path cached(const std::string& file);

// Creates the folder of a default file. If that fails, opening the file reports it.
void make_folder_of(const std::filesystem::path& file);

// Reads the arguments. If there is nothing to run, returns the exit status: 0 after --help, 2 after a bad option, which
// it has reported.
std::optional<int> read(CLI::App&, int argc, char** argv);

}  // namespace common
