// The routes, tested over HTTP.
#include <doctest/doctest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cache_refresh/web/formats.hpp"
#include "cache_refresh/web/web_server.hpp"
#include "web_figures.hpp"

namespace cache_refresh_web_server {

using namespace std::chrono_literals;
using cache_refresh::failing_keys;
using cache_refresh::history;
using cache_refresh::key_counts;
using cache_refresh::late_reason;
using cache_refresh::snapshot;
using cache_refresh::web_server;
using cache_refresh::wheel_picture;
using cache_refresh::test::small_snapshot;
using cache_refresh::test::small_wheel;

httplib::Result get(const web_server& server, const std::string& path) {
  std::string url = server.url();
  url.pop_back();
  httplib::Client client(url);
  client.set_read_timeout(30);
  return client.Get(path);
}

struct served {
  std::atomic<int> looks{0};
  snapshot figures = small_snapshot();
  double stale_limit = 0.3;
  failing_keys failing;
  std::string searched;
  std::vector<history::sample> past;
  std::vector<late_reason> late;
  std::chrono::milliseconds trace_takes{0};
  web_server server{"127.0.0.1:0",
                    {.look =
                         [this] {
                           ++looks;
                           return figures;
                         },
                     .wheel = [] { return small_wheel(); },
                     .failing =
                         [this](const std::string& find) {
                           searched = find;
                           return failing;
                         },
                     .past = [this] { return past; },
                     .late_reasons = [this] { return late; },
                     .write_trace =
                         [this](std::ostream& out) {
                           std::this_thread::sleep_for(trace_takes);
                           out << R"({"traceEvents": []})";
                         }},
                    stale_limit};
};

std::string refusal(const std::string& address) {
  try {
    const web_server server(address, {}, 1);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

int port_of(const web_server& server) {
  const std::string url = server.url();
  return std::stoi(url.substr(url.rfind(':') + 1));
}

/// Returns a socket, or -1.
int connect_to(const web_server& server) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port_of(server)));
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return socket;
  ::close(socket);
  return -1;
}

TEST_CASE_FIXTURE(served, "web: the page is self-contained, and its policy allows nothing else to run") {
  const auto answer = get(server, "/");
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->get_header_value("Content-Type") == "text/html; charset=utf-8");
  CHECK(answer->get_header_value("X-Content-Type-Options") == "nosniff");
  CHECK(answer->get_header_value("Cache-Control") == "no-store");
  CHECK(answer->get_header_value_count("Content-Security-Policy") == 1);

  const std::string policy = answer->get_header_value("Content-Security-Policy");
  const auto nonce_at = policy.find("script-src 'nonce-") + 18;
  const std::string nonce = policy.substr(nonce_at, policy.find('\'', nonce_at) - nonce_at);
  CHECK(nonce.size() == 32);
  CHECK(policy.find("default-src 'none'") != std::string::npos);
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(answer->body.find("<script nonce=\"" + nonce + "\">") != std::string::npos);
  CHECK(answer->body.find("<style nonce=\"" + nonce + "\">") != std::string::npos);
  for (const char* left : {"%NONCE%", "%STYLE%", "%SCRIPT%", "<script src", "https://"}) {
    CAPTURE(left);
    CHECK(answer->body.find(left) == std::string::npos);
  }
  CHECK(answer->body.find("function drawWheel(") != std::string::npos);
  CHECK(answer->body.rfind("</html>\n") == answer->body.size() - 8);
  CHECK(get(server, "/")->body.find(nonce) == std::string::npos);  // the next page has another nonce
}

TEST_CASE_FIXTURE(served, "web: the state is served as JSON") {
  const auto answer = get(server, "/state.json");
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->get_header_value("Content-Type") == "application/json");
  CHECK(answer->get_header_value("Cache-Control") == "no-store");
  const auto state = nlohmann::json::parse(answer->body);
  CHECK(state["mode"] == "refresh-ahead");
  CHECK(state["elapsed"] == 1.5);
  CHECK(state["keys"] ==
        nlohmann::json{{"all", 10}, {"fresh", 7}, {"stale", 2}, {"empty", 1}, {"failing", 4}});
  CHECK(state["cache"]["unread_loads"] == 11);
  CHECK(state["reads"] == nlohmann::json{{"count", 10}, {"p50", 2e-6}, {"p99", 51.0}, {"max", 51.0}});
  CHECK(state["timer"]["wakeups"] == 21);
  CHECK(state["cache"]["failed_in_a_row"] == 9);
  CHECK(state["failing_for"] == 4.0);
  CHECK(state["error"] == nlohmann::json{{"text", "no such item"}, {"lasts", 40.0}});
  CHECK(state["served_for"] == 25.0);
  CHECK(state["grade"] == "part");
  const auto& wheel = state["wheel"];
  CHECK(wheel["tick"] == 0.02);
  CHECK(wheel["now"] == 9);
  CHECK(wheel["this_turn"] == nlohmann::json{1, 0, 2, 0});
  CHECK(wheel["later"] == nlohmann::json{0, 0, 0, 3});
  CHECK(wheel["next"] == nlohmann::json::parse(R"([{"key": "ada", "in": 0.5}])"));
  CHECK(wheel["landings"][0] ==
        nlohmann::json::parse(
            R"({"number": 41, "key": "bob", "bucket": 2, "succeeded": false, "took": 0.002})"));
  CHECK(wheel["landings"][1]["key"] == "\xef\xbf\xbd");
}

TEST_CASE_FIXTURE(served, "web: the state has null where there is no error and no value") {
  figures.error = std::nullopt;
  figures.served_for = std::nullopt;
  const auto state = nlohmann::json::parse(get(server, "/state.json")->body);
  CHECK(state["error"] == nullptr);
  CHECK(state["served_for"] == nullptr);
}

TEST_CASE_FIXTURE(served, "web: the failing keys that match are served as JSON") {
  failing = {3, 2, {{"a\xff", "no \"route\"", 40s, 2s, 25s}, {"bob", "gone", 1s, std::nullopt, 0s}}};
  const auto answer = get(server, "/failing.json?find=a%20b%26c");
  REQUIRE(answer);
  CHECK(answer->get_header_value("Content-Type") == "application/json");
  CHECK(searched == "a b&c");
  CHECK(nlohmann::json::parse(answer->body) == nlohmann::json::parse(R"({"all": 3, "matching": 2, "first": [
    {"key": "a\ufffd", "error": "no \"route\"", "since": 40.0, "next_load": 2.0, "served_for": 25.0},
    {"key": "bob", "error": "gone", "since": 1.0, "next_load": null, "served_for": 0.0}]})"));
  get(server, "/failing.json");
  CHECK(searched.empty());
}

TEST_CASE_FIXTURE(served, "web: the history is served as JSON, an array for each figure") {
  past = {{1s, 100, 2.5, 0.25}, {2s, 1.0 / 3, 0, 1}};
  const auto answer = get(server, "/history.json");
  REQUIRE(answer);
  CHECK(answer->get_header_value("Content-Type") == "application/json");
  CHECK(nlohmann::json::parse(answer->body) ==
        nlohmann::json::parse(
            R"({"at": [1.0, 2.0], "loads": [100.0, 0.3333], "failed": [2.5, 0.0], "stale": [0.25, 1.0]})"));
}

TEST_CASE_FIXTURE(served, "web: the reasons for late loads are served as JSON") {
  late = {{"the timer ran other tasks", 3, 25ms}, {"the system woke the timer late", 1, 12ms}};
  const auto answer = get(server, "/late.json");
  REQUIRE(answer);
  CHECK(answer->get_header_value("Content-Type") == "application/json");
  CHECK(nlohmann::json::parse(answer->body) == nlohmann::json::parse(R"([
    {"reason": "the timer ran other tasks", "runs": 3, "longest": 0.025},
    {"reason": "the system woke the timer late", "runs": 1, "longest": 0.012}])"));
  late.clear();
  CHECK(nlohmann::json::parse(get(server, "/late.json")->body) == nlohmann::json::array());
}

TEST_CASE_FIXTURE(served, "web: the trace is served as a file to download") {
  const auto answer = get(server, "/trace.json");
  REQUIRE(answer);
  CHECK(answer->get_header_value("Content-Type") == "application/json");
  CHECK(answer->get_header_value("Content-Disposition") == "attachment; filename=trace.json");
  CHECK(answer->body == R"({"traceEvents": []})");
}

TEST_CASE_FIXTURE(served, "web: an answer that takes seconds to make is sent") {
  trace_takes = 8s;  // more than a client may take to send a request and to receive an answer
  std::string url = server.url();
  url.pop_back();
  httplib::Client client(url);
  client.set_read_timeout(60s);
  const auto answer = client.Get("/trace.json");
  REQUIRE(answer);
  CHECK(answer->body == R"({"traceEvents": []})");
}

TEST_CASE("web: ten failures in a row over five seconds are an outage, more keys than the limit a part") {
  using cache_refresh::grade;
  snapshot now;
  now.keys = {.fresh = 10, .stale = 0, .empty = 0, .failing = 1};
  now.cache.failed_in_a_row = 9;
  now.failing_for = 1h;
  CHECK(grade_of(now, 0.1) == grade::good);
  now.cache.failed_in_a_row = 10;
  CHECK(grade_of(now, 0.1) == grade::outage);
  now.failing_for = 5s;
  CHECK(grade_of(now, 0.1) == grade::outage);
  now.failing_for = 5s - 1ns;
  CHECK(grade_of(now, 0.1) == grade::good);
  now.keys.failing = 2;
  CHECK(grade_of(now, 0.1) == grade::part);
  now.keys = {.fresh = 8, .stale = 1, .empty = 1, .failing = 0};
  CHECK(grade_of(now, 0.1) == grade::part);
  CHECK(grade_of(now, 0.2) == grade::good);
}

TEST_CASE_FIXTURE(served, "web: the metrics are served as text") {
  const auto answer = get(server, "/metrics");
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->get_header_value("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(answer->body == cache_refresh::prometheus_text(small_snapshot()));
}

TEST_CASE("web: the health check compares the share that is stale or empty with the limit") {
  const auto health = [](key_counts keys, double limit) {
    const web_server server("127.0.0.1:0",
                            {.look =
                                 [&] {
                                   snapshot now;
                                   now.keys = keys;
                                   return now;
                                 },
                             .wheel = [] { return wheel_picture{}; }},
                            limit);
    const auto answer = get(server, "/healthz");
    REQUIRE(answer);
    return std::to_string(answer->status) + " " + answer->body;
  };
  const key_counts three_in_ten{.fresh = 7, .stale = 2, .empty = 1, .failing = 0};
  CHECK(health(three_in_ten, 0.3) == "200 ok\n");
  CHECK(health(three_in_ten, 0.29) == "503 3 of 10 keys are stale or empty: 30.0 %, more than 29 %\n");
  CHECK(health({.fresh = 0, .stale = 0, .empty = 1, .failing = 1}, 0.999) ==
        "503 1 of 1 keys are stale or empty: 100.0 %, more than 99.9 %\n");
  CHECK(health({}, 0) == "200 ok\n");
}

TEST_CASE_FIXTURE(served, "web: HEAD works; unknown paths and other methods get 404") {
  std::string url = server.url();
  url.pop_back();
  httplib::Client client(url);
  for (const char* path : {"/", "/state.json", "/failing.json", "/history.json", "/late.json", "/trace.json",
                           "/metrics", "/healthz"}) {
    CAPTURE(path);
    const auto head = client.Head(path);
    REQUIRE(head);
    CHECK(head->status == 200);
    CHECK(head->body.empty());
    CHECK(head->get_header_value("Content-Length") == std::to_string(client.Get(path)->body.size()));
  }
  for (const char* path : {"/nothing", "/state_json", "/metrics/", "/../etc/passwd"}) {
    CAPTURE(path);
    const auto answer = client.Get(path);
    REQUIRE(answer);
    CHECK(answer->status == 404);
    CHECK(answer->body == "There is nothing here\n");
  }
  const auto posted = client.Post("/", "", "text/plain");
  REQUIRE(posted);
  CHECK(posted->status == 404);
}

TEST_CASE_FIXTURE(served, "web: many simultaneous requests take few snapshots") {
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> viewers;
  std::atomic<int> answered{0};
  for (int i = 0; i < 4; ++i) {  // few enough for the HTTP library's short queue of connections
    viewers.emplace_back([&] {
      for (int j = 0; j < 20; ++j) answered += get(server, "/state.json")->status == 200 ? 1 : 0;
    });
  }
  for (std::thread& each : viewers) each.join();
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(answered == 80);
  CHECK(looks <= took / std::chrono::milliseconds(200) + 1);
  CHECK(looks >= 1);
}

TEST_CASE("web: an old snapshot is taken again") {
  served all;
  get(all.server, "/state.json");
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (all.looks < 2 && std::chrono::steady_clock::now() < limit) get(all.server, "/metrics");
  CHECK(all.looks == 2);
}

TEST_CASE("web: an exception while taking a snapshot is the answer") {
  const web_server server("127.0.0.1:0",
                          {.look = []() -> snapshot { throw std::runtime_error("no memory"); }}, 1);
  const auto answer = get(server, "/metrics");
  REQUIRE(answer);
  CHECK(answer->status == 500);
  CHECK(answer->body == "no memory\n");
}

TEST_CASE("web: a port in use is refused, and can be used again afterwards") {
  std::string address;
  {
    const served first;
    address = "127.0.0.1:" + std::to_string(port_of(first.server));
    CHECK(refusal(address) == "cannot listen on " + address + ": Address already in use");
    REQUIRE(get(first.server, "/healthz"));
  }
  CHECK(refusal(address).empty());
}

// Another program may try to share the port by setting SO_REUSEPORT. That must not be enough.
TEST_CASE_FIXTURE(served, "web: the port is not shared") {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(socket >= 0);
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port_of(server)));
  CHECK(bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == -1);
  close(socket);
}

TEST_CASE("web: invalid and unavailable addresses are refused") {
  for (const char* bad :
       {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:80x", "example.org:80", "::1:8080", "[::1]", "[127.0.0.1]:80", ":8080"}) {
    CAPTURE(bad);
    CHECK(refusal(bad) ==
          std::string(bad) + " is not an address to listen on; use one such as 127.0.0.1:8080 or [::1]:8080");
  }
  // From the range for documentation: no interface has it.
  CHECK(refusal("192.0.2.1:0") == "cannot listen on 192.0.2.1:0: Cannot assign requested address");
  const web_server named("localhost:0", {}, 1);
  CHECK(named.url().rfind("http://127.0.0.1:", 0) == 0);
}

TEST_CASE("web: the server can listen on an IPv6 address") {
  if (refusal("[::1]:0").find("Cannot assign requested address") != std::string::npos) {
    MESSAGE("this machine has no IPv6");
    return;
  }
  const web_server server("[::1]:0",
                          {.look = [] { return snapshot{}; }, .wheel = [] { return wheel_picture{}; }}, 1);
  CHECK(server.url().rfind("http://[::1]:", 0) == 0);
  httplib::Client client("::1", port_of(server));
  const auto answer = client.Get("/healthz");
  REQUIRE(answer);
  CHECK(answer->status == 200);
}

TEST_CASE("web: the server stops even if a client is connected and silent") {
  auto all = std::make_unique<served>();
  const int socket = connect_to(all->server);
  REQUIRE(socket >= 0);
  REQUIRE(get(all->server, "/healthz"));  // after this the silent client has been accepted
  all.reset();
  char byte = 0;
  CHECK(recv(socket, &byte, 1, 0) <= 0);  // closed
  close(socket);
}

TEST_CASE_FIXTURE(served, "web: clients that send a byte now and then keep the server from nobody else") {
  std::vector<int> slow(16);
  for (int& each : slow) {
    each = connect_to(server);
    REQUIRE(each >= 0);
    const std::string_view begin = "GET /healthz HTTP/1.1\r\nX-Slow: ";
    REQUIRE(::send(each, begin.data(), begin.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(begin.size()));
  }
  std::atomic<bool> answered{false};
  std::thread drip([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!answered && std::chrono::steady_clock::now() < end) {
      for (const int each : slow) ::send(each, "x", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
  const auto answer = get(server, "/healthz");  // waits for 30 s
  answered = true;
  drip.join();
  CHECK(answer);
  for (const int each : slow) ::close(each);
}

}  // namespace cache_refresh_web_server
