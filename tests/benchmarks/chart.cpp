#include "chart.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace measure {

namespace {

constexpr int names_end = 250;  // where the names end and the bars begin
constexpr int longest_bar = 330;
constexpr int picture_width = 760;
constexpr int header = 56;
constexpr int row_height = 24;
constexpr double widest_linear_range = 30;  // beyond it the scale is logarithmic

/// The file's name: keeps letters and digits, and replaces each run of other characters by a dash.
std::string slug(const std::string& workload) {
  std::string result;
  for (const char c : workload) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  if (!result.empty() && result.back() == '-') result.pop_back();
  return result;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else
      result += c;
  }
  return result;
}

/// Three significant digits, as more mean nothing.
std::string readable(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

/// Converts values to lengths of bars.
class scale {
 public:
  explicit scale(const table& t) {
    const auto [low, high] = std::minmax_element(
        t.rows.begin(), t.rows.end(), [](const row& a, const row& b) { return a.median < b.median; });
    logarithmic_ = low->median > 0 && high->median > widest_linear_range * low->median;
    // Starts at a power of ten below the smallest value, so that its bar has a length.
    zero_ = logarithmic_ ? std::floor(std::log10(low->median) - 0.3) : 0;
    end_ = logarithmic_ ? std::log10(high->median) : high->median;
  }

  bool logarithmic() const { return logarithmic_; }

  double length(double value) const {
    if (end_ <= zero_) return 0;
    const double place = logarithmic_ ? std::log10(value) : value;
    return std::clamp((place - zero_) / (end_ - zero_), 0.0, 1.0) * longest_bar;
  }

  /// The powers of ten on the scale.
  std::vector<double> marks() const {
    std::vector<double> result;
    for (double power = zero_; logarithmic_ && power <= end_; ++power) result.push_back(std::pow(10, power));
    return result;
  }

 private:
  bool logarithmic_;
  double zero_;
  double end_;
};

void draw_row(std::ostream& out, const table& t, const row& r, const scale& lengths, int y) {
  const bool ours = &r == &t.rows.front();
  const double end = names_end + lengths.length(r.median);
  out << "<text x=\"" << names_end - 8 << "\" y=\"" << y + 16 << "\" text-anchor=\"end\""
      << (ours ? " font-weight=\"bold\"" : "") << '>' << escaped(r.name) << "</text>\n"
      << "<rect x=\"" << names_end << "\" y=\"" << y + 4 << "\" width=\"" << end - names_end
      << "\" height=\"16\" rx=\"2\" fill=\"" << (ours ? "#e8710a" : "#6b8fb5") << "\"/>\n"
      << "<text x=\"" << end + 6 << "\" y=\"" << y + 16 << "\">" << readable(r.median);
  if (t.compared && !ours) out << "  (" << readable(t.ratio(r)) << " ×)";
  out << "</text>\n";
}

}  // namespace

bool write_chart(const table& t, const std::string& folder) {
  const scale lengths(t);
  const int bottom = header + row_height * static_cast<int>(t.rows.size());
  std::ofstream out(folder + '/' + slug(t.workload) + ".svg");
  // One grey for both light and dark pages: in an <img>, the page's colour is unknown.
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << picture_width << ' ' << bottom + 22
      << "\" width=\"" << picture_width
      << "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#808080\">\n"
      << "<text x=\"12\" y=\"22\" font-size=\"15\" font-weight=\"bold\">" << escaped(t.workload)
      << "</text>\n"
      << "<text x=\"12\" y=\"42\">" << escaped(t.unit) << (t.compared ? ", less is better" : "")
      << (lengths.logarithmic() ? ", logarithmic scale" : "") << "</text>\n";
  for (const double mark : lengths.marks()) {
    const double x = names_end + lengths.length(mark);
    out << "<line x1=\"" << x << "\" x2=\"" << x << "\" y1=\"" << header << "\" y2=\"" << bottom
        << "\" stroke=\"#808080\" stroke-opacity=\"0.35\"/>\n"
        << "<text x=\"" << x << "\" y=\"" << bottom + 14 << "\" font-size=\"11\" text-anchor=\"middle\">"
        << mark << "</text>\n";
  }
  int y = header;
  for (const row& r : t.rows) {
    draw_row(out, t, r, lengths, y);
    y += row_height;
  }
  out << "</svg>\n";
  return out.flush().good();
}

}  // namespace measure
