// Connections to PostgreSQL that break, and servers that stop and restart.
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rondo/timer.hpp>

#include "durable/postgresql/connection.hpp"
#include "durable/postgresql_database.hpp"
#include "threads/patience.hpp"

namespace durable_postgresql_connections {

using namespace durable_test;
using rondo::durable::key_taken;
namespace postgresql = rondo::durable::detail::postgresql;
using rondo::durable::store;
using rondo::durable::store_error;
using rondo::test::gate;

/// Sits between a client and a server, to cut their connection at a chosen moment. Forwards what both sides send,
/// for any number of connections on 127.0.0.1.
class cutting_proxy {
 public:
  explicit cutting_proxy(int server_port);
  ~cutting_proxy();
  cutting_proxy(const cutting_proxy&) = delete;
  cutting_proxy& operator=(const cutting_proxy&) = delete;

  int port() const noexcept { return port_; }

  enum class cut {
    nowhere,
    answer,   // the server's next message is lost, and the connection with it: the request has been done
    request,  // the client's next message is lost, and the connection with it: nothing has been done
  };
  /// Cuts once, after so many more of these messages; then the next cut is `nowhere` again.
  void cut_next(cut where, int after = 0) noexcept {
    passed_before_cut_ = after;
    next_cut_ = where;
  }
  bool has_cut() const noexcept { return next_cut_ == cut::nowhere; }

  enum class passes { all, handshakes, nothing };
  /// With `handshakes` or `nothing` it is as a pooler that is paused: it cuts each earlier connection at its next
  /// message, takes new ones, and passes on so much of them.
  void let_pass(passes what) noexcept { passes_ = what; }
  /// Counts the messages of clients that have been withheld.
  rondo::test::gate& withheld() noexcept { return withheld_; }

 private:
  class pair;

  void serve();

  int server_port_;
  int listener_;
  int port_;
  int end_[2] = {-1, -1};
  std::atomic<cut> next_cut_ = cut::nowhere;
  std::atomic<int> passed_before_cut_ = 0;
  std::atomic<passes> passes_ = passes::all;
  rondo::test::gate withheld_;
  std::thread thread_;
};

/// A port of 127.0.0.1 that takes connections, but never answers.
class silent_port {
 public:
  silent_port();
  ~silent_port();
  silent_port(const silent_port&) = delete;
  silent_port& operator=(const silent_port&) = delete;

  int port() const noexcept { return port_; }

 private:
  int listener_;
  int port_;
};

sockaddr_in local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<in_port_t>(port));
  return address;
}

int new_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

/// Returns the port that the socket gets.
int listen_on(int socket) {
  auto address = local(0);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, plain, size) != 0 || ::listen(socket, 16) != 0 ||
      ::getsockname(socket, plain, &size) != 0)
    throw std::runtime_error("no port to listen on");
  return ntohs(address.sin_port);
}

bool send_all(int to, const char* bytes, std::size_t size) {
  while (size > 0) {
    const auto sent = ::send(to, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

class cutting_proxy::pair {
 public:
  pair(int client, int server, passes what) noexcept : client_(client), server_(server), passes_(what) {}
  ~pair() {
    ::close(client_);
    ::close(server_);
  }
  pair(const pair&) = delete;
  pair& operator=(const pair&) = delete;

  int client() const noexcept { return client_; }
  int server() const noexcept { return server_; }

  /// Returns false if the connection ends.
  bool pass_on(bool from_client, cutting_proxy& of) {
    std::array<char, 65536> bytes;
    const auto got = ::recv(from_client ? client_ : server_, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    const auto where = from_client ? cut::request : cut::answer;
    if (of.next_cut_ == where && of.passed_before_cut_-- == 0) {
      of.next_cut_ = cut::nowhere;
      return false;
    }
    if (passes_ == passes::all && of.passes_ != passes::all) return false;
    if (from_client && passes_ == passes::handshakes && (bytes[0] == 'Q' || bytes[0] == 'P'))
      passes_ = passes::nothing;
    if (passes_ == passes::nothing) {
      if (from_client) of.withheld_.open();
      return true;
    }
    return send_all(from_client ? server_ : client_, bytes.data(), static_cast<std::size_t>(got));
  }

 private:
  int client_;
  int server_;
  passes passes_;
};

silent_port::silent_port() : listener_(new_socket()), port_(listen_on(listener_)) {}
silent_port::~silent_port() { ::close(listener_); }

cutting_proxy::cutting_proxy(int server_port)
    : server_port_(server_port), listener_(new_socket()), port_(listen_on(listener_)) {
  if (::pipe(end_) != 0) throw std::runtime_error("no pipe");
  thread_ = std::thread([this] { serve(); });
}

cutting_proxy::~cutting_proxy() {
  ::close(end_[1]);
  thread_.join();
  ::close(end_[0]);
  ::close(listener_);
}

void cutting_proxy::serve() {
  std::list<pair> pairs;
  for (;;) {
    std::vector<pollfd> sockets{{.fd = end_[0], .events = POLLIN, .revents = 0},
                                {.fd = listener_, .events = POLLIN, .revents = 0}};
    for (const auto& p : pairs) {
      sockets.push_back({.fd = p.client(), .events = POLLIN, .revents = 0});
      sockets.push_back({.fd = p.server(), .events = POLLIN, .revents = 0});
    }
    ::poll(sockets.data(), sockets.size(), -1);
    if (sockets[0].revents != 0) return;
    std::size_t at = 2;
    for (auto p = pairs.begin(); p != pairs.end(); at += 2) {
      const bool goes_on = (sockets[at].revents == 0 || p->pass_on(true, *this)) &&
                           (sockets[at + 1].revents == 0 || p->pass_on(false, *this));
      p = goes_on ? std::next(p) : pairs.erase(p);
    }
    if (sockets[1].revents == 0) continue;
    const auto& made =
        pairs.emplace_back(::accept(listener_, nullptr, nullptr), new_socket(), passes_.load());
    const auto server = local(server_port_);
    if (::connect(made.server(), reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0)
      pairs.pop_back();
  }
}

enum class outcome { done, refused, perhaps_done };

outcome try_it(const std::function<void()>& f) {
  try {
    f();
    return outcome::done;
  } catch (const store_error& error) {
    CHECK(std::string(error.what()).starts_with("rondo: PostgreSQL: "));
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.perhaps_done() ? outcome::perhaps_done : outcome::refused;
  }
}

/// A store whose connections a proxy cuts. Its statements are already prepared.
struct cut_store {
  postgresql_database db{*postgresql_server::get()};
  cutting_proxy proxy{postgresql_server::get()->port()};
  std::string url = postgresql_server::by_tcp(db.url(), proxy.port());
  std::unique_ptr<store> tasks = store::open(url);

  cut_store() {
    for (const char* key : {"", "k"}) tasks->cancel(tasks->submit_after(1h, {.key = key}));
  }
  std::string count() { return db.ask("select count(*) from rondo_task"); }
  void end_all_sessions() {
    db.ask(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() "
        "and datname = current_database()");
    while (db.ask("select count(*) from pg_stat_activity where pid <> pg_backend_pid() "
                  "and datname = current_database()") != "0")
      std::this_thread::sleep_for(1ms);
  }
};

/// A session of a dispatcher whose connection a proxy cuts.
struct cut_session : cut_store {
  std::shared_ptr<rondo::durable::detail::engine> engine =
      rondo::durable::detail::store_access::engine_of(*tasks);
  std::unique_ptr<rondo::durable::detail::session> session = engine->connect("cut", worker::default_rules());

  cut_session() { session->take({.claim_up_to = 1}); }
  turn_result take(const turn& what) { return session->take(what); }
  /// Waits until the session is notified, so that the proxy does not cut that message instead of an answer.
  std::int64_t submit(const rondo::durable::submission& what) {
    const auto id = tasks->submit_after(0s, what);
    CHECK(session->wait());
    return id;
  }
};

TEST_CASE("a submission whose answer is lost may have been made; with a key it is not made twice") {
  cut_store s;
  s.proxy.cut_next(cutting_proxy::cut::answer);
  CHECK(try_it([&] { s.tasks->submit_after(1h, {.key = "k"}); }) == outcome::perhaps_done);
  CHECK(s.count() == "1");
  CHECK_THROWS_AS(s.tasks->submit_after(1h, {.key = "k"}), key_taken);
  CHECK(s.count() == "1");
}

TEST_CASE("a submission that is lost on its way may have been made; with a key the next attempt makes it") {
  cut_store s;
  s.proxy.cut_next(cutting_proxy::cut::request);
  CHECK(try_it([&] { s.tasks->submit_after(1h, {.key = "k"}); }) == outcome::perhaps_done);
  CHECK(s.count() == "0");
  CHECK(s.tasks->submit_after(1h, {.key = "k"}) > 0);
}

TEST_CASE("a statement that could not even be prepared has not been done") {
  cut_store s;
  const auto id = s.tasks->submit_after(1h, {});
  s.proxy.cut_next(cutting_proxy::cut::request);
  CHECK(try_it([&] { s.tasks->reschedule_after(id, 2h); }) == outcome::refused);  // its first use
}

TEST_CASE("claims whose answer is lost are adopted by the next turn, and by nobody else") {
  cut_session s;
  const auto id = s.submit({.payload = "p"});
  s.proxy.cut_next(cutting_proxy::cut::answer);
  CHECK(try_it([&] { s.take({.claim_up_to = 10}); }) == outcome::perhaps_done);
  CHECK(s.db.ask("select state from rondo_task") == "1");
  CHECK(worker(s.db).claim_up_to(10).empty());
  const auto found = s.take({.adopt = true, .claim_up_to = 10}).claimed;
  REQUIRE(ids_of(found) == std::vector{id});
  CHECK(found[0].what.payload == "p");
  CHECK(s.take({.begun = {ticket_of(found[0])}}).begun.size() == 1);
}

TEST_CASE("a run whose beginning was not answered begins when the request is repeated, with one attempt") {
  cut_session s;
  s.submit({});
  const auto t = ticket_of(s.take({.claim_up_to = 1}).claimed.at(0));
  s.take({.begun = {{.id = -1, .fence = 1}}});  // so that the statement is prepared
  s.proxy.cut_next(cutting_proxy::cut::answer);
  CHECK(try_it([&] { s.take({.begun = {t}}); }) == outcome::perhaps_done);
  CHECK(s.take({.begun = {t}}).begun == std::vector{t});
  CHECK(s.db.ask("select attempt from rondo_task") == "1");
}

TEST_CASE("what a turn has done is known although it is not known what was locked; that counts as locked") {
  cut_session x;
  x.submit({});
  const auto t = ticket_of(x.session->take({.claim_up_to = 1}).claimed.at(0));
  CHECK(x.take({.begun = {t}}).begun == std::vector{t});
  worker other(x.db, "other");
  const auto dead = x.tasks->submit_after(0s, {});
  CHECK(other.begin(ticket_of(other.claim_one())));
  x.db.ask("update rondo_task set attempt = 3, lease_until = now() - interval '1 s' where id = " +
           std::to_string(dead));
  CHECK(x.take({.claim_up_to = 1}).may_have_more);
  user_connection blocks(x.db.url());
  blocks.run("begin; select id from rondo_task where id = " + std::to_string(t.id) + " for update");
  x.proxy.cut_next(cutting_proxy::cut::request, 1);
  const auto done = x.take({.finished = {t}, .claim_up_to = 10});
  CHECK(x.proxy.has_cut());
  CHECK(done.locked == std::vector{t});
  CHECK(done.expired.size() == 1);
  blocks.run("rollback");
  CHECK_THROWS_AS(x.take({.finished = {t}}), store_error);  // as after each reconnect
  CHECK(x.take({.begun = {t}, .adopt = true}).begun == std::vector{t});
  CHECK(x.take({.finished = {t}}).finished == std::vector{t});
}

TEST_CASE("a turn whose request is lost changes nothing, and can be repeated") {
  cut_session s;
  s.submit({});
  s.proxy.cut_next(cutting_proxy::cut::request);
  CHECK(try_it([&] { s.take({.claim_up_to = 10}); }) == outcome::perhaps_done);
  CHECK(s.db.ask("select state from rondo_task") == "0");
  CHECK(s.take({.adopt = true, .claim_up_to = 10}).claimed.size() == 1);
}

TEST_CASE(
    "a session says once that the server has another timeline, and its fences are greater than those before, "
    "whatever the clocks showed") {
  auto& server = *postgresql_server::get();
  for (const bool breaks_again : {false, true}) {
    CAPTURE(breaks_again);
    postgresql_database db(server);
    const auto tasks = db.open_store();
    worker w(db);
    tasks->submit_after(0s, {});
    const auto before = w.claim_one().what.fence >> 43;
    CHECK(before >= 1);
    server.promote();
    if (breaks_again) {
      w.session().changed();  // connects
      db.ask(
          "select count(pg_terminate_backend(pid)) from pg_stat_activity"
          " where pid <> pg_backend_pid() and datname = current_database()");
      w.session().changed();
    }
    std::string told;
    try {
      w.take({.claim_up_to = 1});
    } catch (const rondo::durable::store_error& e) {
      told = e.what();
    }
    CHECK(told.find("another timeline") != told.npos);
    try_it([&] { tasks->submit_after(0s, {}); });
    tasks->submit_after(0s, {});
    CHECK((w.claim_up_to(1).at(0).what.fence >> 43) == before + 1);
    CHECK(worker(db, "other").claim_up_to(2).size() <= 1);  // it knows of no other timeline
  }
}

TEST_CASE("connections that the server has ended are replaced without an error") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  worker w(db);
  const std::string others =
      " from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()";
  for (int round = 0; round < 20; ++round) {
    db.ask("select count(pg_terminate_backend(pid))" + others);
    while (db.ask("select count(*)" + others) != "0") std::this_thread::yield();
    CHECK(try_it([&] { tasks->submit_after(0s, {}); }) == outcome::done);
    CHECK(w.claim_up_to(10).size() == 1);
  }
}

TEST_CASE("a store and a session survive a restart of the server between their calls") {
  auto& server = *postgresql_server::get();
  for (const auto how : {postgresql_server::how::fast, postgresql_server::how::immediate}) {
    postgresql_database db(server);
    const auto tasks = db.open_store();
    worker w(db);
    const auto kept = tasks->submit_after(0s, {});
    const auto t = ticket_of(w.claim_one());
    server.restart(how);
    CHECK(try_it([&] { tasks->submit_after(1h, {}); }) == outcome::done);
    CHECK(tasks->find(kept).has_value());
    // The claim was durable, so its fence is still the latest.
    CHECK(w.take({.begun = {t}, .adopt = true}).begun == std::vector{t});
    CHECK(w.finish(t));
  }
}

TEST_CASE("after the connection broke between two turns, beginnings are said again before ends") {
  for (const bool looks : {false, true}) {
    postgresql_database db(*postgresql_server::get());
    const auto tasks = db.open_store();
    worker w(db);
    const auto id = tasks->submit_after(0s, {});
    const auto t = ticket_of(w.claim_one());
    REQUIRE(w.begin(t));
    db.ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid()");
    db.ask("update rondo_task set state = 1, attempt = 0");  // as after a crash that undoes the beginning
    if (looks) w.session().changed();
    CHECK(try_it([&] { w.take({.finished = {t}}); }) != outcome::done);
    CHECK(w.take({.begun = {t}, .adopt = true}).begun == std::vector{t});
    CHECK(w.finish(t));
    CHECK_FALSE(tasks->find(id).has_value());
  }
}

TEST_CASE("while the server is down, calls fail at once and nothing is done; afterwards they work again") {
  auto& server = *postgresql_server::get();
  postgresql_database db(server);
  const auto tasks = db.open_store();
  worker w(db);
  server.stop(postgresql_server::how::fast);
  CHECK(try_it([&] { tasks->submit_after(0s, {}); }) == outcome::refused);
  CHECK(try_it([&] { w.claim_up_to(1); }) == outcome::refused);
  CHECK(try_it([&] { w.claim_up_to(1); }) == outcome::refused);
  CHECK_THROWS_AS(store::open(db.url()), store_error);
  server.start();
  CHECK(db.ask("select count(*) from rondo_task") == "0");
  CHECK(try_it([&] { tasks->submit_after(0s, {}); }) == outcome::done);
  CHECK(w.claim_up_to(1).size() == 1);
}

/// Runs `f` in another thread, and calls `meanwhile` when one of its statements waits for a lock.
outcome while_it_waits(postgresql_database& db, const std::function<void()>& f,
                       const std::function<void()>& meanwhile) {
  auto result = outcome::done;
  std::thread other([&] { result = try_it(f); });
  while (db.ask("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == "0")
    std::this_thread::sleep_for(1ms);
  meanwhile();
  other.join();
  return result;
}

TEST_CASE("a call whose session the server ends has done nothing, and reports so") {
  auto& server = *postgresql_server::get();
  postgresql_database db(server);
  const auto tasks = db.open_store();
  user_connection blocks(db.url());
  blocks.run("begin; lock table rondo_task in exclusive mode");
  const auto seen = while_it_waits(
      db, [&] { tasks->submit_after(1h, {}); },
      [&] {
        db.ask("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'");
      });
  CHECK(seen == outcome::refused);
  blocks.run("rollback");
  CHECK(db.ask("select count(*) from rondo_task") == "0");
  CHECK(try_it([&] { tasks->submit_after(1h, {}); }) == outcome::done);
}

TEST_CASE("when the server restarts during a turn, either all of it is done or nothing, as reported") {
  auto& server = *postgresql_server::get();
  for (const auto how : {postgresql_server::how::fast, postgresql_server::how::immediate}) {
    postgresql_database db(server);
    const auto tasks = db.open_store();
    worker w(db);
    tasks->submit_after(0s, {});
    const auto t = ticket_of(w.claim_one());
    CHECK(w.begin(t));
    tasks->submit_after(0s, {});
    user_connection blocks(db.url());
    blocks.run("begin; lock table rondo_task in exclusive mode");
    const auto seen = while_it_waits(
        db, [&] { w.take({.finished = {t}, .claim_up_to = 1}); }, [&] { server.restart(how); });
    const bool was_done = db.ask("select count(*) from rondo_task where state = 2") == "0";
    // A server that shuts down reports whether the turn was done, unless it first ends the session that blocks the
    // turn. After a crash nothing is known.
    if (how == postgresql_server::how::immediate)
      CHECK((seen == outcome::perhaps_done && !was_done));
    else
      CHECK((seen == outcome::perhaps_done || was_done == (seen == outcome::done)));
    const auto again = w.take({.finished = {t}, .adopt = true, .claim_up_to = 1});
    CHECK(again.finished.empty() == was_done);
    CHECK(again.claimed.size() == 1);
  }
}

TEST_CASE("claims are durable whatever else the URL asks for") {
  const postgresql_database db(*postgresql_server::get());
  postgresql::connection own(db.url() + "&options=-csynchronous_commit%3Doff");
  own.begin();
  CHECK(own.run_plain("show synchronous_commit").bytes(0, 0) == "on");
}

TEST_CASE("a server that does not answer is given up, and the turn may have been done") {
  const postgresql_database db(*postgresql_server::get());
  constexpr postgresql::statement slow{"slow", "select pg_sleep(20)"};
  postgresql::connection own(db.url(), postgresql::lock_wait::as_configured, 100ms);
  own.make();
  const auto begun = std::chrono::steady_clock::now();
  CHECK(try_it([&] { own.run_all({{&slow, {}}}, postgresql::commit::soon); }) == outcome::perhaps_done);
  CHECK(std::chrono::steady_clock::now() - begun < 20s);
  CHECK(own.get() == nullptr);
  CHECK(own.run_plain("select 1").rows() == 1);
}

TEST_CASE("no call waits without end for a server that has stopped answering") {
  const postgresql_database db(*postgresql_server::get());
  constexpr postgresql::statement slow{"slow", "select pg_sleep(60)"};
  const auto begun = std::chrono::steady_clock::now();
  postgresql::connection own(db.url(), postgresql::lock_wait::as_configured, 500ms);
  CHECK(try_it([&] { own.run(slow, {}); }) == outcome::perhaps_done);
  CHECK(own.get() == nullptr);
  CHECK(try_it([&] { own.run_plain(slow.text); }) == outcome::perhaps_done);
  CHECK(try_it([&] { own.run_script(slow.text); }) == outcome::perhaps_done);
  own.begin();
  CHECK(try_it([&] { own.run_plain(slow.text); }) == outcome::perhaps_done);
  own.roll_back();
  // As with a pooler that is paused: it completes the handshake, and answers nothing after it.
  cutting_proxy paused(postgresql_server::get()->port());
  paused.let_pass(cutting_proxy::passes::handshakes);
  postgresql::connection greeted(postgresql_server::by_tcp(db.url(), paused.port()),
                                 postgresql::lock_wait::as_configured, 500ms);
  CHECK(try_it([&] { greeted.make(); }) == outcome::refused);
  CHECK(std::chrono::steady_clock::now() - begun < 50s);
}

TEST_CASE("an answer may take long as long as it arrives") {
  const postgresql_database db(*postgresql_server::get());
  constexpr postgresql::statement large{
      "large", "select pg_sleep(0.02), repeat(md5(i::text), 1000) from generate_series(1, 150) i"};
  postgresql::connection own(db.url(), postgresql::lock_wait::as_configured, 1s);
  own.make();
  CHECK(own.run_all({{&large, {}}}, postgresql::commit::soon).at(0).rows() == 150);
  CHECK(own.run(large, {}).rows() == 150);
}

TEST_CASE("an interrupted turn reports the connection's error, not a later one") {
  cut_session s;
  s.proxy.cut_next(cutting_proxy::cut::answer);
  try {
    s.take({.claim_up_to = 1});
    FAIL("it was done");
  } catch (const store_error& error) {
    CHECK(std::string(error.what()).find("closed the connection unexpectedly") != std::string::npos);
  }
}

TEST_CASE("if the server cannot be reached, open() throws within seconds, with a reason") {
  const auto begun = std::chrono::steady_clock::now();
  const auto reason = [](const std::string& url) {
    try {
      store::open(url);
      return std::string("opened");
    } catch (const store_error& error) {
      CHECK(!error.perhaps_done());
      return std::string(error.what());
    }
  };
  auto& server = *postgresql_server::get();
  CHECK(reason("postgresql://rondo@127.0.0.1:1/x").find("Connection refused") != std::string::npos);
  CHECK(reason(server.url("nowhere")).find("\"nowhere\" does not exist") != std::string::npos);
  // libpq's messages about malformed URLs quote parts of them, which may be parts of the password.
  for (const char* malformed :
       {"postgresql://[", "postgresql://u:s3cr%zz@h/x", "postgresql://u:s3/cr@h/x",
        "postgresql://u:s3@cr@h/x", "postgresql://u:s3cr%00@h/x", "postgresql://x?nonsense=s3cr"}) {
    const std::string said = reason(malformed);
    CAPTURE(said);
    CHECK(
        said ==
        "rondo: PostgreSQL: the URL is malformed (is % in the password written as %25, / as %2F, @ as %40?)");
  }
  // A port that takes connections, but never answers.
  const silent_port nobody;
  CHECK(reason("postgresql://rondo@127.0.0.1:" + std::to_string(nobody.port()) + "/x")
            .find("timeout expired") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - begun < 60s);
}

TEST_CASE("stop() ends with the attempt in progress if a reconnection gets no answer") {
  for (const auto passed : {cutting_proxy::passes::nothing, cutting_proxy::passes::handshakes}) {
    cut_store s;
    gate begun, may_end;
    std::atomic<int> left{0};
    rondo::timer time;
    rondo::durable::dispatcher runs(
        time, *s.tasks,
        [&](const rondo::durable::task&) {
          begun.open();
          may_end.wait();
        },
        {.on_error = [&](const std::string& line) {
          if (line.find("stay claimed until their leases run out") != std::string::npos) ++left;
        }});
    s.tasks->submit_after(0s, {});
    REQUIRE(begun.wait());
    s.proxy.let_pass(passed);
    may_end.open();  // the turn that reports the end finds the connection cut, and makes another
    REQUIRE(s.proxy.withheld().wait());
    const auto from = std::chrono::steady_clock::now();
    runs.stop();
    const auto took = std::chrono::steady_clock::now() - from;
    CHECK(took < 2 * postgresql::usual_patience - 1s);
    CHECK(left == 1);
    CHECK(runs.stats().completed == 0);
    s.proxy.let_pass(cutting_proxy::passes::all);
    CHECK(s.db.ask("select state from rondo_task") == "2");
  }
}

}  // namespace durable_postgresql_connections
