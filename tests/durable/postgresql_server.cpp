#include "durable/postgresql_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace durable_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto server_patience = 60s;
constexpr const char* prefix = "rondo-postgresql-";

/// The role that the URLs name, and the one that has each odd setting.
constexpr const char* usual_role = "//rondo@";
constexpr const char* odd_role = "//odd@";

/// The settings of the odd role, which those of our transactions must outdo, or which must not matter.
constexpr std::pair<const char*, const char*> odd_settings[] = {
    {"default_transaction_isolation", "serializable"},
    {"default_transaction_read_only", "on"},
    {"default_transaction_deferrable", "on"},
    {"synchronous_commit", "off"},
    {"array_nulls", "off"},
    {"transform_null_equals", "on"},
    {"standard_conforming_strings", "off"},
    {"backslash_quote", "off"},
    {"quote_all_identifiers", "on"},
    {"bytea_output", "escape"},
    {"client_encoding", "latin1"},
    {"extra_float_digits", "-15"},
    {"datestyle", "SQL, DMY"},
    {"intervalstyle", "sql_standard"},
    {"timezone", "America/St_Johns"},
    {"lc_numeric", "C"},
    {"client_min_messages", "debug1"},
    {"check_function_bodies", "off"},
    {"row_security", "off"},
    {"plpgsql.variable_conflict", "use_variable"},
    {"plan_cache_mode", "force_custom_plan"},
    {"constraint_exclusion", "on"},
    {"join_collapse_limit", "1"},
    {"from_collapse_limit", "1"},
    {"geqo_threshold", "2"},
    {"enable_nestloop", "off"},
    {"enable_indexscan", "off"},
    {"enable_indexonlyscan", "off"},
    {"enable_sort", "off"},
    {"enable_material", "off"},
    {"jit", "on"},
    {"jit_above_cost", "0"},
    {"work_mem", "64kB"},
    {"statement_timeout", "60s"},
    {"lock_timeout", "20s"},
    {"idle_in_transaction_session_timeout", "20s"},
    {"transaction_timeout", "60s"},  // since 17
};

/// Searches folders, because Debian keeps the server's programs out of the PATH.
std::string find_programs() {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ignored))
    folders.push_back(version.path() / "bin");
  std::sort(folders.rbegin(), folders.rend());
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  for (std::size_t end = 0; end != std::string::npos; rest.erase(0, end + 1)) {
    end = rest.find(':');
    folders.emplace_back(rest.substr(0, end));
    if (end == std::string::npos) break;
  }
  for (const auto& folder : folders)
    if (fs::exists(folder / "initdb", ignored) && fs::exists(folder / "postgres", ignored))
      return folder.string();
  return "";
}

/// Removes the folders of killed test programs. Their names end with the process ids.
void remove_leftovers() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/tmp", ignored)) {
    const auto name = entry.path().filename().string();
    const auto number = name.rfind('-') + 1;
    pid_t owner = 0;
    if (!name.starts_with(prefix)) continue;
    std::from_chars(name.data() + number, name.data() + name.size(), owner);
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
}

int free_port() {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(s, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(s);
  if (!bound) throw std::runtime_error("no free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

/// Starts a process whose output goes to `log`. However this process ends, the other gets SIGQUIT, which stops a server
/// at once.
pid_t run_as(uid_t user, gid_t group, std::vector<std::string> words, const std::string& log) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  ::dup2(output, 1);
  ::dup2(output, 2);
  ::setpgid(0, 0);  // so that Ctrl-C reaches only the tests
  if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(group) != 0 || ::setuid(user) != 0))
    ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);  // after setuid(), which would reset it
  if (::getppid() != self) ::_exit(125);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

std::string name_in(const std::string& url) {
  const auto name = url.find("@/") + 2;
  return url.substr(name, url.find('?') - name);
}

int end_of(pid_t process) {
  int status = -1;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

postgresql_server* postgresql_server::get() {
  static const std::unique_ptr<postgresql_server> only = [] {
    auto programs = find_programs();
    if (programs.empty()) std::cout << "SKIP: PostgreSQL is not installed (Debian: postgresql)\n";
    return std::unique_ptr<postgresql_server>(programs.empty() ? nullptr
                                                               : new postgresql_server(std::move(programs)));
  }();
  return only.get();
}

postgresql_server::postgresql_server(std::string programs)
    : programs_(std::move(programs)), folder_(std::string("/tmp/") + prefix + std::to_string(::getpid())) {
  remove_leftovers();
  user_ = ::geteuid();
  group_ = ::getegid();
  if (user_ == 0) {
    const passwd* other = ::getpwnam("postgres");
    if (other == nullptr) other = ::getpwnam("nobody");
    if (other == nullptr) throw std::runtime_error("there is no user to run PostgreSQL as");
    user_ = other->pw_uid;
    group_ = other->pw_gid;
  }
  fs::create_directory(folder_);
  if (::geteuid() == 0 && ::chown(folder_.c_str(), user_, group_) != 0)
    throw std::runtime_error("chown " + folder_);
  port_ = free_port();
  make_cluster();
  start();
}

postgresql_server::~postgresql_server() {
  stop_pooler();
  if (process_ != 0) stop(how::immediate);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void postgresql_server::make_cluster() {
  const auto log = folder_ + "/initdb.log";
  const auto made = run_as(user_, group_,
                           {programs_ + "/initdb", "-D", folder_ + "/data", "-U", "rondo", "-A", "trust",
                            "-E", "UTF8", "--locale=C", "--no-sync"},
                           log);
  if (end_of(made) != 0) throw std::runtime_error("initdb failed: " + contents_of(log));
}

void postgresql_server::start() {
  const auto port = std::to_string(port_);
  const auto log = folder_ + "/server.log";
  process_ = run_as(user_, group_,
                    {programs_ + "/postgres", "-D", folder_ + "/data", "-k", folder_, "-p", port, "-c",
                     "listen_addresses=127.0.0.1", "-c", "shared_buffers=32MB", "-c", "max_connections=100"},
                    log);
  const auto late = std::chrono::steady_clock::now() + server_patience;
  while (PQping(url().c_str()) != PQPING_OK) {
    if (::waitpid(process_, nullptr, WNOHANG) == process_ || std::chrono::steady_clock::now() > late)
      throw std::runtime_error("PostgreSQL did not start: " + contents_of(log));
    std::this_thread::sleep_for(20ms);
  }
}

void postgresql_server::stop(how h) {
  ::kill(process_, h == how::fast ? SIGINT : SIGQUIT);
  end_of(std::exchange(process_, 0));
}

void postgresql_server::promote() {
  stop(how::fast);
  std::ofstream(folder_ + "/data/standby.signal").close();
  start();
  user_connection(url()).run("select pg_promote()");
}

std::string postgresql_server::url(const std::string& database) const {
  return "postgresql://" + role_ + "@/" + database + "?host=" + folder_ + "&port=" + std::to_string(port_);
}

std::string postgresql_server::by_tcp(const std::string& url, int port) {
  return "postgresql://rondo@127.0.0.1:" + std::to_string(port) + "/" + name_in(url);
}

std::string postgresql_server::by_pooler_of_transactions(const std::string& url_of_it) {
  constexpr const char* program = "/usr/sbin/pgbouncer";
  std::error_code ignored;
  if (!fs::exists(program, ignored)) return "";
  stop_pooler();
  start_pooler(program);
  return by_tcp(url_of_it, pooler_port_);
}

void postgresql_server::start_pooler(const std::string& program) {
  pooler_port_ = free_port();
  const auto configuration = folder_ + "/pooler.ini", log = folder_ + "/pooler.log";
  std::ofstream(configuration) << "[databases]\n* = host=" << folder_ << " port=" << port_
                               << " user=rondo\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "
                               << pooler_port_
                               << "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n";
  pooler_ = run_as(user_, group_, {program, configuration}, log);
  const auto late = std::chrono::steady_clock::now() + server_patience;
  while (PQping(by_tcp(url(), pooler_port_).c_str()) != PQPING_OK) {
    if (::waitpid(pooler_, nullptr, WNOHANG) == pooler_ || std::chrono::steady_clock::now() > late)
      throw std::runtime_error("PgBouncer did not start: " + contents_of(log));
    std::this_thread::sleep_for(20ms);
  }
}

void postgresql_server::stop_pooler() noexcept {
  if (pooler_ == 0) return;
  ::kill(pooler_, SIGTERM);
  end_of(std::exchange(pooler_, 0));
}

std::size_t postgresql_server::use_odd_settings() {
  user_connection by(url());
  by.run("create role odd login superuser; load 'plpgsql'");
  std::size_t count = 0;
  for (const auto& [name, value] : odd_settings) {
    if (by.run(std::string("select 1 from pg_settings where lower(name) = '") + name + "'").empty()) continue;
    const char* const quote = std::string_view(name) == "datestyle" ? "" : "'";  // that one is a list
    by.run(std::string("alter role odd set ") + name + " = " + quote + value + quote);
    ++count;
  }
  role_ = "odd";
  return count;
}

// Creating a database takes a quarter of a second, emptying one a tenth of that.
std::string postgresql_server::new_database() {
  if (!empty_.empty()) {
    auto url_of_it = std::move(empty_.back());
    empty_.pop_back();
    return url_of_it;
  }
  const auto name = "tests_" + std::to_string(++databases_);
  user_connection(url()).run("create database " + name);
  return url(name);
}

void postgresql_server::drop_database(const std::string& url_of_it) noexcept {
  try {
    user_connection(url_of_it).run(
        "drop schema public cascade; create schema public; grant usage on schema public to public;"
        "do $$ begin execute format('alter database %I reset all', current_database()); end $$");
    empty_.push_back(url_of_it);
  } catch (const std::exception&) {
    // The database goes with the server, when the tests end.
  }
}

user_connection::user_connection(const std::string& url) {
  std::string as_usual = url;
  const auto odd = as_usual.find(odd_role);
  if (odd != std::string::npos) as_usual.replace(odd, std::strlen(odd_role), usual_role);
  connection_.reset(PQconnectdb(as_usual.c_str()));
  PQsetNoticeProcessor(
      get(), [](void*, const char*) {}, nullptr);
}

std::string user_connection::run(const std::string& sql) {
  const std::unique_ptr<PGresult, void (*)(PGresult*)> answer(PQexec(get(), sql.c_str()), PQclear);
  const auto status = PQresultStatus(answer.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(sql + ": " + PQerrorMessage(get()));
  return PQntuples(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
}

}  // namespace durable_test
