// What a user's program says to a server: submit, watch, cancel, fetch.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/http/client.h"
#include "atunner/model/json/json.h"

namespace atunner::platform {

/// Errors name fields of the job's request, as the server does.
class JobClient {
 public:
  JobClient(http::Origin origin, std::string token)
      : origin_(std::move(origin)), token_(std::move(token)) {}

  /// Sends a file. Returns the id of the upload.
  Result<std::string> Upload(const Path& file);
  /// Returns the job. Equal keys are the same job; "" is no key.
  Result<Json> Submit(const Json& request, const std::string& key);
  Result<Json> Find(const std::string& job);
  Result<Json> Cancel(const std::string& job);
  /// Puts the files of the job's artifact below `folder`. Returns how many.
  Result<int> Fetch(const std::string& job, const Path& folder);

 private:
  Result<http::Response> Send(http::Request request, const http::CallOptions& options = {});
  Result<Json> SendForJson(http::Request request);

  http::Origin origin_;
  std::string token_;
};

/// True for a job that has ended.
bool HasEnded(const Json& job);

}  // namespace atunner::platform
