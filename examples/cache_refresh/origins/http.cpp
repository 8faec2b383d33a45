// The values are documents of a web server.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include <curl/curl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "parts.hpp"

namespace cache_refresh {
namespace {

struct list_cleaner {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using header_list = std::unique_ptr<curl_slist, list_cleaner>;

std::string taken(char* text) {
  std::string copy = text == nullptr ? "" : text;
  curl_free(text);
  return copy;
}

// Segment by segment: curl_easy_escape() would encode slashes as well.
std::string escaped(const std::string& key) {
  std::string all;
  for (std::size_t from = 0; from <= key.size();) {
    const std::size_t end = std::min(key.find('/', from), key.size());
    if (from != 0) all += '/';
    if (end > from) all += taken(curl_easy_escape(nullptr, key.data() + from, static_cast<int>(end - from)));
    from = end + 1;
  }
  return all;
}

std::string condition(const std::string& validator) {
  const bool tag = validator.starts_with('"') || validator.starts_with("W/\"");
  return fmt::format("{}: {}", tag ? "If-None-Match" : "If-Modified-Since", validator);
}

void initialise() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (done != CURLE_OK) throw origin_error(curl_easy_strerror(done));
}

// An address in its parts.
class web_address {
 public:
  // Throws origin_error.
  explicit web_address(const std::string& url);

  // The URL of a key below this address: the key, percent-encoded except for slashes, is appended to the path.
  std::string of(const std::string& key) const;
  std::string whole() const { return of(""); }
  // Without user, password and query.
  std::string for_people() const;
  bool loopback() const;

 private:
  std::string part(CURLUPart which) const;

  struct cleaner {
    void operator()(CURLU* parts) const noexcept { curl_url_cleanup(parts); }
  };
  std::unique_ptr<CURLU, cleaner> parts_;
};

struct web_answer {
  long status = 0;
  std::string type;  // "application/json"
  std::string body;
  std::string validator;  // ETag or, if there is none, Last-Modified, if that is older than the answer
  time_to_live ttl;
};

class http_client {
 public:
  // `direct`: ignores the proxy that the environment may name.
  explicit http_client(bool direct);

  // The validator may be empty. Any status other than 200 or, with a validator, 304 is an error. Throws origin_error.
  web_answer get(const std::string& url, const std::string& validator, rondo::duration limit,
                 std::size_t most_bytes);

 private:
  template <class Value>
  void set(CURLoption option, Value value);
  [[noreturn]] void fail(CURLcode, rondo::duration limit, std::size_t most_bytes) const;
  std::string header(const char* name) const;
  web_answer take_answer();

  struct cleaner {
    void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
  };
  std::unique_ptr<CURL, cleaner> handle_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::string body_;
  std::size_t most_bytes_ = 0;
};

web_address::web_address(const std::string& url) : parts_(curl_url()) {
  const CURLUcode wrong = curl_url_set(parts_.get(), CURLUPART_URL, url.c_str(), 0);
  if (wrong != CURLUE_OK) throw origin_error(curl_url_strerror(wrong));
  curl_url_set(parts_.get(), CURLUPART_FRAGMENT, nullptr, 0);
  const std::string path = part(CURLUPART_PATH);
  if (!path.ends_with('/')) curl_url_set(parts_.get(), CURLUPART_PATH, (path + "/").c_str(), 0);
}

std::string web_address::part(CURLUPart which) const {
  char* text = nullptr;
  return curl_url_get(parts_.get(), which, &text, 0) == CURLUE_OK ? taken(text) : "";
}

std::string web_address::of(const std::string& key) const {
  const std::unique_ptr<CURLU, cleaner> whole(curl_url_dup(parts_.get()));
  const std::string path = part(CURLUPART_PATH) + escaped(key);
  char* text = nullptr;
  if (!whole || curl_url_set(whole.get(), CURLUPART_PATH, path.c_str(), 0) != CURLUE_OK ||
      curl_url_get(whole.get(), CURLUPART_URL, &text, 0) != CURLUE_OK)
    throw origin_error(fmt::format("{}: cannot be made into a URL", key));
  return taken(text);
}

std::string web_address::for_people() const {
  const std::string port = part(CURLUPART_PORT);
  return fmt::format("{}://{}{}{}{}", part(CURLUPART_SCHEME), part(CURLUPART_HOST), port.empty() ? "" : ":",
                     port, part(CURLUPART_PATH));
}

bool web_address::loopback() const {
  const std::string host = part(CURLUPART_HOST);
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

template <class Value>
void http_client::set(CURLoption option, Value value) {
  const CURLcode result = curl_easy_setopt(handle_.get(), option, value);
  if (result != CURLE_OK) throw origin_error(curl_easy_strerror(result));
}

http_client::http_client(bool direct) {
  initialise();
  handle_.reset(curl_easy_init());
  if (!handle_) throw std::bad_alloc();
  set(CURLOPT_NOSIGNAL, 1L);  // timeouts without SIGALRM: there are other threads
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 5L);
  set(CURLOPT_ACCEPT_ENCODING, "");  // all that libcurl can decode
  set(CURLOPT_USERAGENT, "cache_refresh");
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  if (direct) set(CURLOPT_PROXY, "");
  const auto take = +[](char* bytes, std::size_t one, std::size_t count, void* self) -> std::size_t {
    auto& client = *static_cast<http_client*>(self);
    if (client.body_.size() + count > client.most_bytes_) return 0;  // CURLE_WRITE_ERROR
    client.body_.append(bytes, one * count);
    return count;
  };
  set(CURLOPT_WRITEFUNCTION, take);
}

web_answer http_client::get(const std::string& url, const std::string& validator, rondo::duration limit,
                            std::size_t most_bytes) {
  header_list headers;
  if (!validator.empty()) headers.reset(curl_slist_append(nullptr, condition(validator).c_str()));
  body_.clear();
  most_bytes_ = most_bytes;
  error_[0] = '\0';
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(whole_milliseconds(limit).count()));
  // The client may have been moved since the last call.
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_ERRORBUFFER, error_.data());
  const CURLcode result = curl_easy_perform(handle_.get());
  set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  if (result != CURLE_OK) fail(result, limit, most_bytes);
  web_answer answer = take_answer();
  if (answer.status != 200 && (answer.status != 304 || validator.empty()))
    throw origin_error(fmt::format("HTTP {}", answer.status));
  return answer;
}

void http_client::fail(CURLcode why, rondo::duration limit, std::size_t most_bytes) const {
  if (why == CURLE_OPERATION_TIMEDOUT)
    throw origin_error(fmt::format("no answer within {} ms", whole_milliseconds(limit).count()));
  if (why == CURLE_WRITE_ERROR)
    throw origin_error(fmt::format("the answer is larger than {} MiB", most_bytes >> 20));
  throw origin_error(error_[0] == '\0' ? curl_easy_strerror(why) : error_.data());
}

std::string http_client::header(const char* name) const {
  std::string all;
  curl_header* found = nullptr;
  for (std::size_t i = 0; curl_easy_header(handle_.get(), name, i, CURLH_HEADER, -1, &found) == CURLHE_OK;
       ++i) {
    if (i != 0) all += ", ";
    all += found->value;
  }
  return all;
}

web_answer http_client::take_answer() {
  web_answer answer;
  curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  answer.type = header("Content-Type");
  answer.type.resize(std::min(answer.type.find_first_of("; \t"), answer.type.size()));
  std::transform(answer.type.begin(), answer.type.end(), answer.type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  answer.body = std::move(body_);
  const std::time_t date = curl_getdate(header("Date").c_str(), nullptr);
  const std::time_t sent = date == -1 ? std::time(nullptr) : date;
  answer.validator = header("ETag");
  if (answer.validator.empty()) {
    // In the second of its date a document may change again, with the same date (RFC 9110, 8.8.2.2).
    const std::string modified = header("Last-Modified");
    if (curl_getdate(modified.c_str(), nullptr) < sent) answer.validator = modified;
  }

  const std::string cache_control = header("Cache-Control");
  http_caching said{.cache_control = cache_control, .age = {}, .expires = {}};
  const std::string age = header("Age");
  long seconds = 0;
  std::from_chars(age.data(), age.data() + age.size(), seconds);
  said.age = std::chrono::seconds(std::clamp(seconds, 0L, 0x7fffffffL));
  if (const std::string expires = header("Expires"); !expires.empty()) {
    // -1 if it is not a date, such as "0", which means that it has expired.
    const std::time_t end = curl_getdate(expires.c_str(), nullptr);
    said.expires = std::chrono::seconds(end == -1 ? 0 : std::max<std::time_t>(end - sent, 0));
  }
  answer.ttl = ttl_of(said);
  return answer;
}

constexpr std::size_t largest_value = std::size_t{8} << 20;
constexpr std::size_t largest_list = std::size_t{128} << 20;

// An array of names, or of nginx's objects (autoindex_format json), of which only files count.
std::vector<std::string> names_in_json(const std::string& text) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) throw origin_error("the list of keys is not a JSON array");
  std::vector<std::string> names;
  for (const nlohmann::json& each : list) {
    if (each.is_string()) {
      names.push_back(each.get<std::string>());
    } else if (each.is_object() && each.contains("name") && each["name"].is_string()) {
      if (each.value("type", nlohmann::json("file")) == "file")
        names.push_back(each["name"].get<std::string>());
    } else {
      throw origin_error("the list of keys contains something that is not a name");
    }
  }
  return names;
}

std::vector<std::string> names_in_lines(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string line = text.substr(from, end - from);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(std::move(line));
    from = end + 1;
  }
  return names;
}

std::vector<std::string> names_in(const web_answer& list) {
  if (list.type == "application/json" || list.type.ends_with("+json")) return names_in_json(list.body);
  if (list.type == "text/html" || list.type == "application/xhtml+xml")
    throw origin_error("the list of keys is a web page; it must be JSON, or text with one name per line");
  return names_in_lines(list.body);
}

class http_connection : public origin_connection {
 public:
  explicit http_connection(const std::string& url) : address_(url), client_(address_.loopback()) {}

  answer load(const std::string& key, const record* held, rondo::duration limit) override {
    web_answer got =
        client_.get(address_.of(key), held == nullptr ? "" : held->validator, limit, largest_value);
    if (got.status == 304) return {.changed = {}, .ttl = got.ttl};
    return {.changed = record{std::move(got.body), std::move(got.validator)}, .ttl = got.ttl};
  }

 private:
  const web_address address_;
  http_client client_;  // libcurl connects, and reconnects after an error
};

class http_origin : public origin {
 public:
  explicit http_origin(const std::string& url) : url_(url), address_(url), opened_with_(ask()) {}

  std::string name() const override { return address_.for_people() + ", a web server"; }

  std::vector<std::string> keys(std::size_t most) override {
    std::vector<std::string> all;
    {
      const std::lock_guard guard(lock_);
      all.swap(opened_with_);
    }
    if (all.empty()) all = ask();
    if (most != 0 && all.size() > most) all.resize(most);
    return all;
  }

  std::unique_ptr<origin_connection> connect() override { return std::make_unique<http_connection>(url_); }

 private:
  std::vector<std::string> ask() const {
    http_client client(address_.loopback());
    return names_in(client.get(address_.whole(), "", opening_patience, largest_list));
  }

  const std::string url_;
  const web_address address_;
  std::mutex lock_;
  std::vector<std::string> opened_with_;  // for the first keys(), which then need not ask again
};

}  // namespace

std::unique_ptr<origin> open_http_origin(const origin_options& wanted) {
  return std::make_unique<http_origin>(wanted.url);
}

}  // namespace cache_refresh
