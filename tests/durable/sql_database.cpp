#include "durable/sql_database.hpp"

#include <sstream>
#include <stdexcept>

namespace durable_test {

namespace {

constexpr const char* none = "-";

std::string decoded(const std::string& digits) {
  if (digits == none) return "";
  std::string bytes;
  for (std::size_t at = 0; at != digits.size(); at += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  return bytes;
}

std::optional<std::int64_t> number(const std::string& digits) {
  return digits == none ? std::nullopt : std::optional<std::int64_t>(std::stoll(digits));
}

row_state state_of(const std::string& code) {
  switch (std::stoi(code)) {
    case 1:
      return row_state::held;
    case 2:
      return row_state::running;
    case 3:
      return row_state::dead;
    case 4:
      return row_state::cancelled;
    default:  // 0, 5, 6
      return row_state::waiting;
  }
}

row row_of(std::istream& words) {
  const auto next = [&] {
    std::string word;
    if (!(words >> word)) throw std::logic_error("a row of rondo_task has too few columns");
    return word;
  };
  const auto integer = [&] { return number(next()).value_or(0); };
  row r;  // in the order of the columns that rows() asks for
  r.id = integer();
  r.state = state_of(next());
  r.attempt = static_cast<int>(integer());
  r.max_attempts = static_cast<int>(integer());
  r.fence = integer();
  r.missed = static_cast<rondo::durable::missed_points>(integer());
  for (std::string* text : {&r.queue, &r.key, &r.lane, &r.owner, &r.reason, &r.schedule, &r.payload})
    *text = decoded(next());
  r.due = integer();
  r.place = number(next());
  r.lease_until = number(next());
  r.point = number(next());
  r.point_offset = number(next());
  return r;
}

}  // namespace

std::vector<row> sql_database::rows() {
  const dialect d = speaks();
  std::string columns;
  const auto add = [&](const std::string& expression) {
    if (!columns.empty()) columns += " || ' ' || ";
    columns += "coalesce(nullif(" + expression + ", ''), '-')";
  };
  for (const char* number : {"id", "state", "attempt", "max_attempts", "fence", "missed"})
    add("cast(" + std::string(number) + " as text)");
  for (const char* text : {"queue", "key", "lane", "owner", "reason", "schedule"})
    add(d.text_begin + text + d.text_end);
  add(d.bytes_begin +
      "case payload_apart when 0 then inline_payload"
      " else (select payload from rondo_payload where rondo_payload.id = rondo_task.id) end" +
      d.bytes_end);
  for (const char* time : {"due", "place", "lease_until", "point"}) add(d.time_begin + time + d.time_end);
  add("cast(point_offset as text)");
  std::istringstream lines(ask("select " + d.list + "(line, " + d.line_feed + ") from (select " + columns +
                               " as line from rondo_task order by id) as lines"));
  std::vector<row> all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    all.push_back(row_of(words));
  }
  return all;
}

std::vector<std::string> sql_database::owners() {
  const dialect d = speaks();
  std::istringstream lines(ask("select " + d.list + "(name, " + d.line_feed + ") from rondo_owner"));
  std::vector<std::string> all;
  for (std::string name; std::getline(lines, name);) all.push_back(name);
  return all;
}

std::string sql_database::wrong() {
  std::string all;
  const auto check = [&](const char* what, const std::string& of) {
    if (const std::string count = ask("select count(*) from " + of); count != "0")
      all += count + ' ' + what + "; ";
  };
  check(
      "tasks are set aside, but nothing of their lanes is in front of them or runs",
      "rondo_task t where state = 6 and not exists (select 1 from rondo_task o where o.queue = t.queue"
      " and o.lane = t.lane and o.state <> 3 and (o.state in (2, 4) or (o.place, o.id) < (t.place, t.id)))");
  check("tasks of lanes wait as if they had none, or have no place",
        "rondo_task where lane is not null and state <> 3 and (state = 0 or place is null)");
  check("tasks that do not run have another lane for the time after their runs",
        "rondo_task where next_lane is not null and state not in (2, 4)");
  check("dead tasks have places", "rondo_task where state = 3 and place is not null");
  check("tasks without a lane wait as if they had one", "rondo_task where lane is null and state in (5, 6)");
  check("payloads have no task, or one with another payload",
        "rondo_payload p where not exists (select 1 from rondo_task t where t.id = p.id"
        " and t.payload_apart = length(p.payload))");
  return all;
}

}  // namespace durable_test
