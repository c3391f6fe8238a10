// Uploads and artifacts.
#include <filesystem>
#include <system_error>

#include "atunner/http/url.h"
#include "atunner/platform/tar.h"
#include "faces/serve/routes.h"

namespace atunner::serve {
namespace {

Json UploadJson(const platform::Upload& upload) {
  return {{"id", upload.id}, {"name", upload.name}, {"bytes", upload.bytes}};
}

http::Response PostUpload(Call& call) {
  auto upload = call.context.uploads.Begin(call.Text("name"));
  if (!upload) return ProblemOf(upload.error(), call.request_id);
  std::error_code error;
  std::filesystem::rename(call.request.file, upload->file, error);
  if (error) return Problem(503, "the upload cannot be kept: " + error.message(), call.request_id);
  upload->bytes = call.request.bytes;
  call.context.metrics.Add("atunner_uploaded_bytes_total", "", static_cast<double>(upload->bytes));
  http::Response response = JsonResponse(201, UploadJson(*upload));
  response.headers.Set("Location", "/api/v1/uploads/" + upload->id);
  return response;
}

http::Response GetUpload(Call& call) {
  const auto upload = call.context.uploads.Find(call.Segment(0));
  if (!upload) return ProblemOf(upload.error(), call.request_id);
  return JsonResponse(200, UploadJson(*upload));
}

http::Response Download(const Path& file) {
  http::Response response;
  response.headers.Set("Content-Type", "application/octet-stream");
  response.headers.Set("Content-Disposition",
                       "attachment; filename=\"" + file.filename().string() + "\"");
  response.headers.Set("Cache-Control", "no-cache");
  response.file = file;
  return response;
}

http::Response GetUploadContent(Call& call) {
  const auto upload = call.context.uploads.Find(call.Segment(0));
  if (!upload) return ProblemOf(upload.error(), call.request_id);
  return Download(upload->file);
}

http::Response ListArtifacts(Call& call) {
  const auto job = call.context.queue.Find(call.Segment(0));
  if (!job) return ProblemOf(job.error(), call.request_id);
  Json files = Json::array();
  for (const auto& file : platform::FilesBelow(call.context.ArtifactsOf(job->id)))
    files.push_back({{"path", file.path},
                     {"bytes", file.bytes},
                     {"link", "/api/v1/jobs/" + job->id + "/artifacts/" + file.path}});
  return JsonResponse(200, {{"files", std::move(files)}});
}

http::Response GetArtifact(Call& call) {
  const auto job = call.context.queue.Find(call.Segment(0));
  if (!job) return ProblemOf(job.error(), call.request_id);
  const std::string& path = call.Segment(1);
  const Path file = call.context.ArtifactsOf(job->id) / path;
  std::error_code ignored;
  const bool plain = platform::IsSafePath(path) &&
                     std::filesystem::is_regular_file(
                         std::filesystem::symlink_status(file, ignored));
  if (!plain) return Problem(404, "the artifact has no file '" + path + "'", call.request_id);
  return Download(file);
}

http::Response GetTar(Call& call) {
  const auto job = call.context.queue.Find(call.Segment(0));
  if (!job) return ProblemOf(job.error(), call.request_id);
  auto archive = platform::TarOf(call.context.ArtifactsOf(job->id), job->id);
  if (!archive) return ProblemOf(archive.error(), call.request_id);
  http::Response response;
  response.headers.Set("Content-Type", "application/x-tar");
  response.headers.Set("Content-Disposition", "attachment; filename=\"" + job->id + ".tar\"");
  response.body = *std::move(archive);
  return response;
}

}  // namespace

std::vector<Route> FileRoutes() {
  using platform::kRead;
  using platform::kSubmit;
  return {{"POST", "/api/v1/uploads", kSubmit, BodyKind::kUpload, PostUpload},
          {"GET", "/api/v1/uploads/{id}", kRead, BodyKind::kNone, GetUpload},
          {"GET", "/api/v1/uploads/{id}/content", kRead, BodyKind::kNone, GetUploadContent},
          {"GET", "/api/v1/jobs/{id}/artifacts", kRead, BodyKind::kNone, ListArtifacts},
          {"GET", "/api/v1/jobs/{id}/artifacts.tar", kRead, BodyKind::kNone, GetTar},
          {"GET", "/api/v1/jobs/{id}/artifacts/{path}", kRead, BodyKind::kNone, GetArtifact}};
}

}  // namespace atunner::serve
