// SPDX-License-Identifier: Apache-2.0
#include "cert_watcher.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <filesystem>

#include "certs/certificate.hpp"

namespace rayhook {
namespace {

using ErrorCode = boost::system::error_code;
constexpr asio::use_awaitable_t<Executor> kTask;

/// Files that never stand still are taken as they are after so long.
constexpr std::chrono::seconds kMostSettling{6};

bool same(const Result<TlsTexts>& a, const Result<TlsTexts>& b) {
  if (a.has_value() != b.has_value()) return false;
  return a ? *a == *b : a.error().what == b.error().what;
}

}  // namespace

CertWatcher::CertWatcher(asio::io_context& context, TlsFiles files, Serve serve, WallClock now,
                         Log& log, Metrics& metrics, Readiness& readiness)
    : files_(std::move(files)),
      serve_(std::move(serve)),
      now_(std::move(now)),
      log_(log),
      metrics_(metrics),
      readiness_(readiness),
      folders_(context),
      timer_(context.get_executor()) {}

void CertWatcher::load() {
  watch_folders();  // before reading, so that no change goes unseen
  consider(read_tls_files(files_));
  if (!folders_.works())
    log_.event(LogLevel::warn,
               "the system gives no inotify watches: a change of certificates is seen by looking "
               "every ten seconds");
}

Task<void> CertWatcher::listen() {
  return folders_.run([this] {
    changed_ = true;
    timer_.cancel();
  });
}

Task<void> CertWatcher::run() {
  for (;;) {
    co_await wait_for_change();
    watch_folders();  // one may have come, or have been replaced
    Result<TlsTexts> texts = read_tls_files(files_);
    if (!same(texts, considered_)) {
      co_await settle(texts);
      consider(std::move(texts));
    } else if (!complaint_.empty()) {
      consider(std::move(texts));  // its time may have come
    }
    check_end();
  }
}

Task<void> CertWatcher::wait_for_change() {
  timer_.expires_after(kPoll);
  ErrorCode ignored;
  if (!changed_) co_await timer_.async_wait(asio::redirect_error(kTask, ignored));
  changed_ = false;
}

Task<void> CertWatcher::settle(Result<TlsTexts>& texts) {
  const auto end = std::chrono::steady_clock::now() + kMostSettling;
  while (std::chrono::steady_clock::now() < end) {
    timer_.expires_after(kSettle);
    ErrorCode error;
    co_await timer_.async_wait(asio::redirect_error(kTask, error));
    Result<TlsTexts> again = read_tls_files(files_);
    const bool still = !error && same(texts, again);
    texts = std::move(again);
    if (still) co_return;
  }
}

void CertWatcher::watch_folders() {
  for (const std::string* file : {&files_.certificate, &files_.key, &files_.client_ca}) {
    if (file->empty()) continue;
    const std::string folder = std::filesystem::path(*file).parent_path().string();
    folders_.watch(folder.empty() ? "." : folder);
  }
}

void CertWatcher::consider(Result<TlsTexts> texts) {
  considered_ = std::move(texts);
  if (!considered_) {
    refuse(considered_.error().what);
    return;
  }
  const Result<ServerTls> tls = make_server_tls(*considered_, files_, now_());
  if (!tls) {
    refuse(tls.error().what);
    return;
  }
  complaint_.clear();
  served_until_ = tls->not_after;
  metrics_.certificate_loaded(
      {.leaf = tls->not_after, .ca = tls->ca_not_after, .client_ca = tls->client_ca_not_after});
  const std::string until = utc(tls->not_after);
  log_.event(LogLevel::info, "certificate loaded",
             {{"names", tls->names}, {"serial", tls->serial}, {"notAfter", until}});
  serve_(tls->context);
  readiness_.clear(Hindrance::certificate);
}

void CertWatcher::refuse(const std::string& why) {
  if (why == complaint_) return;  // said already
  complaint_ = why;
  metrics_.certificate_refused();
  if (served_until_) {
    log_.event(LogLevel::warn, "the new certificate is refused, the one before is served on",
               {{"why", why}});
    return;
  }
  log_.event(LogLevel::error, "not ready: there is no certificate to serve", {{"why", why}});
  readiness_.hinder(Hindrance::certificate, why);
}

void CertWatcher::check_end() {
  if (!served_until_ || *served_until_ >= now_()) return;
  const std::string why =
      "--tls-cert " + files_.certificate + " has expired at " + utc(*served_until_) + "; renew it";
  served_until_.reset();  // as if there were none; whoever still takes it is served
  complaint_ = why;
  log_.event(LogLevel::error, "not ready: the certificate has expired", {{"why", why}});
  readiness_.hinder(Hindrance::certificate, why);
}

}  // namespace rayhook
