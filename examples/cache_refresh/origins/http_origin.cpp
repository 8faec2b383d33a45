#include "http_origin.hpp"

#include <mutex>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "http_client.hpp"
#include "limits.hpp"

namespace cache_refresh {
namespace {

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
