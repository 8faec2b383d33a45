#include "report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "chart.hpp"

namespace measure {

namespace {

/// A contender that has run longer than this in total, warm-up included, needs only `enough` repetitions.
constexpr auto patience = std::chrono::seconds(1);
constexpr int enough = 3;

/// One contender's repetitions.
struct course {
  std::vector<double> values;
  std::uint64_t checksum = 0;
  clock::duration spent{};

  bool done(int repetitions) const {
    const auto runs = static_cast<int>(values.size());
    return runs >= repetitions || (runs >= enough && spent > patience);
  }

  void run(const contender& c, bool warming_up) {
    const auto start = now();
    const sample s = c.run();
    spent += now() - start;
    checksum = s.checksum;
    if (!warming_up) values.push_back(s.value);
  }

  row summary(const std::string& name) {
    std::sort(values.begin(), values.end());
    const double median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
    return {name, median, values.front(), values.back(), static_cast<int>(values.size())};
  }
};

/// Width on the terminal: counts the UTF-8 bytes that begin a character.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void print(const table& t) {
  std::printf("\n%s, %s\n", t.workload.c_str(), t.unit.c_str());
  if (t.compared)
    std::printf("  %-36s %10s %10s %10s %10s %5s\n", "", "median", "ratio", "min", "max", "runs");
  for (const row& r : t.rows) {
    const std::string gap(36 - std::min<std::size_t>(36, width(r.name)), ' ');
    std::printf("  %s%s %10.2f", r.name.c_str(), gap.c_str(), r.median);
    if (t.compared) std::printf(" %8.2f x %10.2f %10.2f %5d", t.ratio(r), r.min, r.max, r.repetitions);
    std::printf("\n");
  }
  std::fflush(stdout);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

report::report(options o) : options_(std::move(o)), environment_(this_environment()) {
  std::printf("%s\n%s, %s\n", environment_.machine.c_str(), environment_.compiler.c_str(),
              environment_.optimisation.c_str());
}

void report::compare(const std::string& workload, const std::string& unit,
                     std::vector<contender> contenders) {
  std::erase_if(contenders, [this](const contender& c) { return !takes_part(c.name); });
  if (!wanted(workload) || contenders.empty()) return;
  std::vector<course> courses(contenders.size());
  for (int repetition = options_.small ? 0 : -1; repetition != options_.repetitions; ++repetition) {
    for (std::size_t i = 0; i != contenders.size(); ++i)
      if (!courses[i].done(options_.repetitions)) courses[i].run(contenders[i], repetition < 0);
  }
  table results{.workload = workload, .unit = unit, .rows = {}};
  for (std::size_t i = 0; i != contenders.size(); ++i)
    results.rows.push_back(courses[i].summary(contenders[i].name));
  add(std::move(results));
  for (std::size_t i = 0; i != contenders.size(); ++i) {
    if (courses[i].checksum == courses[0].checksum) continue;
    std::printf("  The checksum of %s differs: it did different work.\n", contenders[i].name.c_str());
    right_ = false;
  }
}

void report::add(table t) {
  print(t);
  tables_.push_back(std::move(t));
}

int report::finish() const {
  bool written = true;
  if (!options_.json.empty()) written &= write_json();
  if (!options_.svg.empty()) {
    std::filesystem::create_directories(options_.svg);
    for (const table& t : tables_) written &= write_chart(t, options_.svg);
  }
  if (!written) std::fprintf(stderr, "Some files could not be written.\n");
  return right_ && written ? 0 : 1;
}

bool report::write_json() const {
  std::ofstream out(options_.json);
  out << "{\n  \"machine\": " << quoted(environment_.machine)
      << ",\n  \"compiler\": " << quoted(environment_.compiler)
      << ",\n  \"optimisation\": " << quoted(environment_.optimisation) << ",\n  \"workloads\": [";
  for (const table& t : tables_) {
    out << (&t == &tables_.front() ? "\n" : ",\n") << "    {\"name\": " << quoted(t.workload)
        << ", \"unit\": " << quoted(t.unit) << ", \"rows\": [";
    for (const row& r : t.rows) {
      out << (&r == &t.rows.front() ? "\n" : ",\n") << "      {\"name\": " << quoted(r.name)
          << ", \"median\": " << r.median << ", \"min\": " << r.min << ", \"max\": " << r.max
          << ", \"repetitions\": " << r.repetitions;
      if (t.compared) out << ", \"ratio\": " << t.ratio(r);
      out << '}';
    }
    out << "\n    ]}";
  }
  out << "\n  ]\n}\n";
  return out.flush().good();
}

}  // namespace measure
