#include "http_client.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <new>

#include <fmt/core.h>

#include "http_caching.hpp"
#include "limits.hpp"

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

}  // namespace

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
  answer.validator = header("ETag");
  if (answer.validator.empty()) answer.validator = header("Last-Modified");

  const std::string cache_control = header("Cache-Control");
  http_caching said{.cache_control = cache_control, .age = {}, .expires = {}};
  const std::string age = header("Age");
  long seconds = 0;
  std::from_chars(age.data(), age.data() + age.size(), seconds);
  said.age = std::chrono::seconds(std::clamp(seconds, 0L, 0x7fffffffL));
  if (const std::string expires = header("Expires"); !expires.empty()) {
    // -1 if it is not a date, such as "0", which means that it has expired.
    const std::time_t end = curl_getdate(expires.c_str(), nullptr);
    const std::time_t date = curl_getdate(header("Date").c_str(), nullptr);
    said.expires = std::chrono::seconds(
        end == -1 ? 0 : std::max<std::time_t>(end - (date == -1 ? std::time(nullptr) : date), 0));
  }
  answer.ttl = ttl_of(said);
  return answer;
}

}  // namespace cache_refresh
