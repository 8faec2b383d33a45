// An origin that is a web server, nginx.
#include <doctest/doctest.h>

#include <cstdlib>
#include <thread>

#include <rondo/manual_timer.hpp>

#include "cache_refresh/nginx_server.hpp"
#include "cache_refresh/origin_checks.hpp"
#include "cache_refresh/refreshed_origin.hpp"
#include "origins/parts.hpp"

namespace cache_refresh_origin_http {

using namespace cache_refresh;
using namespace cache_refresh_test;
using namespace std::chrono_literals;

constexpr const char* locations = R"(
    location / { autoindex on; autoindex_format json; }
    location /page/ { alias ROOT/items/; autoindex on; }
    location /names { default_type application/json; return 200 '["b", "a/c", "ä ö?#%"]'; }
    location /lines { return 200 "b\r\n\na c\n"; }
    location /object { default_type application/json; return 200 '{"a": 1}'; }
    location /numbers { default_type application/json; return 200 '["a", 1]'; }
    location /torn { default_type application/json; return 200 '["a", '; }
    location /untagged/ { alias ROOT/items/; etag off; }
    location /ttl/ {
      alias ROOT/items/;
      add_header Cache-Control "max-age=7, stale-while-revalidate=3, stale-if-error=20";
    }
    location /expires/ { alias ROOT/items/; expires 9s; }
    location /expired/ { alias ROOT/items/; add_header Expires 0; }
    location /never/ { alias ROOT/items/; add_header Expires "Fri, 31 Dec 9999 23:59:59 GMT"; }
    location /uncached/ { alias ROOT/items/; add_header Cache-Control no-cache; }
    location /old/ {
      alias ROOT/items/;
      add_header Cache-Control max-age=60;
      add_header Cache-Control stale-if-error=10;
      add_header Age 50;
    }
    location /there/ { return 302 /items/; }
    location /moved/ { rewrite ^/moved/(.*)$ /ttl/$1 redirect; }
    location /loop/ { return 302 $uri; }
    location /away/ { return 302 file:///etc/passwd; }
    location /empty/ { return 204; }
    location /broken/ { return 503; }
    location /slow/ { alias ROOT/items/; limit_rate 1; }
)";

struct web {
  web() {
    server.write("items/a", "one");
    server.write("items/b", "two");
    server.write("items/sub/c", "three");
  }
  std::unique_ptr<origin> open(const std::string& path = "/items/") const {
    return open_origin({.url = server.url(path)});
  }
  std::string error_of_open(const std::string& path) const {
    return error_of_opening({.url = server.url(path)});
  }
  answer load(const std::string& key, const record* held = nullptr) const {
    return open("/")->connect()->load(key, held, 10s);
  }
  std::string error_of_load(const std::string& key, rondo::duration limit = 10s) const {
    const auto loader = open("/")->connect();
    return error_of([&] { loader->load(key, nullptr, limit); });
  }

  nginx_server server{locations};
};

TEST_CASE("http: the list of keys may be nginx's list of files, an array of names, or lines") {
  if (!nginx_server::installed()) return;
  const web x;
  CHECK(x.open()->keys(0) == std::vector<std::string>{"a", "b"});
  CHECK(x.open()->keys(1) == std::vector<std::string>{"a"});
  CHECK(x.open("/items")->keys(0).size() == 2);
  CHECK(x.open("/names/")->keys(0) == std::vector<std::string>{"b", "a/c", "ä ö?#%"});
  CHECK(x.open("/lines/")->keys(0) == std::vector<std::string>{"b", "a c"});
  CHECK(x.open("/there/")->keys(0).size() == 2);
  const auto there = x.open();
  CHECK(there->keys(0).size() == 2);
  x.server.write("items/new", "x");
  CHECK(there->keys(0).size() == 3);
}

TEST_CASE("http: an answer that is not a list is refused") {
  if (!nginx_server::installed()) return;
  const web x;
  CHECK(contains(x.error_of_open("/page/"), "is a web page"));
  CHECK(contains(x.error_of_open("/object/"), "not a JSON array"));
  CHECK(contains(x.error_of_open("/torn/"), "not a JSON array"));
  CHECK(contains(x.error_of_open("/numbers/"), "not a name"));
  CHECK(x.error_of_open("/broken/") == "HTTP 503");
  CHECK(x.error_of_open("/no/") == "HTTP 404");
}

TEST_CASE("http: keys become paths below the URL, percent-encoded except for slashes") {
  if (!nginx_server::installed()) return;
  const web x;
  const std::string odd = "ä ö?#%25+&";
  x.server.write("items/" + odd, "found");
  const auto there = x.open();
  CHECK(there->keys(0).back() == odd);
  CHECK(there->connect()->load(odd, nullptr, 10s).changed->value == "found");
  CHECK(there->connect()->load("sub/c", nullptr, 10s).changed->value == "three");
  // The URL's query is sent as well. Neither the query nor a password is shown.
  const std::string url = x.server.url("/items?token=1");
  const auto secret = open_origin({.url = "http://me:secret@" + url.substr(7)});
  CHECK(secret->connect()->load("a", nullptr, 10s).changed->value == "one");
  CHECK(!contains(secret->name(), "secret"));
  CHECK(!contains(secret->name(), "token"));
  CHECK(contains(secret->name(), "127.0.0.1"));
}

TEST_CASE("http: with its ETag a value is not sent again") {
  if (!nginx_server::installed()) return;
  const web x;
  const record held = *x.load("items/a").changed;
  CHECK(held.value == "one");
  CHECK(held.validator.front() == '"');
  CHECK(!x.load("items/a", &held).changed);
  CHECK(becomes([&] { return x.server.requests("304 GET /items/a") == 1; }));

  x.server.write("items/a", "another");
  const auto next = x.load("items/a", &held);
  REQUIRE(next.changed);
  CHECK(next.changed->value == "another");
  CHECK(next.changed->validator != held.validator);
}

TEST_CASE("http: without an ETag the date is the validator") {
  if (!nginx_server::installed()) return;
  const web x;
  record held;
  REQUIRE(becomes([&] {
    held = *x.load("untagged/a").changed;
    return !held.validator.empty();
  }));
  CHECK(contains(held.validator, " GMT"));
  CHECK(!x.load("untagged/a", &held).changed);
  CHECK(becomes([&] { return x.server.requests("304 GET /untagged/a \"-" + held.validator) == 1; }));
}

TEST_CASE("http: a value that changes twice in a second is sent again, although its date is the same") {
  if (!nginx_server::installed()) return;
  const web x;
  for (int i = 0; i < 3; ++i) {  // the second may end between the changes
    x.server.write("items/a", "one");
    const record held = *x.load("untagged/a").changed;
    x.server.write("items/a", "two");
    const answer next = x.load("untagged/a", &held);
    REQUIRE(next.changed);
    CHECK(next.changed->value == "two");
  }
}

TEST_CASE("http: the server's headers set the TTL, even when the value has not changed") {
  if (!nginx_server::installed()) return;
  const web x;
  const answer first = x.load("ttl/a");
  CHECK(first.ttl.soft == 7s);
  CHECK(first.ttl.hard == 27s);
  const answer same = x.load("ttl/a", &*first.changed);
  CHECK(!same.changed);
  CHECK(same.ttl.soft == 7s);
  CHECK(same.ttl.hard == 27s);

  CHECK(x.load("expires/a").ttl.soft == 9s);
  CHECK(!x.load("expires/a").ttl.hard);
  CHECK(x.load("expired/a").ttl.soft == 1s);
  CHECK(x.load("uncached/a").ttl.soft == 1s);
  CHECK(x.load("uncached/a").ttl.hard == 1s);
  // Two lines of one header, and Age.
  CHECK(x.load("old/a").ttl.soft == 10s);
  CHECK(x.load("old/a").ttl.hard == 20s);
  CHECK(!x.load("items/a").ttl.soft);
  // For a redirection, only the final answer counts.
  CHECK(x.load("moved/a").ttl.soft == 7s);
}

TEST_CASE("http: Cache-Control follows RFC 9111 and RFC 5861") {
  const auto ttl = [](const char* text, std::chrono::seconds age = 0s) {
    return ttl_of(http_caching{.cache_control = text, .age = age, .expires = {}});
  };
  CHECK(!ttl("").soft);
  CHECK(!ttl("public, immutable").soft);
  CHECK(!ttl("stale-if-error=9").hard);
  CHECK(ttl("Max-Age=5").soft == 5s);
  CHECK(ttl("max-age=\"5\"").soft == 5s);
  CHECK(ttl(" max-age = 5 ,, public").soft == 5s);
  CHECK(ttl("max-age=60, max-age=5").soft == 5s);
  CHECK(ttl("extension=\"a, max-age=60 \\\" \", max-age=5").soft == 5s);
  CHECK(ttl("max-age=nonsense").soft == 1s);
  CHECK(ttl("max-age=-5").soft == 1s);
  CHECK(ttl("max-age").soft == 1s);
  CHECK(ttl("max-age=99999999999999999999").soft == std::chrono::seconds(1ll << 31));
  CHECK(ttl("max-age=60", 45s).soft == 15s);
  CHECK(ttl("max-age=60", 90s).soft == 1s);
  CHECK(ttl("max-age=60, stale-if-error=100", 90s).hard == 70s);
  CHECK(ttl("max-age=60, stale-if-error=10", 90s).hard == 1s);
  CHECK(ttl("max-age=5, stale-while-revalidate=10").hard == 15s);
  CHECK(ttl("max-age=5, stale-while-revalidate=10, stale-if-error=4").hard == 15s);
  CHECK(ttl("max-age=5, stale-if-error=10, must-revalidate").hard == 5s);
  CHECK(ttl("max-age=60, no-store").soft == 1s);
  CHECK(ttl("no-store, stale-if-error=60").hard == 1s);
  CHECK(ttl("no-cache=\"Set-Cookie\"").soft == 1s);
  const auto both = ttl_of({.cache_control = "max-age=5", .age = 0s, .expires = 60s});
  CHECK(both.soft == 5s);
  CHECK(ttl_of({.cache_control = "", .age = 10s, .expires = 60s}).soft == 50s);
}

TEST_CASE("http: an answer that expires in the year 9999 is fresh for as long as max-age can say") {
  if (nginx_server::installed()) {
    const web x;
    CHECK(x.load("never/a").ttl.soft == std::chrono::seconds(1ll << 31));
  }
  CHECK(ttl_of({.cache_control = "", .age = 0s, .expires = std::chrono::seconds::max()}).soft ==
        std::chrono::seconds(1ll << 31));
}

TEST_CASE(
    "http: an answer that must be revalidated is not served when stale, even if its TTL is the cache's own") {
  rondo::manual_timer time;
  for (const char* text : {"must-revalidate", "private, proxy-revalidate", "max-age=60, must-revalidate"}) {
    CAPTURE(text);
    refreshing_cache<int, int> cache(
        time, {.soft_ttl = 1min, .hard_ttl = 1h, .first_retry = 1h, .longest_retry = 1h}, [&](auto load) {
          if (load.held() == nullptr)
            load.store(7, ttl_of(http_caching{.cache_control = text, .age = {}, .expires = {}}));
        });
    cache.prefetch(1);
    time.advance(59s);
    CHECK(cache.find(1).value != nullptr);
    time.advance(1s);
    CHECK(cache.find(1).value == nullptr);
  }
}

TEST_CASE("http: an answer that is not a value is an error") {
  if (!nginx_server::installed()) return;
  const web x;
  CHECK(x.error_of_load("broken/a") == "HTTP 503");
  CHECK(x.error_of_load("items/no") == "HTTP 404");
  CHECK(x.error_of_load("empty/a") == "HTTP 204");
  CHECK(contains(x.error_of_load("loop/a"), "redirects"));
  CHECK(contains(x.error_of_load("away/a"), "rotocol"));
  x.server.write("items/large", std::string(9 << 20, 'x'));
  CHECK(x.error_of_load("items/large") == "the answer is larger than 8 MiB");
  x.server.write("items/large", std::string(7 << 20, 'x'));
  CHECK(x.load("items/large").changed->value.size() == 7 << 20);
}

TEST_CASE("http: a connection is kept, and usable after an error") {
  if (!nginx_server::installed()) return;
  web x;
  const auto loader = x.open("/")->connect();
  CHECK(error_of([&] { loader->load("broken/a", nullptr, 10s); }) == "HTTP 503");
  CHECK(loader->load("items/a", nullptr, 10s).changed->value == "one");
  x.server.kill();
  CHECK(error_of([&] { loader->load("items/a", nullptr, 10s); }) != "");
  x.server.start();
  CHECK(loader->load("items/a", nullptr, 10s).changed->value == "one");
}

TEST_CASE("http: a server that does not answer delays a load no longer than its limit") {
  if (!nginx_server::installed()) return;
  web x;
  const auto loader = x.open("/")->connect();
  x.server.hang();
  std::string error;
  const auto took = time_of([&] { error = error_of([&] { loader->load("items/a", nullptr, 200ms); }); });
  CHECK(error == "no answer within 200 ms");
  CHECK(took < patience / 2);
  x.server.go_on();
  CHECK(loader->load("items/a", nullptr, 10s).changed->value == "one");
  // A server that answers byte by byte.
  x.server.write("items/long", std::string(1000, 'x'));
  CHECK(x.error_of_load("slow/long", 300ms) == "no answer within 300 ms");
}

TEST_CASE("http: a server that cannot be reached at the start is reported within a bounded time") {
  if (!nginx_server::installed()) return;
  web x;
  x.server.hang();
  CHECK(time_of([&] { CHECK(x.error_of_open("/items/") == "no answer within 5000 ms"); }) < patience / 2);
  x.server.kill();
  CHECK(contains(x.error_of_open("/items/"), "onnect"));
  CHECK(contains(error_of_opening({.url = "http://no.such.host.invalid/"}), "no.such.host.invalid"));
  CHECK(error_of_opening({.url = "http://"}) != "");
  CHECK(error_of_opening({.url = "http://127.0.0.1:99999/"}) != "");
}

TEST_CASE("http: proxies from the environment are not used for this host") {
  if (!nginx_server::installed()) return;
  const web x;
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ::setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  CHECK(x.error_of_load("items/a") == "");
  CHECK(contains(error_of_opening({.url = "http://elsewhere.invalid/"}), "127.0.0.1"));
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
}

TEST_CASE("http: a web server has no editor and no news") {
  if (!nginx_server::installed()) return;
  const web x;
  CHECK(x.open()->edit() == nullptr);
  CHECK(x.open()->watch([](const std::string&) {}) == nullptr);
}

TEST_CASE("http: after the server is killed, values are still served, and loaded again when it is back") {
  if (!nginx_server::installed()) return;
  web x;
  const auto there = x.open();
  refreshed_origin running(*there, {.soft_ttl = 50ms, .hard_ttl = 1h, .longest_retry = 100ms});
  REQUIRE(becomes([&] { return running.value("a") == "one" && running.value("b") == "two"; }));
  x.server.kill();
  std::size_t unserved = 0;
  REQUIRE(becomes([&] {
    if (running.value("a") != "one" || running.value("b") != "two") ++unserved;
    return running.cache.count().failing == 2;
  }));
  CHECK(running.value("a") == "one");
  x.server.write("items/a", "changed");
  x.server.start();
  CHECK(becomes([&] {
    if (running.value("a").empty() || running.value("b") != "two") ++unserved;
    return running.value("a") == "changed" && running.cache.count().failing == 0;
  }));
  CHECK(unserved == 0);
}

}  // namespace cache_refresh_origin_http
