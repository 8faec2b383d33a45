// The values are files.
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/inotify.h>
#endif

#include "parts.hpp"

namespace cache_refresh {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what) {
  throw origin_error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

class descriptor {
 public:
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }
  void close() noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  int get() const noexcept { return number_; }

 private:
  int number_;
};

// A new file may have its predecessor's time, because the kernel's clock for files moves in steps, but not also its
// inode.
std::string validator_of(const struct stat& file) {
  return fmt::format("{}.{:09}-{}-{}", file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_size, file.st_ino);
}

// One level and no hidden files, so that no key leads out of the folder.
fs::path file_of(const fs::path& folder, const std::string& key) {
  if (key.empty() || key.front() == '.' || key.find('/') != std::string::npos ||
      key.find('\0') != std::string::npos)
    throw origin_error(fmt::format("{}: is not a valid file name", key));
  return folder / key;
}

struct stat look_at(const descriptor& file, const std::string& key) {
  struct stat seen {};
  if (::fstat(file.get(), &seen) != 0) fail(key);
  if (!S_ISREG(seen.st_mode)) throw origin_error(fmt::format("{}: is not a regular file", key));
  return seen;
}

std::string read_all(const descriptor& file, off_t expected, const std::string& key) {
  std::string text(static_cast<std::size_t>(expected) + 1, '\0');  // one byte more, to see the end at once
  std::size_t size = 0;
  while (true) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno != EINTR) fail(key);
    if (got == 0) break;
    if (got > 0) size += static_cast<std::size_t>(got);
    if (size == text.size()) text.resize(2 * text.size());
  }
  text.resize(size);
  return text;
}

record read_record(const fs::path& path, const std::string& key, const record* held) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(key);
  const struct stat seen = look_at(file, key);
  // Taken before reading: if the file changes during the read, the next load sees another validator.
  std::string validator = validator_of(seen);
  if (held != nullptr && held->validator == validator) return {{}, std::move(validator)};
  return {read_all(file, seen.st_size, key), std::move(validator)};
}

class file_connection : public origin_connection {
 public:
  explicit file_connection(const fs::path& folder) : folder_(folder) {}

  answer load(const std::string& key, const record* held, rondo::duration) override {
    record now = read_record(file_of(folder_, key), key, held);
    if (held != nullptr && held->validator == now.validator) return {};
    return {std::move(now), {}};
  }

 private:
  const fs::path folder_;
};

// A complete new file that replaces another one, or is removed.
class replacement {
 public:
  explicit replacement(const fs::path& replaced)
      : path_((replaced.parent_path() / fmt::format(".{}.XXXXXX", replaced.filename().string())).string()),
        file_(::mkostemp(path_.data(), O_CLOEXEC)) {
    if (file_.get() < 0) fail(path_);
  }
  replacement(const replacement&) = delete;
  replacement& operator=(const replacement&) = delete;
  ~replacement() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  // Returns the validator.
  std::string write(std::string_view text, mode_t mode) {
    while (!text.empty()) {
      const ssize_t written = ::write(file_.get(), text.data(), text.size());
      if (written < 0 && errno != EINTR) fail(path_);
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
    // Sets the time in nanoseconds, so that two changes in one step of the kernel's clock for files have different
    // times.
    timespec times[2] = {};
    ::clock_gettime(CLOCK_REALTIME, &times[0]);
    times[1] = times[0];
    struct stat now {};
    if (::fchmod(file_.get(), mode) != 0 || ::futimens(file_.get(), times) != 0 ||
        ::fstat(file_.get(), &now) != 0)
      fail(path_);
    return validator_of(now);
  }

  void take_place_of(const fs::path& replaced) {
    file_.close();  // closed first, because watchers would otherwise be told of the new name twice
    if (::rename(path_.c_str(), replaced.c_str()) != 0) fail(replaced.filename().string());
    path_.clear();
  }

 private:
  std::string path_;
  descriptor file_;
};

class file_editor : public origin_editor {
 public:
  explicit file_editor(const fs::path& folder) : folder_(folder) {}

  std::string change(const std::string& key, const std::string& mark,
                     const std::function<void()>& before) override {
    const fs::path path = file_of(folder_, key);
    struct stat old {};
    if (::stat(path.c_str(), &old) != 0) fail(key);
    const record now = read_record(path, key, nullptr);
    replacement next(path);
    std::string validator = next.write(marked(now.value, mark), old.st_mode & 07777);
    before();
    next.take_place_of(path);
    return validator;
  }

 private:
  const fs::path folder_;
};

#ifdef __linux__
class file_news : public origin_news {
 public:
  file_news(const fs::path& folder, std::function<void(const std::string&)> changed)
      : changed_(std::move(changed)), events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (events_.get() < 0 ||
        ::inotify_add_watch(events_.get(), folder.c_str(),
                            IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE) < 0)
      fail("cannot watch for changes");
    thread_ = std::thread([this] {
      while (!stop_.wait(-1, events_.get())) tell();
    });
  }
  ~file_news() override {
    stop_.set();
    thread_.join();
  }

 private:
  void tell() {
    alignas(inotify_event) char buffer[4096];
    const ssize_t size = ::read(events_.get(), buffer, sizeof buffer);
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      const std::string key = event->len == 0 ? "" : event->name;
      if ((event->mask & IN_Q_OVERFLOW) != 0) changed_("");
      if (!key.empty() && key.front() != '.') changed_(key);
    }
  }

  const std::function<void(const std::string&)> changed_;
  const descriptor events_;
  stop_event stop_;
  std::thread thread_;
};
#endif

class file_origin : public origin {
 public:
  explicit file_origin(fs::path folder) : folder_(std::move(folder)) { keys(1); }

  std::string name() const override { return folder_.string() + ", a folder"; }

  std::vector<std::string> keys(std::size_t most) override {
    std::vector<std::string> all;
    try {
      for (const auto& each : fs::directory_iterator(folder_)) {
        std::error_code vanished;
        std::string key = each.path().filename().string();
        if (key.front() != '.' && each.is_regular_file(vanished)) all.push_back(std::move(key));
      }
    } catch (const fs::filesystem_error& bad) {
      throw origin_error(bad.code().message());
    }
    std::sort(all.begin(), all.end());
    if (most != 0 && all.size() > most) all.resize(most);
    return all;
  }

  std::unique_ptr<origin_connection> connect() override { return std::make_unique<file_connection>(folder_); }
  std::unique_ptr<origin_editor> edit() override { return std::make_unique<file_editor>(folder_); }
#ifdef __linux__
  std::unique_ptr<origin_news> watch(std::function<void(const std::string&)> changed) override {
    return std::make_unique<file_news>(folder_, std::move(changed));
  }
#endif

 private:
  const fs::path folder_;
};

}  // namespace

std::unique_ptr<origin> open_file_origin(const origin_options& wanted) {
  return std::make_unique<file_origin>(wanted.url.substr(wanted.url.find(':') + 1));
}

}  // namespace cache_refresh
