#include "cache_refresh/nginx_server.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cache_refresh_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string find_program() {
  for (const char* const folder : {"/usr/sbin", "/usr/local/sbin", "/usr/local/nginx/sbin", "/usr/bin"}) {
    std::error_code none;
    if (const fs::path program = fs::path(folder) / "nginx"; fs::exists(program, none)) return program;
  }
  return "";
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int free_port() {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  const bool bound = ::bind(s, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(s);
  if (!bound) throw std::runtime_error("no free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

bool takes_connections(int port) {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool connected = ::connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(s);
  return connected;
}

void replace_all(std::string& text, const std::string& old, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += with.size())
    text.replace(at, old.size(), with);
}

// One process, which runs as the user who runs the tests and writes only into its folder.
constexpr const char* configuration = R"(
daemon off;
master_process off;
pid FOLDER/pid;
error_log FOLDER/error.log;
events { worker_connections 256; }
http {
  log_format conditions '$status $request_method $uri "$http_if_none_match$http_if_modified_since"';
  access_log FOLDER/access.log conditions;
  client_body_temp_path FOLDER/temporary;
  proxy_temp_path FOLDER/temporary;
  fastcgi_temp_path FOLDER/temporary;
  uwsgi_temp_path FOLDER/temporary;
  scgi_temp_path FOLDER/temporary;
  default_type text/plain;
  server {
    listen 127.0.0.1:PORT;
    root ROOT;
LOCATIONS
  }
}
)";

}  // namespace

bool nginx_server::installed() {
  static const bool is = [] {
    const bool found = !find_program().empty();
    if (!found) std::cout << "SKIP: nginx is not installed (Debian: nginx-light)\n";
    return found;
  }();
  return is;
}

nginx_server::nginx_server(std::string locations) : locations_(std::move(locations)) {
  fs::create_directory(folder_.path / "www");
  for (int attempt = 0; attempt < 5; ++attempt) {
    port_ = free_port();
    if (run()) return;  // otherwise another program has taken the port
  }
  throw std::runtime_error("nginx did not start: " + folder_.read("output") + folder_.read("error.log"));
}

nginx_server::~nginx_server() {
  if (process_ != 0) kill();
}

std::string nginx_server::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

void nginx_server::write(const std::string& name, const std::string& text) const {
  fs::create_directories((folder_.path / "www" / name).parent_path());
  folder_.write("www/" + name, text);
}

void nginx_server::remove(const std::string& name) const { fs::remove(folder_.path / "www" / name); }

std::size_t nginx_server::requests(const std::string& part) const {
  const std::string log = folder_.read("access.log");
  std::size_t count = 0;
  for (std::size_t from = 0; from < log.size();) {
    const std::size_t end = log.find('\n', from);
    if (log.substr(from, end - from).find(part) != std::string::npos) ++count;
    if (end == std::string::npos) break;
    from = end + 1;
  }
  return count;
}

void nginx_server::kill() {
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
}

void nginx_server::start() {
  if (!run()) throw std::runtime_error("nginx did not start: " + folder_.read("error.log"));
}

void nginx_server::hang() { ::kill(process_, SIGSTOP); }
void nginx_server::go_on() { ::kill(process_, SIGCONT); }

bool nginx_server::run() {
  std::string text = configuration;
  replace_all(text, "LOCATIONS", locations_);
  replace_all(text, "ROOT", (folder_.path / "www").string());
  replace_all(text, "FOLDER", folder_.path.string());
  replace_all(text, "PORT", std::to_string(port_));
  folder_.write("configuration", text);

  const std::string program = find_program();
  const std::string folder = folder_.path.string();
  const std::string file = folder + "/configuration";
  const std::string errors = folder + "/error.log";
  const std::string output = folder + "/output";
  const pid_t self = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::setpgid(0, 0);  // Ctrl-C should reach only the tests
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != self) ::_exit(125);
    ::execl(program.c_str(), "nginx", "-p", folder.c_str(), "-e", errors.c_str(), "-c", file.c_str(),
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const auto late = std::chrono::steady_clock::now() + 60s;
  while (!takes_connections(port_)) {
    if (::waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = 0;
      return false;
    }
    if (std::chrono::steady_clock::now() > late) {
      kill();
      return false;
    }
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace cache_refresh_test
